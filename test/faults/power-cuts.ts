/**
 * Losses of power: one run of the service under load is recorded, and the vault is started on the disk as the power
 * loss would have left it at any moment. All changes acknowledged before that moment are there, the log is valid, and
 * the rollback marker does not report the loss of unacknowledged entries as a rollback.
 */
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Call } from '../e2e/client-journal.ts';
import type { Dice } from '../kit/dice.ts';
import { withScope } from '../kit/directory.ts';
import { readToken } from '../kit/process.ts';
import { type Recording, readRecording, readSnapshots } from './crash-disk.ts';
import { inspectCopy, LoadedVault } from './loaded-vault.ts';
import { COUNT_ONLY, launchSupervised, wayOfFaults } from './supervised.ts';

/** Longer than the second of quiet after which the write-ahead log is written into the database. */
const QUIET_MS = 1200;
/** Minimum of answered calls, including the data of the load. It also holds on a slow machine. */
const MIN_ANSWERED = 40;

export interface RecordedRun {
  readonly recording: Recording;
  /** All calls from the beginning of the vault on. */
  readonly calls: readonly Call[];
}

/** A prepared vault is started, loaded twice with a pause, and stopped; or a first start, if `isNew`. */
export function recordRun(directory: string, dice: Dice, loadMs: number, isNew: boolean): Promise<RecordedRun> {
  const dataDir = join(directory, 'data');
  const [before, file] = [join(directory, 'before'), join(directory, 'changes')];
  const vault = new LoadedVault(dataDir, dice);
  return withScope(async (scope) => {
    mkdirSync(before);
    if (!isNew) {
      await vault.prepare();
      cpSync(dataDir, before, { recursive: true });
    }
    const service = await launchSupervised(scope, dataDir, COUNT_ONLY, { record: file });
    const address = await service.ready;
    const adminToken = readToken(join(dataDir, 'daemon.token'));
    if (!isNew) {
      for (const quietMs of [QUIET_MS, 0]) {
        let isOver = false;
        const running = vault.runLoad(address, adminToken, () => isOver);
        await vault.journal.untilLoaded(loadMs, MIN_ANSWERED);
        isOver = true;
        await running;
        await sleep(quietMs);
      }
    }
    service.child.kill('SIGTERM');
    const code = await service.ended;
    if (code !== 0) throw new Error(`the recorded service ended with ${code}: ${service.output()}`);
    const recording = wayOfFaults() === 'kernel' ? readRecording(dataDir, before, file) : readSnapshots(file);
    return { recording, calls: vault.journal.take() };
  });
}

export interface CutTally {
  cuts: number;
  /** Acknowledged before their cut; all of them were found. */
  acknowledged: number;
  /** Calls in flight at their cut, and how many of them had taken effect. */
  inFlight: number;
  happened: number;
}

/** Cuts the power at a random moment and starts the vault. @throws AssertionError, StartupError for a loss */
export async function cutPower({ recording, calls }: RecordedRun, into: string, dice: Dice, tally: CutTally) {
  const cut = dice.below(recording.times.length);
  const at = recording.times[cut] ?? 0n;
  recording.writeDisk(cut, into, dice);
  const known = calls
    .filter(({ sentAtNs }) => sentAtNs < at)
    .map((call) => (call.answeredAtNs !== null && call.answeredAtNs < at ? call : { ...call, answer: null }));
  await withScope(async (scope) => {
    const found = await inspectCopy(scope, into, known);
    tally.acknowledged += found.acknowledged;
    tally.inFlight += found.inFlight;
    tally.happened += found.happened;
  });
  tally.cuts += 1;
}
