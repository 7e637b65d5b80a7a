// Full load by wrk: a fixed number of connections kept busy, as by autocannon, by a program that takes far less processor time.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../test/kit/directory.ts';
import { openScope } from './cleanup.ts';
import type { FullJob, LoadResult } from './loads.ts';
import { processorSeconds } from './measure.ts';
import { pickRetrievals } from './sampling.ts';

const SCRIPT = fileURLToPath(import.meta.resolve('./wrk.lua'));
const MOST_SECONDS = 600;

/** As bench/wrk.lua prints it. */
interface Seen {
  readonly answered: number;
  readonly microseconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly refused: number;
  readonly failed: number;
}

export async function runWrk(program: string, { target, connections, amount }: FullJob): Promise<LoadResult> {
  const scope = openScope();
  try {
    const file = join(temporaryFolder(scope), 'requests');
    const picked = pickRetrievals(target, { amount, connections });
    writeFileSync(file, picked.map(({ path, token }) => `${path} ${token}\n`).join(''), { mode: 0o600 });
    const options = ['-t1', `-c${connections}`, `-d${MOST_SECONDS}s`, '--timeout', '10s', '-s', SCRIPT];
    const wrk = spawn(program, [...options, target.address, '--', file, String(amount)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    scope.after(() => wrk.kill());
    let usedSeconds: number | null = null;
    // WHY not its own end: wrk knows to run for a time, and not for an amount.
    wrk.stdout.once('data', () => {
      usedSeconds = wrk.pid === undefined ? null : processorSeconds(wrk.pid);
      wrk.kill('SIGINT');
    });
    const [printed] = await Promise.all([text(wrk.stdout), once(wrk, 'exit')]);
    return toResult(printed, usedSeconds ?? Number.NaN);
  } finally {
    await scope.end();
  }
}

/** `usedSeconds`: its processor time. @throws where an answer was not as it was wanted */
export function toResult(printed: string, usedSeconds: number): LoadResult {
  const json = /^\{.*\}$/m.exec(printed)?.[0];
  if (json === undefined) throw new Error(`wrk said: ${printed}`);
  const { answered, microseconds, p50, p99, p999, refused, failed } = JSON.parse(json) as Seen;
  if (refused > 0 || failed > 0)
    throw new Error(`of ${answered} answers ${refused} were refusals, and ${failed} failed`);
  const seconds = microseconds / 1e6;
  return {
    answered,
    perSecond: answered / seconds,
    p50Ms: p50 / 1000,
    p99Ms: p99 / 1000,
    p999Ms: p999 / 1000,
    busy: usedSeconds / seconds,
  };
}
