/**
 * The one door through which anything is decided or changed. It takes operations in turns: gather what is waiting, load what
 * they need, decide each in order, chain, commit all in one durable transaction, answer everybody.
 * INVARIANT: nothing is answered before its entry is on disk. If a commit fails every caller of the turn gets UNAVAILABLE, and
 * memory is read again from the store before the next turn.
 */
import { Fault } from '../core/fault.ts';
import type { CredentialId } from '../core/names.ts';
import { type Operation, succeeded } from '../core/operation.ts';
import type { Secret } from '../core/secret.ts';
import { type Keys, Loaded, type Settings, Workspace } from '../core/workspace.ts';
import { headMac } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { type Found, type Store, StoreFailure } from '../store/port.ts';
import type { Clock } from './clock.ts';
import { type Memory, readMemory } from './memory.ts';
import { Queue, type Waiting } from './queue.ts';
import { isSessionAuthentic } from './rows.ts';
import { type Answer, type DecidedTurn, decideTurn } from './turn.ts';

export interface LedgerParts {
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly clock: Clock;
  readonly settings: Settings;
  readonly memory: Memory;
  /** Called once when the storage failed so that the process must stop. */
  readonly onBroken: (failure: StoreFailure) => void;
  /** Called for each turn that could not be committed, with the cause, for the service's log. */
  readonly onFailedTurn: (error: unknown) => void;
}

/** A commit may cost a disk's sync; counts of accesses are written at the latest after so many. */
const MAX_UNCOUNTED = 10_000;
const UNAVAILABLE = 'The service could not record this, and so did not do it. Try again in a second.';

const RECOVERY_INTERVAL_MS = 1000;
const NOTHING: Operation<null> = { keys: {}, sizeBytes: 0, decide: () => succeeded(null, null) };

export type LedgerState = 'ok' | 'failing' | 'broken';

export class Ledger {
  readonly #parts: LedgerParts;
  readonly #queue = new Queue();
  #memory: Memory;
  #state: LedgerState = 'ok';
  #isRunning = false;
  #uncountedTotal = 0;
  #whenIdle: (() => void)[] = [];

  constructor(parts: LedgerParts) {
    this.#parts = parts;
    this.#memory = parts.memory;
  }

  get memory(): Memory {
    return this.#memory;
  }

  get state(): LedgerState {
    return this.#state;
  }

