/**
 * Verification: reads the whole log, computes every link again, and holds the end against the head record.
 * SOURCE: interface 2.9; decisions, "Audit".
 *
 * What is verified is the log as it stands at its head record, read when the round begins. Each thread, and each of its steps,
 * opens a snapshot of its own, and they agree all the same: the service only ever appends, so that the entries up to that head
 * are the same rows in every later snapshot, and what is appended meanwhile stands behind it and is not looked at.
 */
import type { Context } from '../core/operation.ts';
import { adminRead } from '../core/operations/adminread.ts';
import { readInSteps } from './auditlog.ts';
import { type Break, ChainCheck, type ChainPoint, checkEnd } from './chaincheck.ts';
import { followInThreads } from './rangethreads.ts';
import { Rounds } from './rounds.ts';
import type { Vault } from './vault.ts';

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
      readonly why: string;
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
const NEVER = new AbortController().signal;

/** One for each vault: what asks for its verification shares rounds. */
const VERIFIERS = new WeakMap<Vault, Verifier>();

/**
 * Decides whether the caller may, and leaves the work, which ends soon after its signal, to be begun by whoever wants the
 * answer. @throws ACCESS_DENIED, UNAUTHENTICATED, SESSION_EXPIRED, UNAVAILABLE
 */
export async function admitVerification(
  vault: Vault,
  context: Context,
): Promise<(signal: AbortSignal) => Promise<Verification>> {
  await vault.ledger.submit(adminRead(context, 'audit.verify', '*', () => null));
  return (signal) => verifierOf(vault).rounds.ask(signal);
}

/** Verifies for a caller who stays. @throws as `admitVerification` */
export async function verifyLog(vault: Vault, context: Context): Promise<Verification> {
  const verify = await admitVerification(vault, context);
  return verify(NEVER);
}

/** How far the verification is that runs now, whoever asked for it; null where none does. @throws as `admitVerification` */
export async function readProgress(vault: Vault, context: Context): Promise<VerificationProgress | null> {
  await vault.ledger.submit(adminRead(context, 'audit.verify', '*', () => null));
  return verifierOf(vault).progress;
}

function verifierOf(vault: Vault): Verifier {
  const known = VERIFIERS.get(vault);
  if (known !== undefined) return known;
  const verifier = new Verifier(vault);
  VERIFIERS.set(vault, verifier);
  return verifier;
}

class Verifier {
  readonly rounds: Rounds<Verification>;
  readonly #vault: Vault;
  #running: { readonly entriesTotal: number; readonly startedAt: number } | null = null;
  #checked: () => number = () => 0;

  constructor(vault: Vault) {
    this.#vault = vault;
    this.rounds = new Rounds((signal) => this.#verify(signal));
  }

  get progress(): VerificationProgress | null {
    return this.#running === null ? null : { entriesChecked: this.#checked(), ...this.#running };
  }

  async #verify(signal: AbortSignal): Promise<Verification> {
    const { keys, store, clock } = this.#vault;
    const { head, last } = await store.readHead();
    const lastSeq = last?.seq ?? 0;
    this.#running = { entriesTotal: lastSeq, startedAt: clock.now() };
    try {
      const followed = await this.#follow(lastSeq, signal);
      if ('why' in followed) return toVerification(followed);
      const beyondHead = head !== null && head.seq < followed.seq ? await this.#timestampAt(head.seq + 1) : null;
      const broken = checkEnd(keys, followed, head, beyondHead);
      if (broken !== null) return toVerification(broken);
      const firstEntry = await this.#timestampAt(1);
      return { isValid: true, entries: followed.seq, firstEntry, lastEntry: followed.timestamp };
    } finally {
      this.#running = null;
      this.#checked = () => 0;
    }
  }

  #follow(lastSeq: number, signal: AbortSignal): Promise<ChainPoint | Break> {
    if (lastSeq < WORTH_A_THREAD) return this.#followHere(lastSeq, signal);
    return followInThreads(this.#vault, lastSeq, signal, (checked) => {
      this.#checked = checked;
    });
  }

  async #followHere(lastSeq: number, signal: AbortSignal): Promise<ChainPoint | Break> {
    const check = new ChainCheck(this.#vault.keys);
    this.#checked = () => check.point.seq;
    for await (const entries of readInSteps(this.#vault, lastSeq, STEP_ENTRIES)) {
      signal.throwIfAborted();
      for (const entry of entries) {
        const broken = check.next(entry);
        if (broken !== null) return broken;
      }
    }
    return check.point;
  }

  async #timestampAt(seq: number): Promise<string | null> {
    const [entry] = await this.#vault.store.readEntries(seq, seq, 1);
    return entry?.timestamp ?? null;
  }
}

function toVerification({ entry, timestamp, why }: Break): Verification {
  return { isValid: false, breakAtEntry: entry, breakAtTimestamp: timestamp, why };
}
