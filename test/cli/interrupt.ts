/** A command that waits indefinitely and is interrupted. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { TestContext } from 'node:test';
import { COMMAND, COMPILED, type Home } from '../kit/command.ts';
import { until } from '../kit/log-receivers.ts';

/** An unreachable service, and an unknown token. */
export const ENVIRONMENT = { LEASEHOLD_ADDR: 'http://127.0.0.1:9', LEASEHOLD_TOKEN: 'lha_0123456789abcdef' };

/** Node catches SIGINT and SIGTERM from its start; SIGHUP only the command does, and it does so last. */
async function untilItCatchesSignals(pid: number): Promise<void> {
  await until(() => {
    const [, caught = '0'] = /^SigCgt:\s*([0-9a-f]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return (BigInt(`0x${caught}`) & 1n) === 1n;
  });
}

/** Its standard input stays open, and silent. */
export async function assertBrokenOff(t: TestContext, home: Home, words: readonly string[], signal: NodeJS.Signals) {
  const [program, ...first] = COMMAND;
  const child = spawn(program, [...first, ...words], {
    cwd: home.path,
    env: { PATH: process.env['PATH'] ?? '', HOME: home.path, ...COMPILED, ...ENVIRONMENT },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = new Promise((resolve) => child.on('close', (...how) => resolve(how)));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => (stderr += chunk));
  await untilItCatchesSignals(child.pid ?? 0);
  // The command is reading now, or receives the signal earlier.
  await new Promise((resolve) => setTimeout(resolve, 150));
  child.kill(signal);
  const tooLate = setTimeout(() => child.kill('SIGKILL'), 120_000);
  assert.deepEqual(await ended, [128 + constants.signals[signal], null], words.join(' '));
  clearTimeout(tooLate);
  assert.equal(stderr, signal === 'SIGINT' ? 'leasehold: Cancelled.\n' : `leasehold: Cancelled (${signal}).\n`);
}
