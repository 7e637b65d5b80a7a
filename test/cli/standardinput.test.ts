// Standard input: every command that reads it stops at once when somebody breaks off, and none reads without end.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { readStandardInput } from '../../src/cli/standardinput.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { COMMAND, newHome } from '../kit/command.ts';

const ENVIRONMENT = { LEASEHOLD_ADDR: 'http://127.0.0.1:9', LEASEHOLD_TOKEN: 'lha_0123456789abcdef' };
const READERS: readonly (readonly string[])[] = [
  ['import', '-'],
  ['put', 'a/b', '-'],
  ['policy', 'put', 'p', '--file', '-'],
  ['policy', 'test', '-'],
  ['agent', 'add', 'bot', '--public-key', '-'],
];

/** Node catches SIGINT and SIGTERM from its start; SIGHUP only the command does, and it does so last. */
async function untilItCatchesSignals(pid: number): Promise<void> {
  for (let waits = 0; waits < 400; waits++) {
    const [, caught = '0'] = /^SigCgt:\s*([0-9a-f]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    if ((BigInt(`0x${caught}`) & 1n) === 1n) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error('it catches no signals');
}

for (const words of READERS) {
  test(`a signal ends the wait for what never comes: leasehold ${words.join(' ')}`, async (t) => {
    const home = newHome(t);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const [program, ...first] = COMMAND;
      const child = spawn(program, [...first, ...words], {
        cwd: home.path,
        env: { PATH: process.env['PATH'] ?? '', HOME: home.path, ...ENVIRONMENT },
        stdio: ['pipe', 'pipe', 'pipe'],
      });
      t.after(() => child.kill('SIGKILL'));
      const ended = new Promise((resolve) => child.on('close', (...how) => resolve(how)));
      let stderr = '';
      child.stderr.setEncoding('utf8').on('data', (chunk) => (stderr += chunk));
      await untilItCatchesSignals(child.pid ?? 0);
      // It reads by now, or hears of the signal before it does.
      await new Promise((resolve) => setTimeout(resolve, 150));
      child.kill(signal);
      const tooLate = setTimeout(() => child.kill('SIGKILL'), 5000);
      assert.deepEqual(await ended, [1, null]);
      clearTimeout(tooLate);
      assert.equal(stderr, `leasehold: broken off (${signal}).\n`);
    }
  });
}

const questionOf = (stdin: PassThrough, signal = new AbortController().signal) => ({
  terminal: { stdin } as unknown as Terminal,
  signal,
});

test('all of it is read, and more than the bound is a mistake', async () => {
  const fits = new PassThrough();
  fits.write('a');
  fits.end('é');
  assert.equal((await readStandardInput(questionOf(fits), 3, 'too much')).toString(), 'aé');
  const endless = new PassThrough();
  endless.write('abcd');
  await assert.rejects(readStandardInput(questionOf(endless), 3, 'too much'), /^Error: too much$/);
});

test('who breaks off before, or after the last byte, is heard with the reason', { timeout: 5000 }, async () => {
  const reason = new Error('broken off');
  await assert.rejects(readStandardInput(questionOf(new PassThrough(), AbortSignal.abort(reason)), 9, ''), reason);
  const breaking = new AbortController();
  const stdin = new PassThrough();
  const reading = readStandardInput(questionOf(stdin, breaking.signal), 9, '');
  stdin.end('abc');
  breaking.abort(reason);
  await assert.rejects(reading, reason);
});
