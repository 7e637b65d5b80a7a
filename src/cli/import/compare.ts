/** Which values are in the vault already. Each one looked at is a retrieval: an entry in the log, and a lease of a second. */
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { inParallel } from '../parallel.ts';
import type { Plan, Row } from './plan.ts';

const AT_ONCE = 8;
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
