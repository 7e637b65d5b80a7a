/**
 * Chooses faults so that a long run fails every call of every phase with every error, and a short one a fair sample.
 * The calls of each phase are counted first; then each round takes the next kind of call, in a random order of places.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Counter } from '../e2e/consistency-check.ts';
import type { Dice } from '../kit/dice.ts';
import { withScope } from '../kit/directory.ts';
import { PHASES, type Phase, type Round, runFaultRound } from './fault-rounds.ts';
import { LoadedVault } from './loaded-vault.ts';
import { type CallFault, type CallReport, COUNT_ONLY, type ErrorName } from './supervised.ts';

/** The calls that change files or directories, and those that open them. */
const CALLS = ['write', 'pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'openat', 'rename', 'unlink', 'mkdir', 'rmdir'];
const ERRORS: readonly ErrorName[] = ['EIO', 'ENOSPC', 'EDQUOT'];
const lasting = (error: ErrorName, calls: readonly string[]): CallFault => ({ calls, error, after: 0, times: null });
/** A full disk, an exceeded quota, a read-only file system, no file descriptors. */
const OUTAGES: readonly CallFault[] = [
  lasting('ENOSPC', ['write', 'pwrite64', 'ftruncate', 'openat', 'mkdir']),
  lasting('EDQUOT', ['write', 'pwrite64', 'ftruncate', 'openat', 'mkdir']),
  lasting('EROFS', ['openat', 'rename', 'unlink', 'mkdir', 'rmdir']),
  lasting('EMFILE', ['openat']),
];
/** A longer log makes each inspection slower. */
const ROUNDS_OF_A_VAULT = 12;

interface FaultTally {
  /** Rounds in which a call failed; in others the workload ended before the chosen call. */
  rounds: number;
  /** Calls that failed. */
  failures: number;
  /** Starts that were refused, and services that stopped themselves. */
  refusals: number;
  stops: number;
  acknowledged: number;
  /** Calls without a response, or with 503, and those of them that had happened. */
  inFlight: number;
  happened: number;
}

type Plan = { readonly phase: Phase; readonly fault: CallFault };

export class FaultCampaign {
  readonly tally: FaultTally = {
    rounds: 0,
    failures: 0,
    refusals: 0,
    stops: 0,
    acknowledged: 0,
    inFlight: 0,
    happened: 0,
  };
  readonly #directory: string;
  readonly #dice: Dice;
  readonly #phases: readonly Phase[];
  /** The faults of each phase and kind of call that are still to come. */
  readonly #queues: Plan[][] = [];
  #vault: LoadedVault | null = null;
  #vaults = 0;
  #roundsOfVault = 0;

  /** Chooses among the faults of so many phases, which are chosen first. */
  constructor(directory: string, dice: Dice, phases: number = PHASES.length) {
    this.#directory = directory;
    this.#dice = dice;
    this.#phases = shuffle([...PHASES], dice).slice(0, phases);
  }

  /** The faults that are still to come before every call has failed with every error. */
  get remaining(): number {
    return this.#queues.reduce((sum, queue) => sum + queue.length, 0);
  }

  /** Runs the next fault. Returns it for an error message. @throws AssertionError as `runFaultRound` and `inspect` */
  async next(onBegin: (plan: Plan) => void = () => {}): Promise<void> {
    if (this.remaining === 0) await this.#count();
    const queue = this.#queues.shift() ?? [];
    const plan = queue.pop();
    if (queue.length > 0) this.#queues.push(queue);
    if (plan === undefined) return;
    onBegin(plan);
    this.#add(await this.#run(plan));
  }

  /** Ends the current vault, whose directory is kept after a failure. */
  end(): void {
    if (this.#vault === null) return;
    const { acknowledged, inFlight, happened } = this.#vault.tally;
    this.#addCalls({ acknowledged, inFlight, happened });
    this.#vault = null;
    rmSync(join(this.#directory, `vault-${this.#vaults}`), { recursive: true });
  }

  async #count(): Promise<void> {
    const queues: Plan[][] = [];
    for (const phase of this.#phases) {
      if (phase === 'outage') {
        queues.push(OUTAGES.map((fault) => ({ phase, fault })));
        continue;
      }
      const { report } = await this.#run({ phase, fault: COUNT_ONLY });
      queues.push(...this.#plansOf(phase, report));
    }
    this.#queues.push(...shuffle(queues, this.#dice));
  }

  #plansOf(phase: Phase, { counts }: CallReport): Plan[][] {
    return CALLS.filter((call) => counts[call] !== undefined).map((call) => {
      const places = Array.from({ length: counts[call] ?? 0 }, (_, place) => place);
      // Removing needs no room.
      const errors = ['unlink', 'rmdir'].includes(call) ? ERRORS.slice(0, 1) : ERRORS;
      const faults = places.flatMap((after) => errors.map((error) => ({ calls: [call], error, after, times: 1 })));
      return shuffle(faults, this.#dice).map((fault) => ({ phase, fault }));
    });
  }

  async #run({ phase, fault }: Plan): Promise<Round> {
    if (phase === 'first start' || this.#roundsOfVault >= ROUNDS_OF_A_VAULT) this.end();
    const isNew = this.#vault === null;
    const vault = this.#vault ?? this.#newVault();
    if (isNew && phase !== 'first start') await vault.prepare();
    const round = await withScope((scope) => runFaultRound(scope, vault, phase, fault));
    if (phase === 'first start') await vault.prepare();
    await vault.inspect();
    this.#roundsOfVault += 1;
    return round;
  }

  #newVault(): LoadedVault {
    this.#vaults += 1;
    this.#roundsOfVault = 0;
    this.#vault = new LoadedVault(join(this.#directory, `vault-${this.#vaults}`, 'data'), this.#dice.fork());
    return this.#vault;
  }

  #add({ report, exitCode, wasReady }: Round): void {
    if (report.failures > 0) this.tally.rounds += 1;
    this.tally.failures += report.failures;
    if (!wasReady) this.tally.refusals += 1;
    else if (exitCode !== 0) this.tally.stops += 1;
  }

  #addCalls({ acknowledged, inFlight, happened }: Omit<Counter, 'entries'>): void {
    this.tally.acknowledged += acknowledged;
    this.tally.inFlight += inFlight;
    this.tally.happened += happened;
  }
}

function shuffle<T>(items: readonly T[], dice: Dice): T[] {
  return items
    .map((item) => ({ item, at: dice.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
