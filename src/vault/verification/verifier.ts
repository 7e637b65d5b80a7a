/**
 * Reads the whole log, computes every link again, and holds the end against the head record. One for a vault: whoever asks while
 * it runs shares it.
 * SOURCE: interface 2.9; decisions, "Audit".
 *
 * What is verified is the log as it stands at its head record, read when the round begins. Each thread, and each of its steps,
 * opens a snapshot of its own, and they agree all the same: the service only ever appends, so that the entries up to that head
 * are the same rows in every later snapshot, and what is appended meanwhile stands behind it and is not looked at.
 */

import type { ChainPoint } from '../../crypto/chain.ts';
import type { VaultKeys } from '../../crypto/keys.ts';
import type { Clock } from '../../ledger/clock.ts';
import { SingleFlight } from '../../ledger/single-flight.ts';
import type { Store } from '../../store/store.ts';
import { BEFORE_FIRST, type ChainBreak, ChainVerifier, verifyHead } from './chain-verifier.ts';
import { verifyInParallel } from './pool.ts';
import { scanEntries } from './scan-entries.ts';

export type Verification =
  | {
      readonly isValid: true;
      readonly entries: number;
      readonly firstEntry: string | null;
      readonly lastEntry: string | null;
    }
  | {
      readonly isValid: false;
      readonly breakAtEntry: number;
      readonly breakAtTimestamp: string | null;
      readonly reason: string;
    };

/** Of a verification that runs. */
export interface VerificationProgress {
  readonly entriesChecked: number;
  readonly entriesTotal: number;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}

/** Entries checked at a time on the service's own thread: some milliseconds of work. */
const STEP_ENTRIES = 500;
/** A log that is shorter is checked before a thread would have started. */
export const WORTH_A_THREAD = 20_000;

/** The parts of a vault that its verification needs. */
export interface VerifierParts {
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly clock: Clock;
}

export class Verifier {
  readonly #parts: VerifierParts;
  readonly #rounds: SingleFlight<Verification>;
  #running: { readonly entriesTotal: number; readonly startedAt: number } | null = null;
  #checked: () => number = () => 0;

  constructor(parts: VerifierParts) {
    this.#parts = parts;
    this.#rounds = new SingleFlight((signal) => this.#verify(signal));
  }

  /** Of the log as it stands when a round begins after this; ends soon after the signal. @throws the signal's reason */
  verify(signal: AbortSignal): Promise<Verification> {
    return this.#rounds.run(signal);
  }

  /** Null where nothing is verified now. */
  get progress(): VerificationProgress | null {
    return this.#running === null ? null : { entriesChecked: this.#checked(), ...this.#running };
  }

  async #verify(signal: AbortSignal): Promise<Verification> {
    const { keys, store, clock } = this.#parts;
    const { head, last } = await store.readHead();
    const lastSeq = last?.seq ?? 0;
    this.#running = { entriesTotal: lastSeq, startedAt: clock.now() };
    try {
      // With none before 1, none missing up to the last and each number used once, the count is the last number.
      if (await store.hasEntryBeforeFirst()) return toVerification(BEFORE_FIRST);
      signal.throwIfAborted();
      const followed = await this.#follow(lastSeq, signal);
      if ('entry' in followed) return toVerification(followed);
      const beyondHead = head !== null && head.seq < followed.seq ? await this.#timestampAt(head.seq + 1) : null;
      const broken = verifyHead(keys, followed, head, beyondHead);
      if (broken !== null) return toVerification(broken);
      const firstEntry = await this.#timestampAt(1);
      return { isValid: true, entries: followed.seq, firstEntry, lastEntry: followed.timestamp };
    } finally {
      this.#running = null;
      this.#checked = () => 0;
    }
  }

  #follow(lastSeq: number, signal: AbortSignal): Promise<ChainPoint | ChainBreak> {
    if (lastSeq < WORTH_A_THREAD) return this.#followHere(lastSeq, signal);
    return verifyInParallel(this.#parts, lastSeq, signal, (checked) => {
      this.#checked = checked;
    });
  }

  async #followHere(lastSeq: number, signal: AbortSignal): Promise<ChainPoint | ChainBreak> {
    const check = new ChainVerifier(this.#parts.keys);
    this.#checked = () => check.point.seq;
    for await (const entries of scanEntries(this.#parts.store, lastSeq, STEP_ENTRIES)) {
      signal.throwIfAborted();
      for (const entry of entries) {
        const broken = check.next(entry);
        if (broken !== null) return broken;
      }
    }
    return check.point;
  }

  async #timestampAt(seq: number): Promise<string | null> {
    const [entry] = await this.#parts.store.readEntries(seq, seq, 1);
    return entry?.timestamp ?? null;
  }
}

function toVerification({ entry, timestamp, reason }: ChainBreak): Verification {
  return { isValid: false, breakAtEntry: entry, breakAtTimestamp: timestamp, reason };
}
