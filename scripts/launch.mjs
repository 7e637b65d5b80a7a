// `node scripts/launch.mjs ENTRY.ts [argument …]` installs missing packages, then runs the entry on the project's Node.
// It runs on the Node of the caller's npm (18 or later): plain JavaScript with node: builtins only. The program
// receives the arguments, streams, working directory, environment (with INIT_CWD) and signals of this process.

import { spawn, spawnSync } from 'node:child_process';
import path from 'node:path';
import { exitLike, follow } from './child-process.mjs';
import { isConsoleBuilt } from './console-state.mjs';
import { HARDENING, TUNING, withoutCoreDumps } from './flags.mjs';
import { COMPILE_CACHE, findRuntime, install, isInstalled, ROOT } from './install.mjs';

const SERVICE = 'src/bin/server.ts';
/** The programs that need the built console. */
const WITH_CONSOLE = [SERVICE, 'scripts/check.ts', 'scripts/build.ts'];

async function launch(entry, ...programArguments) {
  if (entry === undefined) throw new Error('usage: node scripts/launch.mjs ENTRY.ts [argument …]');
  if (!isInstalled()) {
    const signal = await install();
    if (signal !== null) return { code: null, signal };
    // Fills the compile cache, which Node writes at exit: `--help` loads the whole server and exits.
    spawnSync(findRuntime(), [...HARDENING, path.resolve(ROOT, SERVICE), '--help'], { env: environment() });
  }
  if (WITH_CONSOLE.includes(entry) && !isConsoleBuilt()) buildConsole();
  const nodeArguments = [...HARDENING, ...TUNING, path.resolve(ROOT, entry), ...programArguments];
  const [program, words] = withoutCoreDumps(findRuntime(), nodeArguments);
  return follow(() => spawn(program, words, { stdio: 'inherit', env: environment() }));
}

/** The server runs without it too: /console/ then reports that it is not built. */
function buildConsole() {
  process.stderr.write('Building the console (once) …\n');
  const { status, stderr } = spawnSync(findRuntime(), [path.join(ROOT, 'scripts/build-console.ts')], { cwd: ROOT });
  if (status !== 0) process.stderr.write(`The console cannot be built: ${String(stderr).trim()}\n`);
}

function environment() {
  return { NODE_COMPILE_CACHE: COMPILE_CACHE, ...process.env };
}

launch(...process.argv.slice(2)).then(exitLike, (error) => {
  process.stderr.write(`leasehold: ${error.message}\n`);
  process.exitCode = 1;
});
