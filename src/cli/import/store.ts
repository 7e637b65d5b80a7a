/**
 * Stores the rows of a plan, and compares them with the vault. One failure does not stop the rest unless every request
 * would fail.
 */
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { mayHaveSucceeded } from '../../client/retries.ts';
import { inParallel } from '../../platform/parallel.ts';
import { type ImportPlan, type ImportRow, isToStore } from './plan.ts';

const MAX_CONCURRENT = 8;

type Vault = Pick<Leasehold, 'credentials'>;

interface Progressing {
  readonly signal: AbortSignal;
  progress(done: number, of: number): void;
}

/** Returns the plan with the results. Rejects neither on an error response nor on the signal. */
export async function storeAll(
  vault: Vault,
  plan: ImportPlan,
  { onlyNew, signal, progress }: Progressing & { readonly onlyNew: boolean },
): Promise<ImportPlan> {
  const wanted = plan.rows.filter(isToStore);
  const results = new Map<ImportRow, ImportRow>();
  const stopped = new AbortController();
  const storeOne = async (row: ImportRow): Promise<void> => {
    try {
      results.set(row, { ...row, state: await store(vault, row, onlyNew) });
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      if (isFatal(error)) stopped.abort();
      results.set(row, { ...row, state: 'failed', reason: reasonOf(error) });
    }
    progress(results.size, wanted.length);
  };
  // WHY the signal ends no request: those in flight are completed, so that their result is known.
  await inParallel(wanted, MAX_CONCURRENT, storeOne, AbortSignal.any([signal, stopped.signal])).catch((error) => {
    if (!signal.aborted && !stopped.signal.aborted) throw error;
  });
  const resultOf = (row: ImportRow): ImportRow => results.get(row) ?? { ...row, state: 'not tried' };
  return { ...plan, rows: plan.rows.map((row) => (isToStore(row) ? resultOf(row) : row)) };
}

async function store(
  { credentials }: Vault,
  { path, draft: { value, type, description } }: ImportRow,
  onlyIfNew: boolean,
): Promise<'stored' | 'exists'> {
  const request = { path, value, ...(type && { type }), ...(description && { description }) };
  try {
    await credentials.store(request, { onlyIfNew });
    return 'stored';
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === 'ALREADY_EXISTS' && onlyIfNew) return 'exists';
    throw error;
  }
}

/** Whether every further request would fail too: not an error of the service about one credential. */
function isFatal({ requestId, status }: LeaseholdError): boolean {
  return requestId === null || status === 401 || status === 503;
}

function reasonOf(error: LeaseholdError): string {
  const named = error.requestId === null ? '' : `, request ${error.requestId}`;
  return `${error.message} (${error.code}${named})${mayHaveSucceeded(error) ? '; it may have been stored' : ''}`;
}

const LEASE_SECONDS = 1;

/**
 * Marks the rows whose value is already in the vault. Each comparison is a retrieval: an audit entry and a lease of one
 * second. A row that the caller may not retrieve stays as planned. @throws LeaseholdError
 */
export async function compare(
  { credentials }: Vault,
  plan: ImportPlan,
  { signal, progress }: Progressing,
): Promise<ImportPlan> {
  const existing = plan.rows.filter(({ state }) => state === 'new version');
  const unchanged = new Set<ImportRow>();
  let done = 0;
  const compareOne = async (row: ImportRow): Promise<void> => {
    try {
      const { value } = await credentials.retrieve(row.path, { ttlSeconds: LEASE_SECONDS, useCache: false, signal });
      if (value.reveal() === row.draft.value.reveal()) unchanged.add(row);
    } catch (error) {
      const isSkipped = error instanceof LeaseholdError && /^(?:ACCESS_DENIED|NOT_FOUND)$/.test(error.code);
      if (!isSkipped) throw error;
    }
    progress(++done, existing.length);
  };
  await inParallel(existing, MAX_CONCURRENT, compareOne, signal);
  return { ...plan, rows: plan.rows.map((row) => (unchanged.has(row) ? { ...row, state: 'unchanged' } : row)) };
}
