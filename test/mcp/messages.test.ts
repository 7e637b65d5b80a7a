// Over standard input a message is a line: one that is too long gets an error, and the next one is served.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { splitLines } from '../../src/mcp/stdio.ts';
import { scaled } from '../kit/scale.ts';
import { VALUE } from './fixture.ts';
import { ask, INITIALIZE, prepare, start, until } from './process.ts';

const MOST = 1024 * 1024;
const PATH = 'prod/db/password';

async function begin(t: TestContext) {
  const setting = await prepare(t, { [PATH]: VALUE }, {});
  const started = start(t, setting.words, setting.home);
  const answers = () =>
    started
      .stdout()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const answer = async (id: number | null) => {
    await until(() => answers().some((each) => each.id === id));
    return answers().find((each) => each.id === id);
  };
  const send = async (text: string | Uint8Array): Promise<void> => {
    if (started.child.stdin?.write(text) === false) await once(started.child.stdin, 'drain');
  };
  await send(INITIALIZE);
  await answer(1);
  return { ...setting, ...started, send, answer, answers };
}

const write = { name: 'write_credential_to_file', arguments: { path: PATH, name: 'kept' } };
const explain = (path: string) => ({ name: 'explain_access', arguments: { path } });

test('a message of more than 1 MiB gets an error, and the next ones are served', async (t) => {
  const { send, answer, stderr, child, ended, filesDir, statuses } = await begin(t);
  await send(ask(2, 'tools/call', write));
  await answer(2);
  const long = ask(3, 'tools/call', explain('x'.repeat(1_100_000)));
  // The next message arrives together with the end of the long one.
  await send(long + ask(4, 'tools/list', {}));
  const { error } = await answer(null);
  assert.deepEqual(error, { code: -32_600, message: 'a message has at most 1048576 bytes' });
  assert.equal((await answer(4)).result.tools.length > 0, true);
  assert.match(stderr(), /a message was rejected: a message has at most 1048576 bytes\n/);
  assert.equal(stderr().includes('xxxx'), false);
  assert.deepEqual(readdirSync(filesDir), ['kept']);
  child.stdin?.end();
  assert.equal(await ended, 0);
  assert.deepEqual(readdirSync(filesDir), []);
  assert.deepEqual(await statuses(), ['revoked']);
});

test('a message of exactly 1 MiB is served', async (t) => {
  const { send, answer, stderr } = await begin(t);
  const empty = ask(2, 'tools/call', explain(''));
  await send(ask(2, 'tools/call', explain('x'.repeat(MOST - empty.length + 1))));
  assert.equal('result' in (await answer(2)), true);
  assert.equal(stderr().includes('refused'), false);
});

test('an endless line is not stored, and the process ends with its client or by a signal', async (t) => {
  for (const [end, pieces] of [
    ['client', scaled(180, 300)],
    ['SIGTERM', 3],
  ] as const) {
    const { send, answer, answers, child, ended, filesDir } = await begin(t);
    await send(ask(2, 'tools/call', write));
    await answer(2);
    const before = residentKib(child.pid);
    const piece = Buffer.alloc(MOST, 'x');
    for (let n = 0; n < pieces; n++) await send(piece);
    if (before !== null) assert.equal((residentKib(child.pid) ?? 0) - before < 150_000, true);
    assert.equal(answers().length, 2);
    if (end === 'client') child.stdin?.end();
    else child.kill(end);
    assert.equal(await ended, 0);
    assert.deepEqual(readdirSync(filesDir), []);
  }
});

test('if the client stops reading, the process ends although its input stays open', async (t) => {
  const { send, answer, child, ended, filesDir, statuses } = await begin(t);
  await send(ask(2, 'tools/call', write));
  await answer(2);
  child.stdout?.destroy();
  await send(ask(3, 'tools/list', {}));
  assert.equal(await ended, 0);
  assert.deepEqual(readdirSync(filesDir), []);
  assert.deepEqual(await statuses(), ['revoked']);
});

test('a long line is reported once and discarded, however it is divided', async () => {
  for (const pieceBytes of [1, 7, 1000, 10_000]) {
    let rejected = 0;
    const lines = splitLines(1000, () => rejected++);
    const got: string[] = [];
    lines.on('data', (chunk) => got.push(String(chunk)));
    const bytes = Buffer.from(`first\n${'x'.repeat(5000)}\n\nlast\nwithout end`);
    for (let at = 0; at < bytes.length; at += pieceBytes) lines.write(bytes.subarray(at, at + pieceBytes));
    lines.end();
    await once(lines, 'end');
    assert.deepEqual([rejected, got], [1, ['first\n', '\n', 'last\n']]);
  }
});

/** Null if the system does not report it. */
function residentKib(pid: number | undefined): number | null {
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(join('/proc', String(pid), 'status'), 'utf8')) ?? [];
    return kib === undefined ? null : Number(kib);
  } catch {
    return null;
  }
}
