// `node scripts/launch.mjs ENTRY.ts [argument …]` installs what is missing, then runs the entry on the Node that the project
// brings along. It starts on whatever Node came with the caller's npm (18 or later): plain JavaScript, nothing but node: builtins.
// The program gets this process's arguments, streams, folder, environment (INIT_CWD too) and signals as they are.

import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import { endAs, follow } from './child.mjs';
import { findRuntime, install, isInstalled, ROOT } from './install.mjs';

const HARDENING = ['--disable-sigusr1', '--disable-proto=throw'];
// WHY: a request's objects die before a larger nursery is collected, and a still larger one takes 27 MiB. What outlives it may fill
// 64 MiB before all is collected: each time its threads hold up everybody for 50 ms on two cores.
// A large vault's heap grows by 40 % before the next, not by twice. And V8 must not guess from a busy
// start that objects live long, as it does in two starts of five without the last flag, which costs a fifth more processor time for
// as long as it runs.
const TUNING = [
  '--min-semi-space-size=8',
  '--max-semi-space-size=8',
  '--initial-old-space-size=64',
  '--heap-growing-percent=40',
  '--no-allocation-site-pretenuring',
];
// WHY: what TypeScript was stripped and compiled to is kept, so that the stripper is not loaded: 30 MiB less at rest.
const COMPILE_CACHE = path.join(ROOT, 'node_modules', '.cache', 'leasehold');
const SERVICE = 'src/daemon/main.ts';

async function launch(entry, ...programArguments) {
  if (entry === undefined) throw new Error('usage: node scripts/launch.mjs ENTRY.ts [argument …]');
  if (!isInstalled()) {
    const signal = await install();
    if (signal !== null) return { code: null, signal };
    // The cache is written when a program ends: this one loads the whole service and ends at once.
    spawnSync(findRuntime(), [...HARDENING, path.resolve(ROOT, SERVICE), '--help'], { env: environment() });
  }
  const nodeArguments = [...HARDENING, ...TUNING, path.resolve(ROOT, entry), ...programArguments];
  return follow(spawn(findRuntime(), nodeArguments, { stdio: 'inherit', env: environment() }));
}

function environment() {
  return { NODE_COMPILE_CACHE: COMPILE_CACHE, ...process.env };
}

launch(...process.argv.slice(2)).then(endAs, (error) => {
  process.stderr.write(`leasehold: ${error.message}\n`);
  process.exitCode = 1;
});
