// Retrievals from wrk, which takes far less processor time than a generator in JavaScript.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory, withScope } from '../test/kit/directory.ts';
import { sampleRetrievals } from './targets.ts';
import type { LoadResult, RetrievalJob } from './types.ts';

const SCRIPT = fileURLToPath(import.meta.resolve('./wrk.lua'));
const MAX_SECONDS = 600;

export function runWrk(program: string, { target, connections, amount }: RetrievalJob): Promise<LoadResult> {
  return withScope(async (scope) => {
    const file = join(temporaryDirectory(scope), 'requests');
    const samples = sampleRetrievals(target, amount);
    writeFileSync(file, samples.map(({ path, token }) => `${path} ${token}\n`).join(''), { mode: 0o600 });
    const options = ['-t1', `-c${connections}`, `-d${MAX_SECONDS}s`, '--timeout', '10s', '-s', SCRIPT];
    const wrk = spawn(program, [...options, target.address, '--', file, String(amount)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    scope.after(() => wrk.kill());
    // WHY: wrk runs for a time; it has no option for an amount.
    wrk.stdout.once('data', () => wrk.kill('SIGINT'));
    const [output] = await Promise.all([text(wrk.stdout), once(wrk, 'exit')]);
    return parseWrk(output);
  });
}

/**
 * Reads what bench/wrk.lua prints.
 * @throws Error after a response with another status than 2xx or 3xx, or a failed request
 */
export function parseWrk(output: string): LoadResult {
  const json = /^\{.*\}$/m.exec(output)?.[0];
  if (json === undefined) throw new Error(`unexpected output of wrk: ${output}`);
  const { answered, microseconds, p50, p99, rejected, failed } = JSON.parse(json);
  if (rejected > 0 || failed > 0) {
    throw new Error(`of ${answered} requests ${rejected} were rejected and ${failed} failed`);
  }
  return { answered, perSecond: answered / (microseconds / 1e6), p50Ms: p50 / 1000, p99Ms: p99 / 1000 };
}