  /**
   * Resolves after the operation's turn is on disk; `value` is what the operation lent.
   * @throws the operation's fault, or UNAVAILABLE where it could not be recorded or too much waits.
   */
  submit<R>(operation: Operation<R>): Promise<{ reply: R; value: Secret | null }> {
    return new Promise((resolve, reject) => {
      const settle = (answer: Answer): void => {
        // The answer is this operation's own: `decideTurn` keeps their order.
        if (answer.kind === 'reply') resolve({ reply: answer.reply as R, value: answer.value });
        else reject(answer.error);
      };
      if (this.#state === 'broken') throw unavailable();
      this.#queue.add({ operation, settle });
      this.#wake();
    });
  }

  /** Resolves when nothing waits and no turn runs. */
  idle(): Promise<void> {
    if (!this.#isRunning && this.#queue.isEmpty) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  #wake(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    setImmediate(() => this.#gather(0));
  }

  /**
   * WHY: what arrives in a row of rounds of the loop shares a turn, and its one sync. It begins when a round brought nothing new:
   * a caller alone waits for one round, some microseconds.
   */
  #gather(before: number): void {
    const { length } = this.#queue;
    if (length > before && !this.#queue.isTurnFull) setImmediate(() => this.#gather(length));
    else void this.#run();
  }

  async #run(): Promise<void> {
    await this.#runTurn(this.#queue.takeTurn());
    if (!this.#queue.isEmpty) {
      setImmediate(() => this.#gather(0));
      return;
    }
    this.#isRunning = false;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  async #runTurn(waiting: readonly Waiting[]): Promise<void> {
    try {
      if (this.#state !== 'ok') await this.#recover();
      const answers = await this.#decideAndCommit(waiting.map(({ operation }) => operation));
      for (const [index, { settle }] of waiting.entries()) {
        settle(answers[index] ?? { kind: 'refusal', error: new Error('an operation was not answered') });
      }
    } catch (error) {
      this.#fail(error);
      for (const { settle } of waiting) settle({ kind: 'refusal', error: unavailable() });
    }
  }

  async #decideAndCommit(operations: readonly Operation<unknown>[]): Promise<readonly Answer[]> {
    const { store, clock } = this.#parts;
    const now = Math.max(clock.now(), this.#memory.lastEntryAt);
    const loaded = new Loaded();
    const wanted = operations.map((operation) => this.#takeCached(operation.keys, loaded));
    const turn = await store.openTurn(wanted, now);
    let decided: DecidedTurn;
    try {
      this.#fill(loaded, turn.found);
      decided = this.#decide(operations, loaded, now);
    } catch (error) {
      await turn.abandon();
      throw error;
    }
    const counts = this.#countsToWrite(decided);
    if (decided.entries.length === 0 && decided.changes.length === 0 && counts === null) {
      await turn.abandon();
      return decided.answers;
    }
    await turn.commit({ entries: decided.entries, head: decided.head, changes: decided.changes, counts });
    this.#remember(decided, counts !== null, now);
    return decided.answers;
  }

  #decide(operations: readonly Operation<unknown>[], loaded: Loaded, now: number): DecidedTurn {
    const { keys, settings } = this.#parts;
    const { control, tip } = this.#memory;
    return decideTurn(operations, new Workspace(control, loaded, settings), tip, now, keys);
  }

  /** What is left to load of the keys: a session that is in the cache needs no look. */
  #takeCached(keys: Keys, loaded: Loaded): Keys {
    const session = keys.session === undefined ? null : this.#memory.sessions.get(keys.session);
    if (session === null) return keys;
    loaded.sessions.set(session.tokenHash, session);
    const { session: _, ...rest } = keys;
    return rest;
  }

  /** What the rules see of what was found: sessions that authenticate, and counts with what is not written yet. */
  #fill(loaded: Loaded, found: Found): void {
    const { uncounted } = this.#memory;
    for (const session of found.sessions) {
      if (isSessionAuthentic(this.#parts.keys.row, session)) loaded.sessions.set(session.tokenHash, session);
    }
    for (const credential of found.credentials) {
      const accessCount = credential.accessCount + (uncounted.get(credential.id) ?? 0);
      loaded.credentials.set(credential.path, { ...credential, accessCount });
    }
    for (const { credentialId, version } of found.versions) loaded.putVersion(credentialId, version);
    for (const { credentialId, versions } of found.histories) loaded.histories.set(credentialId, [...versions]);
    for (const lease of found.leases) loaded.leases.set(lease.id, lease);
    for (const id of found.spentChallenges) loaded.spentChallenges.add(id);
    loaded.activeLeases = found.activeLeases;
  }

  #countsToWrite(decided: DecidedTurn): { added: ReadonlyMap<CredentialId, number>; throughSeq: number } | null {
    if (!decided.needsCounts && this.#uncountedTotal < MAX_UNCOUNTED) return null;
    const added = new Map(this.#memory.uncounted);
    for (const [id, count] of decided.accesses) added.set(id, (added.get(id) ?? 0) + count);
    return added.size === 0 ? null : { added, throughSeq: decided.head.seq };
  }

  /** Takes over what was committed. */
  #remember(decided: DecidedTurn, areCountsWritten: boolean, now: number): void {
    const memory = this.#memory;
    memory.tip = decided.head;
    if (decided.entries.length > 0) memory.lastEntryAt = now;
    if (areCountsWritten) {
      memory.uncounted = new Map();
      this.#uncountedTotal = 0;
    } else {
      for (const [id, count] of decided.accesses) {
        memory.uncounted.set(id, (memory.uncounted.get(id) ?? 0) + count);
        this.#uncountedTotal += count;
      }
    }
    for (const change of decided.changes) {
      if (change.kind === 'removeSession') memory.sessions.drop(change.tokenHash);
    }
  }

  #fail(error: unknown): void {
    this.#parts.onFailedTurn(error);
    this.#state = 'failing';
    if (error instanceof StoreFailure && error.kind === 'broken') {
      this.#state = 'broken';
      for (const { settle } of this.#queue.takeAll()) settle({ kind: 'refusal', error: unavailable() });
      this.#parts.onBroken(error);
      return;
    }
    // Without callers nothing else would notice that the store is back.
    setTimeout(() => {
      if (this.#state === 'failing') this.submit(NOTHING).catch(() => undefined);
    }, RECOVERY_INTERVAL_MS).unref();
  }

  /**
   * Reads memory again: what a failed turn changed in it is gone, and what a commit did all the same is in it. Then writes the
   * head record as it stands, so that `ok` means that a commit succeeds.
   */
  async #recover(): Promise<void> {
    if (this.#state === 'broken') throw unavailable();
    const { store, keys } = this.#parts;
    this.#memory = await readMemory(store, keys);
    this.#uncountedTotal = 0;
    const { tip } = this.#memory;
    const turn = await store.openTurn([], 0);
    const head = { ...tip, mac: headMac(keys.audit, tip.seq, tip.hmac) };
    await turn.commit({ entries: [], head, changes: [], counts: null });
    this.#state = 'ok';
  }
}

function unavailable(): Fault {
  return new Fault('UNAVAILABLE', UNAVAILABLE, 1);
}
