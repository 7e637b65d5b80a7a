/** Stores what was planned, a few at a time. One failure does not stop the rest, unless it is one that all the rest would share. */
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { mayHaveSucceeded } from '../../client/retries.ts';
import { inParallel } from '../parallel.ts';
import type { Plan, Row } from './plan.ts';

const AT_ONCE = 8;
/** For what is under way when somebody breaks off, so that it is known whether it was stored. */
const GRACE_MS = 5000;
/** Nobody is there, or nobody of that name: the next one would hear the same. */
const SHARED: ReadonlySet<string> = new Set([
  'NO_ANSWER',
  'TIMED_OUT',
  'BAD_ANSWER',
  'BAD_KEY',
  'UNAUTHENTICATED',
  'SESSION_EXPIRED',
  'AUTH_FAILED',
  'UNAVAILABLE',
  'VAULT_LOCKED',
]);

export interface Outcome {
  readonly row: Row;
  /** `there`: only new ones were wanted. `not tried`: it was broken off, or nobody answered any more. */
  readonly result: 'stored' | 'there' | 'failed' | 'not tried';
  readonly reason: string | null;
}

export interface StoringOptions {
  readonly onlyNew: boolean;
  readonly signal: AbortSignal;
  progress(done: number, of: number): void;
}

/** An outcome for each row, in their order. Never rejects for what the service answers, nor for the signal. */
export async function storeAll(
  vault: Pick<Leasehold, 'credentials'>,
  rows: readonly Row[],
  { onlyNew, signal, progress }: StoringOptions,
): Promise<readonly Outcome[]> {
  const outcomes = new Map<Row, Outcome>();
  const stopped = new AbortController();
  const grace = new AbortController();
  const begin = (): unknown => setTimeout(() => grace.abort(signal.reason), GRACE_MS).unref();
  signal.addEventListener('abort', begin, { once: true });
  const storeOne = async (row: Row): Promise<void> => {
    const outcome = await store(vault, row, onlyNew, grace.signal);
    outcomes.set(row, outcome);
    if (outcome.isShared) stopped.abort();
    progress(outcomes.size, rows.length);
  };
  try {
    await inParallel(rows, AT_ONCE, storeOne, AbortSignal.any([signal, stopped.signal]));
  } catch (error) {
    if (!signal.aborted && !stopped.signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', begin);
  }
  return rows.map((row) => outcomes.get(row) ?? { row, result: 'not tried', reason: null });
}

type Tried = Outcome & { readonly isShared: boolean };

async function store(
  { credentials }: Pick<Leasehold, 'credentials'>,
  row: Row,
  onlyIfNew: boolean,
  signal: AbortSignal,
): Promise<Tried> {
  const { value, type, description } = row.draft;
  const request = {
    path: row.path,
    value,
    ...(type === null ? {} : { type }),
    ...(description === '' ? {} : { description }),
  };
  try {
    await credentials.store(request, { onlyIfNew, signal });
    return { row, result: 'stored', reason: null, isShared: false };
  } catch (error) {
    if (signal.aborted) {
      return { row, result: 'failed', reason: 'broken off; it may have been stored', isShared: true };
    }
    if (!(error instanceof LeaseholdError)) throw error;
    if (onlyIfNew && error.code === 'ALREADY_EXISTS') {
      return { row, result: 'there', reason: null, isShared: false };
    }
    const named = error.requestId === null ? '' : `, request ${error.requestId}`;
    const doubt = mayHaveSucceeded(error) ? '; it may have been stored' : '';
    const reason = `${error.message} (${error.code}${named})${doubt}`;
    return { row, result: 'failed', reason, isShared: SHARED.has(error.code) };
  }
}

const LEASE_SECONDS = 1;

/** What may not be retrieved stays as it was planned. @throws LeaseholdError where the service can't be asked at all */
export async function compare(
  { credentials }: Pick<Leasehold, 'credentials'>,
  plan: Plan,
  { signal, progress }: { readonly signal: AbortSignal; progress(done: number, of: number): void },
): Promise<Plan> {
  const wanted = plan.rows.filter(({ state }) => state === 'new version');
  const unchanged = new Set<Row>();
  let done = 0;
  const compareOne = async (row: Row): Promise<void> => {
    try {
      const { value } = await credentials.retrieve(row.path, { ttlSeconds: LEASE_SECONDS, useCache: false, signal });
      if (value.reveal() === row.draft.value.reveal()) unchanged.add(row);
    } catch (error) {
      if (!(error instanceof LeaseholdError) || (error.code !== 'ACCESS_DENIED' && error.code !== 'NOT_FOUND'))
        throw error;
    }
    progress(++done, wanted.length);
  };
  await inParallel(wanted, AT_ONCE, compareOne, signal);
  return { ...plan, rows: plan.rows.map((row) => (unchanged.has(row) ? { ...row, state: 'unchanged' } : row)) };
}
