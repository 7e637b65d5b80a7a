// Standard input: a signal ends every command that reads it, and none reads without a limit.

import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { Cancelled } from '../../src/cli/errors.ts';
import { readInput } from '../../src/cli/input.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { newHome } from '../kit/command.ts';
import { assertBrokenOff, ENVIRONMENT } from './interrupt.ts';

const READERS: readonly (readonly string[])[] = [
  ['import', '-'],
  ['put', 'a/b', '-'],
  ['policy', 'put', 'p', '--file', '-'],
  ['policy', 'test', '-'],
  ['agent', 'add', 'bot', '--public-key', '-'],
];

for (const words of READERS) {
  test(`an abort ends the wait for silent input: leasehold ${words.join(' ')}`, async (t) => {
    const aborting = new AbortController();
    const run = newHome(t, ENVIRONMENT).leasehold(words, { input: null, signal: aborting.signal });
    setImmediate(() => aborting.abort(new Cancelled('SIGTERM')));
    assert.deepEqual(await run, { code: 143, signal: null, stdout: '', stderr: 'leasehold: Cancelled (SIGTERM).\n' });
  });
}

test('a signal of the system is such an abort', async (t) => {
  const home = newHome(t);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) await assertBrokenOff(t, home, ['import', '-'], signal);
});

/** In MiB. */
const BYTE = 1 / 1024 ** 2;

const questionOf = (stdin: PassThrough, signal = new AbortController().signal) => ({
  terminal: { stdin } as unknown as Terminal,
  signal,
});

test('all of the input is read, and more than the bound is a usage error', async () => {
  const fits = new PassThrough();
  fits.write('a');
  fits.end('é');
  assert.equal((await readInput(questionOf(fits), '-', 3 * BYTE)).toString(), 'aé');
  const endless = new PassThrough();
  endless.write('abcd');
  await assert.rejects(readInput(questionOf(endless), '-', 3 * BYTE), { message: /^standard input: is larger than/ });
});

test('an abort before or after the last byte rejects with its reason', { timeout: 120_000 }, async () => {
  const reason = new Error('broken off');
  await assert.rejects(readInput(questionOf(new PassThrough(), AbortSignal.abort(reason)), '-'), reason);
  const breaking = new AbortController();
  const stdin = new PassThrough();
  const reading = readInput(questionOf(stdin, breaking.signal), '-');
  stdin.end('abc');
  breaking.abort(reason);
  await assert.rejects(reading, reason);
});
