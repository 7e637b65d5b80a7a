// `node scripts/launch.mjs ENTRY.ts [argument …]` installs what is missing, then runs the entry on the Node that the project
// brings along. It starts on whatever Node came with the caller's npm (18 or later): plain JavaScript, nothing but node: builtins.
// The program gets this process's arguments, streams, folder, environment (INIT_CWD too) and signals as they are.

import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import { endAs, follow } from './child-process.mjs';
import { HARDENING, TUNING, withoutCoreDumps } from './flags.mjs';
import { COMPILE_CACHE, findRuntime, install, isInstalled, ROOT } from './install.mjs';

const SERVICE = 'src/bin/server.ts';

async function launch(entry, ...programArguments) {
  if (entry === undefined) throw new Error('usage: node scripts/launch.mjs ENTRY.ts [argument …]');
  if (!isInstalled()) {
    const signal = await install();
    if (signal !== null) return { code: null, signal };
    // The cache is written when a program ends: this one loads the whole service and ends at once.
    spawnSync(findRuntime(), [...HARDENING, path.resolve(ROOT, SERVICE), '--help'], { env: environment() });
  }
  const nodeArguments = [...HARDENING, ...TUNING, path.resolve(ROOT, entry), ...programArguments];
  const [program, words] = withoutCoreDumps(findRuntime(), nodeArguments);
  return follow(spawn(program, words, { stdio: 'inherit', env: environment() }));
}

function environment() {
  return { NODE_COMPILE_CACHE: COMPILE_CACHE, ...process.env };
}

launch(...process.argv.slice(2)).then(endAs, (error) => {
  process.stderr.write(`leasehold: ${error.message}\n`);
  process.exitCode = 1;
});
