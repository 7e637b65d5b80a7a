/**
 * `npm run crash-test [-- --runs N] [--seed N]`: repeats the crash test, 20 kills per run on a new data directory with
 * the next seed, until the runs are done (default 50) or one fails. The data directory of a failed run is kept.
 */
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Scope } from '../kit/directory.ts';
import { runRounds } from './crash-rounds.ts';

const { values } = parseArgs({ options: { runs: { type: 'string' }, seed: { type: 'string' } } });
const runs = Number(values.runs ?? 50);
const firstSeed = Number(values.seed ?? randomInt(2 ** 31));

let kills = 0;
let acknowledged = 0;

/** One updated line on a terminal; elsewhere one line per run. */
function show(run: number, seed: number, more: number, isRunDone: boolean): void {
  const line = `run ${run + 1} of ${runs}, seed ${seed}: ${kills} kills, ${acknowledged + more} acknowledged, 0 lost`;
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line}${isRunDone ? '\n' : ''}`);
  else if (isRunDone) console.log(line);
}

async function crashTest(run: number, seed: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'leasehold-crash-test-'));
  const endings: (() => Promise<unknown>)[] = [];
  const scope: Scope = { after: (end) => void endings.push(async () => end()) };
  try {
    const tally = await runRounds(scope, join(directory, 'data'), seed, (sofar) => {
      kills += 1;
      show(run, seed, sofar.acknowledged, false);
    });
    acknowledged += tally.acknowledged;
    show(run, seed, 0, true);
    rmSync(directory, { recursive: true });
  } catch (error) {
    console.error(`\nFailed after ${kills} kills with --seed ${seed}; the vault is in ${directory}\n`, error);
    process.exitCode = 1;
  } finally {
    for (const end of endings) await end();
  }
}

for (let run = 0; run < runs && process.exitCode !== 1; run++) await crashTest(run, firstSeed + run);
