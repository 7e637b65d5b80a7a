/**
 * Stores the rows of a plan, and compares them with the vault. One failure does not stop the rest unless every request
 * would fail.
 */
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { mayHaveSucceeded } from '../../client/retries.ts';
import { inParallel } from '../../platform/parallel.ts';
import type { ImportPlan, PlannedRow } from './plan.ts';

const MAX_CONCURRENT = 8;
/** After an interrupt, for requests in flight, so that their result is known. */
const GRACE_MS = 5000;
/** Codes of failures that every further request would repeat. */
const FATAL: ReadonlySet<string> = new Set([
  'UNREACHABLE',
  'TIMED_OUT',
  'INVALID_RESPONSE',
  'BAD_KEY',
  'UNAUTHENTICATED',
  'SESSION_EXPIRED',
  'AUTH_FAILED',
  'UNAVAILABLE',
  'VAULT_LOCKED',
]);

export interface ImportOutcome {
  readonly row: PlannedRow;
  /** `exists`: skipped because of --if-new. `not tried`: after an interrupt or a fatal failure. */
  readonly result: 'stored' | 'exists' | 'failed' | 'not tried';
  readonly reason: string | null;
}

export interface StoreAllOptions {
  readonly onlyNew: boolean;
  readonly signal: AbortSignal;
  progress(done: number, of: number): void;
}

/** Returns an outcome for each row, in order. Rejects neither on an error response nor on the signal. */
export async function storeAll(
  vault: Pick<Leasehold, 'credentials'>,
  rows: readonly PlannedRow[],
  { onlyNew, signal, progress }: StoreAllOptions,
): Promise<readonly ImportOutcome[]> {
  const outcomes = new Map<PlannedRow, ImportOutcome>();
  const stopped = new AbortController();
  const grace = new AbortController();
  const startGrace = (): unknown => setTimeout(() => grace.abort(signal.reason), GRACE_MS).unref();
  signal.addEventListener('abort', startGrace, { once: true });
  const storeOne = async (row: PlannedRow): Promise<void> => {
    const outcome = await store(vault, row, onlyNew, grace.signal);
    outcomes.set(row, outcome);
    if (outcome.isFatal) stopped.abort();
    progress(outcomes.size, rows.length);
  };
  try {
    await inParallel(rows, MAX_CONCURRENT, storeOne, AbortSignal.any([signal, stopped.signal]));
  } catch (error) {
    if (!signal.aborted && !stopped.signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', startGrace);
  }
  return rows.map((row) => outcomes.get(row) ?? { row, result: 'not tried', reason: null });
}

type Attempt = ImportOutcome & { readonly isFatal: boolean };

async function store(
  { credentials }: Pick<Leasehold, 'credentials'>,
  row: PlannedRow,
  onlyIfNew: boolean,
  signal: AbortSignal,
): Promise<Attempt> {
  const { value, type, description } = row.draft;
  const request = {
    path: row.path,
    value,
    ...(type === null ? {} : { type }),
    ...(description === '' ? {} : { description }),
  };
  try {
    await credentials.store(request, { onlyIfNew, signal });
    return { row, result: 'stored', reason: null, isFatal: false };
  } catch (error) {
    if (signal.aborted) {
      return { row, result: 'failed', reason: 'interrupted; it may have been stored', isFatal: true };
    }
    if (!(error instanceof LeaseholdError)) throw error;
    if (onlyIfNew && error.code === 'ALREADY_EXISTS') {
      return { row, result: 'exists', reason: null, isFatal: false };
    }
    const named = error.requestId === null ? '' : `, request ${error.requestId}`;
    const doubt = mayHaveSucceeded(error) ? '; it may have been stored' : '';
    const reason = `${error.message} (${error.code}${named})${doubt}`;
    return { row, result: 'failed', reason, isFatal: FATAL.has(error.code) };
  }
}

const LEASE_SECONDS = 1;

/**
 * Marks the rows whose value is already in the vault. Each comparison is a retrieval: an audit entry and a lease of one
 * second. A row that the caller may not retrieve stays as planned. @throws LeaseholdError
 */
export async function compare(
  { credentials }: Pick<Leasehold, 'credentials'>,
  plan: ImportPlan,
  { signal, progress }: { readonly signal: AbortSignal; progress(done: number, of: number): void },
): Promise<ImportPlan> {
  const existing = plan.rows.filter(({ state }) => state === 'new version');
  const unchanged = new Set<PlannedRow>();
  let done = 0;
  const compareOne = async (row: PlannedRow): Promise<void> => {
    try {
      const { value } = await credentials.retrieve(row.path, { ttlSeconds: LEASE_SECONDS, useCache: false, signal });
      if (value.reveal() === row.draft.value.reveal()) unchanged.add(row);
    } catch (error) {
      if (!(error instanceof LeaseholdError) || (error.code !== 'ACCESS_DENIED' && error.code !== 'NOT_FOUND'))
        throw error;
    }
    progress(++done, existing.length);
  };
  await inParallel(existing, MAX_CONCURRENT, compareOne, signal);
  return { ...plan, rows: plan.rows.map((row) => (unchanged.has(row) ? { ...row, state: 'unchanged' } : row)) };
}
