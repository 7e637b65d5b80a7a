/**
 * Checks all state against the audit log, in steps: each row against the newest entry about it, each newest entry
 * against its row, and, if asked for, each encrypted value. SOURCE: docs/formats.md, "State in the log".
 */

import { setTimeout as sleep } from 'node:timers/promises';
import {
  KEYSET_SUBJECT,
  RECORDED_RESOURCES,
  type RecordedResource,
  type RowOf,
  subjectOf,
} from '../../../core/resources.ts';
import { decryptValue } from '../../../crypto/value-encryption.ts';
import type { VaultKeys } from '../../../crypto/vault-keys.ts';
import { isAuthentic } from '../../../ledger/authenticated-rows.ts';
import type { Clock } from '../../../ledger/clock.ts';
import { SingleFlight } from '../../../ledger/single-flight.ts';
import { type ScannedCredential, scanValues } from '../../../store/encrypted-values.ts';
import type { Store } from '../../../store/port.ts';
import {
  type RecordedRow,
  readNewestState,
  type SubjectStep,
  scanRows,
  scanSubjects,
} from '../../../store/recorded-states.ts';
import type { ResultOf } from '../../../store/statement.ts';
import { type Authenticated, ENDED_APPROVAL_RETENTION_MS } from '../../../store/stored-data.ts';
import { readStoredKeys } from '../../../store/vault-metadata.ts';
import { yieldToEventLoop } from '../../paging.ts';
import { OPERATOR_SESSION_LIFE_MS } from '../../sessions/session-operations.ts';

/** Why a row does not count. */
const PROBLEMS = ['altered', 'not as recorded', 'missing', 'value unreadable'] as const;

interface StateProblem {
  readonly subject: string;
  readonly problem: (typeof PROBLEMS)[number];
}

export interface StateCheck {
  /** Rows, entries about rows, and credentials whose values were opened. */
  readonly checked: number;
  readonly problemCount: number;
  readonly problems: readonly StateProblem[];
}

export interface ScanParts {
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly clock: Clock;
}

const STEP_ROWS = 200;
/** Their values may take a few MiB each. */
const STEP_CREDENTIALS = 16;
const MAX_PROBLEMS = 100;
const MAX_KEYSET_TRIES = 20;

/**
 * Yields what was checked so far, after each step. A scan is not a snapshot: each step sees the rows and entries of its
 * time, which agree. @throws StoreError
 */
export async function* scanState(parts: ScanParts, withValues: boolean): AsyncGenerator<StateCheck> {
  const problems: StateProblem[] = [];
  let [checked, problemCount] = [0, 0];
  const steps = [
    checkKeyset(parts),
    ...RECORDED_RESOURCES.map((kind) => checkRows(parts, kind)),
    ...RECORDED_RESOURCES.map((kind) => checkSubjects(parts, kind)),
    ...(withValues ? [checkValues(parts)] : []),
  ];
  for (const step of steps) {
    for await (const found of step) {
      checked += found.checked;
      problemCount += found.problems.length;
      problems.push(...found.problems.slice(0, MAX_PROBLEMS - problems.length));
      yield { checked, problemCount, problems };
      await yieldToEventLoop();
    }
  }
  yield { checked, problemCount, problems };
}

type Step = Pick<StateCheck, 'checked' | 'problems'>;

/** The keyset against the newest entry about it, and each key slot in force. */
async function* checkKeyset(parts: ScanParts): AsyncGenerator<Step> {
  const { store } = parts;
  for (let tries = 1; ; tries++) {
    const recorded = await store.run(readNewestState(KEYSET_SUBJECT), 'urgent');
    const step = await compareKeyset(parts, recorded);
    // A problem counts if the keyset did not change while it was read.
    const isSettled =
      step.problems.length === 0 || recorded === (await store.run(readNewestState(KEYSET_SUBJECT), 'urgent'));
    if (!isSettled && tries < MAX_KEYSET_TRIES) continue;
    yield step;
    return;
  }
}

async function compareKeyset({ store, keys }: ScanParts, recorded: string | null): Promise<Step> {
  const stored = await store.run(readStoredKeys(), 'urgent');
  const found = keys.fork();
  const isGood = found.refresh(stored) && (recorded === null || recorded === found.state);
  const intact = stored.slots.filter((slot) => found.isSlotAuthentic(slot)).map(({ id }) => id);
  const altered = found.slotIds.filter((id) => !intact.includes(id));
  return {
    checked: 1 + found.slotIds.length,
    problems: [
      ...(isGood ? [] : [{ subject: KEYSET_SUBJECT, problem: 'not as recorded' as const }]),
      ...altered.map((id) => ({ subject: `key slot ${id}`, problem: 'altered' as const })),
    ],
  };
}

async function* checkRows({ store, keys, clock }: ScanParts, kind: RecordedResource): AsyncGenerator<Step> {
  let after: string | null = null;
  do {
    const { rows, next }: ResultOf<typeof scanRows> = await store.run(scanRows(kind, after, STEP_ROWS));
    yield { checked: rows.length, problems: rows.flatMap((row) => problemOf(kind, row, keys, clock)) };
    after = next;
  } while (after !== null);
}

