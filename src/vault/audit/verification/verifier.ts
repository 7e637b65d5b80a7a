/**
 * Verifies the audit log: recomputes every entry MAC and compares the end of the chain with the head record. Callers of
 * a vault share one verification at a time. SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The audit log".
 *
 * INVARIANT: a verification covers the audit log up to the head record that it read first. Its threads read
 * separate snapshots, which agree up to that head, because the server only appends.
 */

import type { ChainPoint } from '../../../crypto/chain.ts';
import type { VaultKeys } from '../../../crypto/vault-keys.ts';
import type { Clock } from '../../../ledger/clock.ts';
import { SingleFlight } from '../../../ledger/single-flight.ts';
import { hasEntryBeforeFirst, readEntries, readHead } from '../../../store/audit-log.ts';
import type { Store } from '../../../store/port.ts';
import { scanEntries } from '../../paging.ts';
import { BEFORE_FIRST, type ChainBreak, ChainVerifier, verifyHead } from './chain-verifier.ts';
import { StateChecker } from './state-scan.ts';
import { verifyInParallel } from './verification-threads.ts';

export type VerificationResult =
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

export interface VerificationStatus {
  readonly entriesChecked: number;
  readonly entriesTotal: number;
  readonly startedAt: number;
}

/** Entries checked per step on the server's own thread: some milliseconds of work. */
const STEP_ENTRIES = 500;
/** Length of a log from which on threads verify it; a shorter one is verified sooner than a thread starts. */
export const THREADS_THRESHOLD = 20_000;

export interface VerifierParts {
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly clock: Clock;
}

export class Verifier {
  readonly state: StateChecker;
  readonly #parts: VerifierParts;
  readonly #runs: SingleFlight<VerificationResult>;
  #running: { readonly entriesTotal: number; readonly startedAt: number } | null = null;
  #checked = 0;

  constructor(parts: VerifierParts) {
    this.#parts = parts;
    this.state = new StateChecker(parts);
    this.#runs = new SingleFlight((signal) => this.#verify(signal));
  }

  /** Covers the audit log as it is at this call or later; ends soon after the signal. @throws the signal's reason */
  verify(signal: AbortSignal): Promise<VerificationResult> {
    return this.#runs.run(signal);
  }

  /** Null unless a verification runs. */
  get status(): VerificationStatus | null {
    return this.#running === null ? null : { entriesChecked: this.#checked, ...this.#running };
  }

  async #verify(signal: AbortSignal): Promise<VerificationResult> {
    const { keys, store, clock } = this.#parts;
    const { head, last } = await store.run(readHead());
    const lastSeq = last?.seq ?? 0;
    this.#running = { entriesTotal: lastSeq, startedAt: clock.now() };
    try {
      // The chain starts at 1 and has no gaps, so its last number is the number of its entries.
      if (await store.run(hasEntryBeforeFirst())) return toResult(BEFORE_FIRST);
      signal.throwIfAborted();
      const end = await this.#verifyChain(lastSeq, signal);
      if ('entry' in end) return toResult(end);
      const beyondHead = head !== null && head.seq < end.seq ? await this.#timestampAt(head.seq + 1) : null;
      const broken = verifyHead(keys, end, head, beyondHead);
      if (broken !== null) return toResult(broken);
      const firstEntry = await this.#timestampAt(1);
      return { isValid: true, entries: end.seq, firstEntry, lastEntry: end.timestamp };
    } finally {
      this.#running = null;
      this.#checked = 0;
    }
  }

  #verifyChain(lastSeq: number, signal: AbortSignal): Promise<ChainPoint | ChainBreak> {
    if (lastSeq < THREADS_THRESHOLD) return this.#verifyInline(lastSeq, signal);
    return verifyInParallel(this.#parts, lastSeq, signal, (entries) => {
      this.#checked += entries;
    });
  }

  async #verifyInline(lastSeq: number, signal: AbortSignal): Promise<ChainPoint | ChainBreak> {
    const verifier = new ChainVerifier(this.#parts.keys);
    for await (const entries of scanEntries(this.#parts.store, lastSeq, STEP_ENTRIES)) {
      signal.throwIfAborted();
      for (const entry of entries) {
        const broken = verifier.next(entry);
        if (broken !== null) return broken;
      }
      this.#checked = verifier.point.seq;
    }
    return verifier.point;
  }

  async #timestampAt(seq: number): Promise<string | null> {
    const [entry] = await this.#parts.store.run(readEntries(seq, seq, 1));
    return entry?.timestamp ?? null;
  }
}

function toResult({ entry, timestamp, reason }: ChainBreak): VerificationResult {
  return { isValid: false, breakAtEntry: entry, breakAtTimestamp: timestamp, reason };
}
