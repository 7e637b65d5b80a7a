/**
 * Stores the rows of a plan, sets the targets of rows with a service, and compares rows with the vault. A failure stops
 * the rest only if every request would fail.
 */
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { mayHaveSucceeded } from '../../client/retries.ts';
import { quoteWord } from '../../platform/shell-command.ts';
import { inParallel } from '../../platform/waiting.ts';
import { findService } from '../../vault/catalogue/catalogue.ts';
import { type ImportPlan, type ImportRow, isToStore } from './plan.ts';

const MAX_CONCURRENT = 8;

export type ImportTarget = Pick<Leasehold, 'credentials' | 'targets'>;

interface Progressing {
  readonly signal: AbortSignal;
  progress(done: number, of: number): void;
}

/** Returns the plan with the results. Rejects neither on an error response nor on the signal. */
export async function storeAll(
  vault: ImportTarget,
  plan: ImportPlan,
  { onlyNew, signal, progress }: Progressing & { readonly onlyNew: boolean },
): Promise<ImportPlan> {
  const wanted = plan.rows.filter((row) => isToStore(row) || (row.state === 'unchanged' && row.service !== null));
  const results = new Map<ImportRow, ImportRow>();
  const stopped = new AbortController();
  const storeOne = async (row: ImportRow): Promise<void> => {
    try {
      const state = row.state === 'unchanged' ? row.state : await store(vault, row, onlyNew);
      results.set(row, { ...row, state, ...(state === 'exists' ? { service: null } : await setService(vault, row)) });
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      if (isFatal(error)) stopped.abort();
      results.set(row, { ...row, state: 'failed', service: null, reason: reasonOf(error) });
    }
    progress(results.size, wanted.length);
  };
  // WHY the signal aborts no request: those in flight are completed, so that their result is known.
  await inParallel(wanted, MAX_CONCURRENT, storeOne, AbortSignal.any([signal, stopped.signal])).catch((error) => {
    if (!signal.aborted && !stopped.signal.aborted) throw error;
  });
  const notTried = { state: 'not tried', service: null } as const;
  return {
    ...plan,
    rows: plan.rows.map((row) => results.get(row) ?? (isToStore(row) ? { ...row, ...notTried } : row)),
  };
}

async function store(
  { credentials }: ImportTarget,
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

/** Sets the targets of a stored credential, unless it already has targets, which an administrator chose. */
async function setService({ targets }: ImportTarget, row: ImportRow): Promise<Pick<ImportRow, 'service' | 'reason'>> {
  const { path, service, state } = row;
  if (service === null) return { service, reason: null };
  try {
    if (state !== 'new') {
      const present = await targets.read(path).catch((error) => {
        if (error instanceof LeaseholdError && error.code === 'NOT_FOUND') return null;
        throw error;
      });
      if (present !== null) return { service: findService(present.service ?? ''), reason: null };
    }
    await targets.put(path, { service: service.name });
    return { service, reason: null };
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    const later = `leasehold target put ${quoteWord(path)} --service ${service.name}`;
    return {
      service: null,
      reason: `its service was not set: ${reasonOf(error)}; a caller with store and list on the path can set it: ${later}`,
    };
  }
}

/** Whether every further request would fail too. This is not so for an error response about one credential. */
function isFatal({ requestId, status }: LeaseholdError): boolean {
  return requestId === null || status === 401 || status === 503;
}

function reasonOf(error: LeaseholdError): string {
  const named = error.requestId === null ? '' : `, request ${error.requestId}`;
  return `${error.message} (${error.code}${named})${mayHaveSucceeded(error) ? '; it may have been stored' : ''}`;
}

const LEASE_SECONDS = 1;

/**
 * Marks the rows whose value is already in the vault. Each comparison is a retrieval, with an audit entry and a lease
 * of one second. A row that the caller may not retrieve keeps its planned state. @throws LeaseholdError
 */
export async function compare(
  { credentials }: ImportTarget,
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
