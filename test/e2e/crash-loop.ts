/**
 * `npm run torture [-- --runs N] [--seed N]`: the crash test again and again, each run of 20 kills on a fresh data directory
 * with the next seed, until the runs are done (default 50) or something is found. What is found is left where it lies.
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

async function torture(run: number, seed: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'leasehold-torture-'));
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
    console.error(`\nFound after ${kills} kills with --seed ${seed}; the vault lies in ${directory}\n`, error);
    process.exitCode = 1;
  } finally {
    for (const end of endings) await end();
  }
}

for (let run = 0; run < runs && process.exitCode !== 1; run++) await torture(run, firstSeed + run);
