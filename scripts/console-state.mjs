// Whether the built console is that of its sources. Plain JavaScript with node: builtins only, because the launcher
// checks before each start: names, sizes and times of the sources are compared, which takes a few milliseconds.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '..');
export const CONSOLE_OUTPUT = path.join(ROOT, 'console', 'dist');
/** Written last, so that an interrupted build is repeated. */
export const CONSOLE_STAMP = '.sources';
/** The sources of the console. */
const SOURCES = [
  'console/src',
  'console/index.html',
  'src/client',
  'src/core',
  'src/api',
  'scripts/build-console.ts',
  'package-lock.json',
];

/** Changes when a source does. */
export function consoleFingerprint() {
  const hash = createHash('sha256');
  const add = (name) => {
    const file = path.join(ROOT, name);
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) return;
    if (stat.isDirectory()) for (const entry of readdirSync(file).sort()) add(`${name}/${entry}`);
    else hash.update(`${name} ${stat.size} ${stat.mtimeMs}\n`);
  };
  for (const name of SOURCES) add(name);
  return hash.digest('hex');
}

/** Also true in a checkout without the console. */
export function isConsoleBuilt() {
  if (!existsSync(path.join(ROOT, 'console', 'index.html'))) return true;
  const stamp = path.join(CONSOLE_OUTPUT, CONSOLE_STAMP);
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === consoleFingerprint();
}
