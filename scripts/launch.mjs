// `node scripts/launch.mjs ENTRY.ts [argument …]` installs what is missing, then runs the entry on the Node that the project
// brings along. It starts on whatever Node came with the caller's npm (18 or later): plain JavaScript, nothing but node: builtins.
// The program gets this process's arguments, streams, folder and environment as they are (INIT_CWD too), and its signals.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { endAs, follow } from './child.mjs';
import { findRuntime, install, isInstalled, ROOT } from './install.mjs';

const HARDENING = ['--disable-sigusr1', '--disable-proto=throw'];

async function launch(entry, ...programArguments) {
  if (entry === undefined) throw new Error('usage: node scripts/launch.mjs ENTRY.ts [argument …]');
  if (!isInstalled()) {
    const signal = await install();
    if (signal !== null) return { code: null, signal };
  }
  const nodeArguments = [...HARDENING, path.resolve(ROOT, entry), ...programArguments];
  return follow(spawn(findRuntime(), nodeArguments, { stdio: 'inherit' }));
}

launch(...process.argv.slice(2)).then(endAs, (error) => {
  process.stderr.write(`leasehold: ${error.message}\n`);
  process.exitCode = 1;
});
