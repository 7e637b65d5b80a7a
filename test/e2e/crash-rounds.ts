/**
 * The rounds of the crash test: start the real service, inspect it, load it, kill it with SIGKILL at a random moment,
 * and start again on the same data directory. SIGKILL ends the process, not the machine: losses of power are in
 * test/faults.
 */

import { join } from 'node:path';
import { exportAuditKeys } from '../../src/crypto/chain.ts';
import { createClient, readAgentKey } from '../kit/client.ts';
import { Dice } from '../kit/dice.ts';
import type { Scope } from '../kit/directory.ts';
import { killWhileStarting, type ServiceProcess, startProcess } from '../kit/process.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';
import { Journal } from './client-journal.ts';
import { type Counter, Inspector } from './consistency-check.ts';
import type { Target } from './fixture.ts';
import { Load } from './load.ts';

/** The number of kills per run. */
export const ROUNDS = 20;

/** How many more kills may follow until one meets a request in flight. */
const MORE_ROUNDS = 10;

/** Milliseconds under load before the kill. */
const LOAD_MS = { least: 20, more: 350 };
/** A start takes about this long, so that random kills hit each of its steps. */
const START_MS = 400;

/**
 * Runs the rounds on a new data directory, and more if no kill has met a request in flight. `onRound` is called after
 * each kill. @throws AssertionError for lost, partial or unexpected changes
 */
export async function runRounds(
  scope: Scope,
  dataDir: string,
  seed: number,
  onRound: (tally: Counter) => void = () => {},
  rounds = ROUNDS,
): Promise<Counter> {
  const dice = new Dice(seed);
  const journal = new Journal();
  const load = new Load(journal, dice.fork());
  const inspector = new Inspector(journal);
  for (let round = 0; ; round++) {
    if (dice.chance(0.3)) await killWhileStarting(dataDir, dice.below(START_MS));
    const calls = journal.take();
    const service = await startProcess(scope, dataDir);
    const target = await targetOf(service, dataDir);
    if (round === 0) await load.prepare(target);
    else await inspector.inspect(target, calls);
    if (round >= rounds && (inspector.tally.inFlight > 0 || round === rounds + MORE_ROUNDS)) {
      await service.end('SIGTERM');
      break;
    }
    const running = load.run(target);
    await Promise.race([running, journal.untilLoaded(LOAD_MS.least + dice.below(LOAD_MS.more), 10)]);
    await service.end('SIGKILL');
    await running;
    onRound(inspector.tally);
  }
  return inspector.tally;
}

async function targetOf({ address, adminToken }: ServiceProcess, dataDir: string): Promise<Target> {
  return {
    address,
    admin: createClient(address, adminToken),
    keyOf: (name) => readAgentKey(dataDir, name),
    auditKey: exportAuditKeys(await vaultKeysOf(dataDir)),
    agentsDir: join(dataDir, 'agents'),
    scratchFile: `${dataDir}.ndjson`,
  };
}
