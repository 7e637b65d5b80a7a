// Installs the packages of package-lock.json, once even for concurrent launches: only a holder of the lock installs.
// Plain JavaScript for Node 18 and later with node: builtins only: it runs before anything is installed.
// It never writes to standard output, which belongs to the program.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { follow } from './child-process.mjs';
import { isNewEnough, OLDEST_NODE } from './flags.mjs';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
// From this platform's package in scripts/runtime/package.json, which the lock file pins by its hash.
const RUNTIME = path.join(ROOT, 'node_modules', '.bin', 'node');
const STAMP = path.join(ROOT, 'node_modules', '.leasehold-install');
const LOCK = path.join(ROOT, '.leasehold-install.lock');
// WHY: with a cache of the compiled code Node does not load the type stripper, which saves 30 MiB at rest.
export const COMPILE_CACHE = path.join(ROOT, 'node_modules', '.cache', 'leasehold');
const LOCK_WAIT_MS = 5 * 60_000;
const NOTICE_INTERVAL_MS = 5000;

// WHY: a caller's npmrc or NODE_ENV may exclude required packages. The runtime is an optional dependency of a
// development dependency, some tools have optional dependencies, and they run on another Node than npm. No package
// needs an install script, so none runs.
const INSTALL_ARGUMENTS = [
  'ci',
  '--include=dev',
  '--include=optional',
  '--include=peer',
  '--ignore-scripts',
  '--engine-strict=false',
  '--bin-links=true',
  '--no-audit',
  '--no-fund',
  '--loglevel=warn',
];

/** The project's installed Node, else this one if it is new enough, else undefined. */
export function findRuntime() {
  if (existsSync(RUNTIME)) return RUNTIME;
  return isNewEnough() ? process.execPath : undefined;
}

export function isInstalled() {
  return existsSync(STAMP) && readFileSync(STAMP, 'utf8') === fingerprint() && findRuntime() !== undefined;
}

/** Changes exactly when the expected content of node_modules on this machine changes. */
function fingerprint() {
  const read = (name) => readFileSync(path.join(ROOT, name), 'utf8');
  const { dependencies, devDependencies, optionalDependencies, overrides } = JSON.parse(read('package.json'));
  const wanted = [dependencies, devDependencies, optionalDependencies, overrides];
  const parts = [read('package-lock.json'), wanted, process.platform, process.arch];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/**
 * Installs, unless another process has done so in the meantime. Resolves to the signal that ended it early, or null.
 * @throws Error with a message for the user
 */
export async function install() {
  await takeLock();
  try {
    return isInstalled() ? null : await runNpm();
  } finally {
    rmSync(LOCK, { force: true });
  }
}

async function runNpm() {
  rmSync(STAMP, { force: true }); // ORDER: delete the stamp, install, write the stamp: an interruption never leaves a false one
  const cli = process.env.npm_execpath ?? '';
  const [command, ...first] = /^npm(-cli)?\.c?js$/.test(path.basename(cli)) ? [process.execPath, cli] : ['npm'];
  const output = [];
  const startNpm = () => {
    const npm = spawn(command, [...first, ...INSTALL_ARGUMENTS], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    if (npm.pid !== undefined) shareLock(npm.pid);
    for (const stream of [npm.stdout, npm.stderr]) stream.on('data', (chunk) => output.push(chunk));
    return npm;
  };
  const ending = follow(startNpm).catch((error) => {
    throw new Error(`npm cannot be started (${error.code}). Install Node together with npm, or run "npm ci" by hand.`);
  });
  process.stderr.write('Installing what is missing (once) …\n');
  const stopNotices = startNotices((line) => process.stderr.write(line), NOTICE_INTERVAL_MS);
  const { code, signal, received } = await ending.finally(stopNotices);
  if (received !== null) return received;
  if (code !== 0) throw new Error(`${Buffer.concat(output)}"npm ci" failed (${signal ?? `exit code ${code}`}).`);
  // A runtime for another C library cannot run here.
  if (spawnSync(RUNTIME, ['--version']).status !== 0) rmSync(RUNTIME, { force: true });
  if (findRuntime() === undefined) {
    throw new Error(
      `the project has no Node for this platform. Start with Node ${OLDEST_NODE} or later (this is ${process.version}).`,
    );
  }
  writeFileSync(STAMP, fingerprint());
  return null;
}

/** Reports periodically that the installation continues. Returns a function that stops this. */
export function startNotices(write, intervalMs) {
  const startedAt = Date.now();
  const tell = () => write(`Still installing, for ${Math.round((Date.now() - startedAt) / 1000)} s …\n`);
  const timer = setInterval(tell, intervalMs);
  return () => clearInterval(timer);
}

/** The lock is a symbolic link to the ids of its holders: unlike a directory it is created and filled in one step. */
async function takeLock() {
  const deadline = Date.now() + LOCK_WAIT_MS;
  for (let isTold = false; ; ) {
    try {
      return symlinkSync(String(process.pid), LOCK);
    } catch (error) {
      if (error.code !== 'EEXIST') throw new Error(`nothing can be installed into ${ROOT}: ${error.message}`);
    }
    const holders = readLock(LOCK);
    if (holders === undefined) continue; // released meanwhile
    if (!holders.split('-').map(Number).some(isAlive)) {
      breakLock(holders);
      continue;
    }
    if (Date.now() > deadline)
      throw new Error(`another installation has not finished. If none is running, delete ${LOCK}`);
    if (!isTold) process.stderr.write('Waiting for another installation …\n');
    isTold = true;
    await sleep(100);
  }
}

/** Adds npm to the holders: it continues to write if only this process is killed. */
function shareLock(npmPid) {
  const shared = `${LOCK}.${process.pid}`;
  rmSync(shared, { force: true });
  symlinkSync(`${process.pid}-${npmPid}`, shared);
  renameSync(shared, LOCK);
}

/** Deletes the lock of processes that no longer exist. If several processes try, only one rename succeeds. */
function breakLock(holders) {
  const caught = `${LOCK}.${process.pid}`;
  try {
    renameSync(LOCK, caught);
  } catch {
    return;
  }
  if (readLock(caught) === holders) rmSync(caught);
  else renameSync(caught, LOCK); // a running process had just taken it: restore it
}

function readLock(link) {
  try {
    return readlinkSync(link);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw new Error(`${link} cannot be read (${error.code}); if no installation is running, delete it.`);
  }
}

function isAlive(pid) {
  if (pid === process.pid) return false; // left by an earlier process with this id, as in a restarted container
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}
