// The program of the CLI, which the file `leasehold` starts. In a checkout it installs missing packages
// and runs src/ without a build; in the package it runs dist/. Both run in this process. Plain JavaScript for Node 18
// and later, so that it can report a Node that is too old.

import { existsSync, mkdirSync, statSync } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { HARDENING, isNewEnough, OLDEST_NODE } from './flags.mjs';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const SOURCE = path.join(ROOT, 'src', 'bin', 'leasehold.ts');
const BUILT = path.join(ROOT, 'dist', 'bin', 'leasehold.js');
const OTHERS_MAY_WRITE = 0o022;

/**
 * Resolves to the file to run in this process; null after it ran in another one.
 * @throws Error with a line for the terminal
 */
async function prepareCheckout() {
  // The package contains neither of these modules.
  const { COMPILE_CACHE, findRuntime, install, isInstalled } = await import('./install.mjs');
  const { exitLike, follow } = await import('./child-process.mjs');
  if (!isInstalled()) {
    const signal = await install();
    if (signal !== null) {
      exitLike({ code: null, signal });
      return null;
    }
  }
  if (isNewEnough()) {
    module.enableCompileCache(COMPILE_CACHE);
    return SOURCE;
  }
  const { spawn } = await import('node:child_process');
  // This file enables the cache in the child too. WHY not NODE_COMPILE_CACHE: the programs of `run` would inherit it.
  const words = [...HARDENING, '--', fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  exitLike(await follow(() => spawn(findRuntime(), words, { stdio: 'inherit' })));
  return null;
}

function prepareInstalled() {
  if (!isNewEnough()) throw new Error(`Node ${OLDEST_NODE} or later is needed, and this is ${process.version}.`);
  const cache = findPrivateCache();
  if (cache !== null) module.enableCompileCache(cache);
  return BUILT;
}

/**
 * The user's cache directory for compiled code; null unless only the user can write to it.
 * WHY not Node's default: its directory in /tmp has a predictable name, and Node executes the code in its cache.
 */
function findPrivateCache() {
  try {
    const { XDG_CACHE_HOME = '' } = process.env;
    const home = homedir();
    const parent = path.isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : path.join(home, '.cache');
    if (!existsSync(home)) return null;
    const directory = path.join(parent, 'leasehold');
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(directory);
    return uid === process.getuid() && (mode & OTHERS_MAY_WRITE) === 0 ? directory : null;
  } catch {
    return null; // A home directory that is not writable only makes the start slower.
  }
}

let entry = null;
try {
  entry = existsSync(SOURCE) ? await prepareCheckout() : prepareInstalled();
} catch (error) {
  process.stderr.write(`leasehold: ${error.message}\n`);
  process.exitCode = 1;
}
if (entry !== null) await import(pathToFileURL(entry).href);
