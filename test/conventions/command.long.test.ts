// The launcher of the command `leasehold`, in a checkout and installed, with fake programs in place of the real ones.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { callsOf, ending, makeCheckout, spawnIn } from './checkout.ts';

const PROGRAM = `
process.on('SIGTERM', () => process.exit(45));
console.log(JSON.stringify({ pid: process.pid, words: process.argv.slice(2), cwd: process.cwd(), version: process.versions.node, cache: process.env.NODE_COMPILE_CACHE ?? null }));
if (process.argv[2] === 'exit') process.exitCode = Number(process.argv[3]);
if (process.argv[2] === 'throw') throw new Error('a bug of the program');
if (process.argv[2] === 'stay') setInterval(() => {}, 1000);
`;
/** Simulates an older Node for the started program only; its child processes see the real version. */
const onOldNode = (version: string): string[] => [
  '--import',
  `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`,
];

const checkout = (t: TestContext): string =>
  makeCheckout(t, { 'src/bin/leasehold.ts': `const typed: number = 1;\nvoid typed;\n${PROGRAM}` });
const installed = (t: TestContext): string => makeCheckout(t, { 'dist/bin/leasehold.js': PROGRAM });
const run = (directory: string, words: readonly string[], flags: readonly string[] = []) =>
  spawnIn(directory, 'scripts/leasehold.mjs', words, flags);

test('in a checkout it installs missing packages once, reports that on standard error, and runs in the same process', async (t) => {
  const directory = checkout(t);
  for (const told of ['Installing what is missing (once) …\n', '']) {
    const child = run(directory, ['get', './a b']);
    const { out, err, code } = await ending(child);
    assert.deepEqual([code, err], [0, told]);
    const { pid, words, cwd } = JSON.parse(out);
    assert.deepEqual([pid, words], [child.pid, ['get', './a b']]);
    assert.equal(cwd, process.platform === 'darwin' ? cwd : tmpdir());
  }
  assert.equal(callsOf(directory), 1);
  assert.ok(existsSync(path.join(directory, 'node_modules/.cache/leasehold')));
});

test('on an older Node it runs on the checkout’s Node, and exits as that does', async (t) => {
  const directory = checkout(t);
  const child = run(directory, ['exit', '9'], onOldNode('20.20.2'));
  const { out, code } = await ending(child);
  const { pid, version, cache } = JSON.parse(out);
  assert.deepEqual([code, version], [9, process.versions.node]);
  assert.equal(cache, null, 'what `run` starts would inherit it');
  assert.notEqual(pid, child.pid);

  const staying = run(directory, ['stay'], onOldNode('24.20.99'));
  const ended = ending(staying);
  assert.ok(staying.stdout);
  await once(staying.stdout, 'data');
  staying.kill('SIGTERM');
  assert.equal((await ended).code, 45);
});

test('a failed or interrupted installation is reported in one line, and nothing is run', async (t) => {
  const directory = checkout(t);
  writeFileSync(path.join(directory, 'offline'), '');
  const { out, err, code } = await ending(run(directory, ['x']));
  assert.deepEqual([out, code], ['', 1]);
  assert.match(
    err,
    /^Installing what is missing \(once\) …\nleasehold: no such host\n"npm ci" failed \(exit code 7\)\.\n$/,
  );

  const other = checkout(t);
  writeFileSync(path.join(other, 'endless'), '');
  const slow = run(other, ['x']);
  const ended = ending(slow);
  assert.ok(slow.stderr);
  await once(slow.stderr, 'data');
  slow.kill('SIGTERM');
  assert.deepEqual([(await ended).out, (await ended).signal], ['', 'SIGTERM']);
});

test('installed it runs the build in the same process, and never installs', async (t) => {
  const directory = installed(t);
  const child = run(directory, ['exit', '3']);
  const { out, err, code } = await ending(child);
  assert.deepEqual([code, err, JSON.parse(out).pid], [3, '', child.pid]);
  assert.throws(() => readFileSync(path.join(directory, 'calls')));
});

test('installed on a Node that is too old, it reports that in one line', async (t) => {
  const directory = installed(t);
  for (const version of ['18.0.0', '22.99.99', '24.9.1', '24.20.99']) {
    const { out, err, code } = await ending(run(directory, ['x'], onOldNode(version)));
    assert.deepEqual([out, code], ['', 1], version);
    assert.equal(err, `leasehold: Node 24.21.0 or later is needed, and this is ${process.version}.\n`);
  }
  for (const version of ['24.21.0', '24.100.0', '25.0.0', '100.0.0']) {
    assert.equal((await ending(run(directory, ['x'], onOldNode(version)))).code, 0, version);
  }
});

test('a bug of the program is reported as one', async (t) => {
  const { err, code } = await ending(run(installed(t), ['throw']));
  assert.equal(code, 1);
  assert.match(err, /Error: a bug of the program\n {4}at file:/);
});

test('Node does not read the file of the command’s --env-file, nor apply NODE_OPTIONS from it', (t) => {
  const directory = installed(t);
  const command = path.join(directory, 'scripts/leasehold');
  writeFileSync(path.join(directory, 'evil.mjs'), "console.log('evil');");
  writeFileSync(path.join(directory, '.env'), `NODE_OPTIONS=--import=${path.join(directory, 'evil.mjs')}\n`);
  const PATH = `${path.dirname(process.execPath)}:${process.env['PATH']}`;
  for (const file of ['.env', '.none']) {
    const words = ['run', '--env-file', file, '--', 'x'];
    const out = execFileSync(command, words, { cwd: directory, env: { PATH }, encoding: 'utf8' });
    assert.deepEqual(JSON.parse(out).words, words);
  }
});
