// Runs `peers.ts` against a peer that answers with random bytes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { HARDENING } from '../../scripts/flags.mjs';
import type { Dice } from '../kit/dice.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { randomResponse, type Script } from '../kit/hostile-bytes.ts';
import { startHostilePeer } from '../kit/hostile-peer.ts';
import type { Job } from './peers.ts';

const PROGRAM = join(import.meta.dirname, 'peers.ts');

/** JSON in which a few members have another type, or names of members of objects. */
export function oddJson(dice: Dice, fields: Readonly<Record<string, unknown>>): string {
  const odd = (): unknown =>
    dice.pick<unknown>([null, 0, '', [], {}, true, { toString: 1, valueOf: 1 }, 'x'.repeat(3000), -1e99, '\u0000']);
  const entries = Object.entries(fields).map(([name, value]) => [name, dice.chance(0.1) ? odd() : value] as const);
  const text = JSON.stringify(Object.fromEntries(entries));
  if (dice.chance(0.7)) return text;
  return dice.pick([
    text.replace('{', '{"__proto__":{"status":200},"constructor":{"prototype":{}},'),
    JSON.stringify(odd()),
    text.slice(0, dice.int(text.length)),
    `${'['.repeat(20_000)}`,
    '',
  ]);
}

/** The body of the answer, which is sent as random bytes, or the whole answer. */
export type Body = (request: string, url: string, dice: Dice) => string | Script;

export function wellFormed(body: string): Script {
  const head = ['HTTP/1.1 200 OK', 'Content-Type: application/json', 'Connection: close'];
  const text = [...head, `Content-Length: ${Buffer.byteLength(body)}`, '', body].join('\r\n');
  return { pieces: [Buffer.from(text)], end: 'end' };
}

export interface Outcome {
  /** Exchanges that a peer answered. */
  readonly answered: number;
  readonly done: number;
  readonly failed: number;
}

/** Makes the exchanges in one process. @throws AssertionError if it ends before all have ended */
export async function fuzzPeer(
  scope: Scope,
  kind: Job['kind'],
  dice: Dice,
  wanted: number,
  body: Body,
): Promise<Outcome> {
  let url = '';
  const answer = (request: string): Script => {
    const given = body(request, url, dice);
    return typeof given === 'string' ? randomResponse(dice, given) : given;
  };
  const { port, answered } = await startHostilePeer(scope, answer);
  url = `http://127.0.0.1:${port}`;
  const job: Job = { kind, url, exchanges: wanted, directory: temporaryDirectory(scope) };
  const child = spawn(process.execPath, [...HARDENING, PROGRAM, JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  scope.after(() => void child.kill('SIGKILL'));
  let [output, errors] = ['', ''];
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (errors += chunk));
  const code = await new Promise((resolve) => child.on('close', resolve));
  assert.equal(code, 0, errors);
  return { answered: answered(), ...(JSON.parse(output) as { done: number; failed: number }) };
}
