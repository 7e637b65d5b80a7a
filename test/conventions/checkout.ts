/** A fake checkout for tests of the launcher, with a fake npm: nothing is downloaded, and no real file is replaced. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { ROOT } from './source.ts';

// Writes down that it was called and how, takes a while as npm does, and brings this very Node as the project's own.
// With a file `endless` it does not end.
const NPM = `
const fs = require('node:fs');
fs.appendFileSync('calls', process.argv.slice(2).join(' ') + '\\n');
if (fs.existsSync('offline')) { console.error('no such host'); process.exit(7); }
if (fs.existsSync('endless')) setInterval(() => {}, 1000);
else setTimeout(() => {
  fs.mkdirSync('node_modules/.bin', { recursive: true });
  fs.symlinkSync(process.execPath, 'node_modules/.bin/node');
}, 300);
`;

/** `files` by their names from the top of it. */
export function makeCheckout(t: TestContext, files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'leasehold-launch-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  for (const name of ['child-process', 'console-state', 'flags', 'install', 'launch', 'leasehold']) {
    cpSync(path.join(ROOT, `scripts/${name}.mjs`), path.join(directory, `scripts/${name}.mjs`));
  }
  cpSync(path.join(ROOT, 'scripts/leasehold'), path.join(directory, 'scripts/leasehold'));
  const all = { 'package.json': '{"type":"module"}', 'package-lock.json': '{}', 'npm/npm-cli.cjs': NPM, ...files };
  for (const [name, content] of Object.entries(all)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), content);
  }
  return directory;
}

/** Runs a script of it from elsewhere, on this Node. */
export function spawnIn(
  directory: string,
  script: string,
  words: readonly string[],
  nodeFlags: readonly string[] = [],
) {
  // The checkout decides where compiled code is cached.
  const { NODE_COMPILE_CACHE: _, ...inherited } = process.env;
  const env = {
    ...inherited,
    npm_execpath: path.join(directory, 'npm/npm-cli.cjs'),
    INIT_CWD: 'the caller’s directory',
    HOME: directory,
  };
  return spawn(process.execPath, [...nodeFlags, path.join(directory, script), ...words], { cwd: tmpdir(), env });
}

export async function ending(child: ChildProcess) {
  if (child.stdout === null || child.stderr === null) throw new Error('the program has no pipes');
  const [out, err, [code, signal]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { out, err, code, signal };
}

/** How often its npm was called. */
export const callsOf = (directory: string): number =>
  readFileSync(path.join(directory, 'calls'), 'utf8').trim().split('\n').length;
