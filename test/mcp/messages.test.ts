// Over standard input a message is a line: one that is too long gets an error, and the next one is served.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type MessageId, splitLines } from '../../src/mcp/bounded-lines.ts';
import { VALUE } from './fixture.ts';
import { ask, INITIALIZE, prepare, start, startServerProcess, until } from './process.ts';

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
  const answer = async (id: number) => {
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
  const { error } = await answer(3);
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
    ['client', 300],
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

test('the SDK’s client receives the error of its call', async (t) => {
  const { use } = await startServerProcess(t, {}, {});
  await assert.rejects(use('explain_access', { path: 'x'.repeat(1_100_000) }), /a message has at most 1048576 bytes/);
  assert.equal('credentials' in (await use('list_credentials')), true);
});

test('the id of a long message is found at its beginning or end, and no other is mistaken for it', async () => {
  const long = `"${'x'.repeat(5000)}"`;
  const nested = '{"id":666,"jsonrpc":"2.0"}';
  const rows: readonly [line: string, id: MessageId][] = [
    [`{"jsonrpc":"2.0","id":7,"method":"a","params":${long}}`, 7],
    [`{"id":"sevenü","params":${long}}\r`, 'sevenü'],
    [` { "method" : "a/b" , "id" : -7 , "params":${long}}`, -7],
    [`{"method":"a","params":${long},"jsonrpc":"2.0","id":7}`, 7],
    [`{"params":${long},"id":"7","jsonrpc":"2.0","method":"a"} `, '7'],
    [`{"id":7,"params":{"a":${long},"b":${nested}}}`, 7],
    [`{"params":{"a":${long},"b":${nested}}}`, null],
    [`{"params":{"a":${long},"id":666}}`, null],
    [`{"params":{"id":666,"a":${long}}}`, null],
    [`{"params":${long.slice(0, -1)},\\"id\\":666}"}`, null],
    [`{"params":${long},"id":007}`, null],
    [`{"params":${long},"id":"a\tb"}`, null],
    [`{"params":${long},"id":"\\u0037"}`, null],
    [`{"method":"notifications/a","params":${long}}`, null],
    ['x'.repeat(5000), null],
  ];
  for (const [line, id] of rows) {
    for (const pieceBytes of [1, 7, 1000, 10_000]) {
      const ids: MessageId[] = [];
      const lines = splitLines(1000, (each) => ids.push(each));
      const got: string[] = [];
      lines.on('data', (chunk) => got.push(String(chunk)));
      const bytes = Buffer.from(`first\n${line}\n\nlast\nwithout end`);
      for (let at = 0; at < bytes.length; at += pieceBytes) lines.write(bytes.subarray(at, at + pieceBytes));
      lines.end();
      await once(lines, 'end');
      assert.deepEqual([ids, got], [[id], ['first\n', '\n', 'last\n']], `${line.slice(0, 60)} … ${line.slice(-60)}`);
    }
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