function problemOf(kind: RecordedResource, recorded: RecordedRow, keys: VaultKeys, clock: Clock): StateProblem[] {
  const { state } = recorded;
  const row = recorded.row as Authenticated<RowOf[RecordedResource]>;
  const session = kind === 'session' ? (row as Authenticated<RowOf['session']>) : null;
  const subject = subjectOf(kind, row);
  if (!isAuthentic(keys.row, kind, row)) return [{ subject, problem: 'altered' }];
  if (state === row.mac) return [];
  // An ended session grants nothing, whatever the audit log says.
  const hasEnded = session !== null && session.expiresAt <= clock.now();
  return hasEnded ? [] : [{ subject, problem: 'not as recorded' }];
}

async function* checkSubjects({ store, clock }: ScanParts, kind: RecordedResource): AsyncGenerator<Step> {
  let next: string | null = firstSubject(kind, clock.now());
  while (next !== null) {
    const step: SubjectStep = await store.run(scanSubjects(kind, next, STEP_ROWS));
    const problems = step.missing.map((subject) => ({ subject, problem: 'missing' as const }));
    yield { checked: step.checked, problems };
    next = step.next;
  }
}

/** The rows of sessions and approvals are removed without an entry, long after they began. */
function firstSubject(kind: RecordedResource, now: number): string {
  if (kind === 'session') return `session:${now - OPERATOR_SESSION_LIFE_MS}`;
  if (kind !== 'approval') return `${kind}:`;
  // The first 48 bits of a UUIDv7 are its time.
  const time = (now - ENDED_APPROVAL_RETENTION_MS).toString(16).padStart(12, '0');
  return `approval:${time.slice(0, 8)}-${time.slice(8)}`;
}

async function* checkValues({ store, keys }: ScanParts): AsyncGenerator<Step> {
  let after: string | null = null;
  do {
    const from: string | null = after;
    const { rows, next }: ResultOf<typeof scanValues> = await store.run(
      scanValues(store.dialect, from, STEP_CREDENTIALS),
    );
    const found = rows.flatMap((credential) => unreadableIn(credential, keys));
    const problems = found.length === 0 ? found : await confirm(found, from, store, keys);
    yield { checked: rows.length, problems };
    after = next;
  } while (after !== null);
}

/**
 * Leaves out what a second read does not find: a value that was stored, re-encrypted or removed between the reads of
 * the first, or encrypted by another node under a key that this one has not read yet.
 */
async function confirm(
  found: readonly StateProblem[],
  from: string | null,
  store: Store,
  keys: VaultKeys,
): Promise<StateProblem[]> {
  const { rows } = await store.run(scanValues(store.dialect, from, STEP_CREDENTIALS));
  // ORDER: after the values, so that they are not under a later key. WHY a copy: only batches change the keys.
  const current = keys.fork();
  current.refresh(await store.run(readStoredKeys(), 'urgent'));
  const again = new Set(rows.flatMap((credential) => unreadableIn(credential, current)).map(({ subject }) => subject));
  return found.filter(({ subject }) => again.has(subject));
}

function unreadableIn({ id, path, type, version, values }: ScannedCredential, keys: VaultKeys): StateProblem[] {
  const problem = (number: number): StateProblem => ({
    subject: `${subjectOf('credential', { path })} version ${number}`,
    problem: 'value unreadable',
  });
  const unreadable = values.filter((value) => {
    const storedType = value.version === version ? type : value.type;
    const address = { credentialId: id, path, type: storedType, version: value.version };
    return decryptValue(keys, value.sealed, address) === null;
  });
  const isMissing = !values.some((value) => value.version === version);
  return [...unreadable.map((value) => problem(value.version)), ...(isMissing ? [problem(version)] : [])];
}

/** The background scan waits so many times longer than a step took. */
const PAUSE_FACTOR = 9;

/** Runs scans of the state for callers, who share one of a kind, and one slowly in the background after startup. */
export class StateChecker {
  readonly #parts: ScanParts;
  readonly #rows: SingleFlight<StateCheck>;
  readonly #values: SingleFlight<StateCheck>;
  #checked = 0;

  constructor(parts: ScanParts) {
    this.#parts = parts;
    this.#rows = new SingleFlight((signal) => this.#scan(signal, false));
    this.#values = new SingleFlight((signal) => this.#scan(signal, true));
  }

  /** The number of rows that the running scan has checked; 0 if none runs. */
  get checked(): number {
    return this.#checked;
  }

  /** Ends soon after the signal. @throws the signal's reason; StoreError */
  check(signal: AbortSignal, withValues: boolean): Promise<StateCheck> {
    return (withValues ? this.#values : this.#rows).run(signal);
  }

  /** Checks everything but values, with a tenth of a processor at most. */
  checkSlowly(signal: AbortSignal): Promise<StateCheck> {
    return this.#scan(signal, false, PAUSE_FACTOR);
  }

  async #scan(signal: AbortSignal, withValues: boolean, pauseFactor = 0): Promise<StateCheck> {
    let found: StateCheck = { checked: 0, problemCount: 0, problems: [] };
    let stepAt = performance.now();
    try {
      for await (found of scanState(this.#parts, withValues)) {
        signal.throwIfAborted();
        if (pauseFactor > 0) await sleep((performance.now() - stepAt) * pauseFactor, undefined, { signal });
        else this.#checked = found.checked;
        stepAt = performance.now();
      }
      return found;
    } finally {
      this.#checked = 0;
    }
  }
}
