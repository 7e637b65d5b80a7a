/** Rounds in which the service's wall clock jumps forward and back under load. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dice } from '../e2e/random.ts';
import { withScope } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';
import { LoadedVault } from './loaded-vault.ts';

const PRELOADED = join(import.meta.dirname, 'jumping-clock.ts');
/** A jump is shorter than the minute for which a challenge is valid, so that every login of the load succeeds. */
const MAX_AHEAD_MS = 25_000;
const BETWEEN_JUMPS_MS = 20;
const MIN_ANSWERED = 60;

export interface JumpTally {
  jumps: number;
  acknowledged: number;
}

/** One start with so many jumps. @throws AssertionError for a lost change, a time that falls, or a longer lease */
export function jumpUnderLoad(directory: string, dice: Dice, jumps: number): Promise<JumpTally> {
  return withScope(async (scope) => {
    const vault = new LoadedVault(join(directory, 'data'), dice);
    await vault.prepare();
    const file = join(directory, 'clock');
    const service = await startProcess(scope, vault.dataDir, ['--log-level', 'error'], {
      nodeFlags: ['--import', PRELOADED],
      environment: { CLOCK_FILE: file },
    });
    let isOver = false;
    const running = vault.runLoad(service.address, service.adminToken, () => isOver);
    for (let jump = 0; jump < jumps; jump++) {
      writeFileSync(file, String(dice.below(2 * MAX_AHEAD_MS) - MAX_AHEAD_MS));
      await sleep(BETWEEN_JUMPS_MS);
    }
    await vault.journal.untilLoaded(0, MIN_ANSWERED);
    isOver = true;
    await running;
    assert.equal(await service.end('SIGTERM'), 0, service.output());
    await vault.inspect();
    return { jumps, acknowledged: vault.tally.acknowledged };
  });
}
