#!/bin/sh
//bin/true 2>/dev/null; LEASEHOLD_SIGIGN=$(sed -n 's/^SigIgn:[^0-9a-f]*//p' /proc/self/status 2>/dev/null); export LEASEHOLD_SIGIGN; exec node -- "$0" "$@"
// WHY a shell first, to which the line above is code: Node forgets which signals were ignored when it was started; and without -- it
// reads the file of our --env-file itself, and does what NODE_OPTIONS in it says, in the process that holds the token of the vault.
// `env -S` is not to be had everywhere.

// The command `leasehold`. In a checkout it installs what is missing and runs src/, without a build; installed it runs dist/, in
// this very process. Plain JavaScript for Node 18 and later: it has to start where Node is too old, to say so.

import { existsSync, mkdirSync, statSync } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isNewEnough, OLDEST_NODE } from './flags.mjs';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const SOURCE = path.join(ROOT, 'src', 'bin', 'leasehold.ts');
const BUILT = path.join(ROOT, 'dist', 'bin', 'leasehold.js');
const OTHERS_MAY_WRITE = 0o022;

/** Answers what to run in this process; null where it ran in another one. @throws Error with a line for the terminal */
async function prepareCheckout() {
  // Neither of the two is in the package.
  const { COMPILE_CACHE, findRuntime, install, isInstalled } = await import('./install.mjs');
  const { endAs, follow } = await import('./child-process.mjs');
  if (!isInstalled()) {
    const signal = await install();
    if (signal !== null) {
      endAs({ code: null, signal });
      return null;
    }
  }
  if (isNewEnough()) {
    module.enableCompileCache(COMPILE_CACHE);
    return SOURCE;
  }
  const { spawn } = await import('node:child_process');
  // This file again, which enables the cache there. WHY no variable: what `run` starts would inherit it.
  const words = ['--', fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  endAs(await follow(spawn(findRuntime(), words, { stdio: 'inherit' })));
  return null;
}

function prepareInstalled() {
  if (!isNewEnough()) throw new Error(`Node ${OLDEST_NODE} or later is needed, and this is ${process.version}.`);
  const cache = findPrivateCache();
  if (cache !== null) module.enableCompileCache(cache);
  return BUILT;
}

/**
 * The caller's own folder for what was compiled; null where there is none that nobody else can write into.
 * WHY not Node's choice: that is a folder with a known name in /tmp. What lies in a cache is run.
 */
function findPrivateCache() {
  try {
    const { XDG_CACHE_HOME = '' } = process.env;
    const home = homedir();
    const parent = path.isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : path.join(home, '.cache');
    if (!existsSync(home)) return null;
    const folder = path.join(parent, 'leasehold');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(folder);
    return uid === process.getuid() && (mode & OTHERS_MAY_WRITE) === 0 ? folder : null;
  } catch {
    return null; // a home that can't be written: it is only slower
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
