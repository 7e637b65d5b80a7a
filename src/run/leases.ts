/** Values for a program: lent all or none, and given back when it has ended. */
import { isEndedLease, LeaseholdError } from '../client/errors.ts';
import type { CredentialPath } from '../core/path.ts';
import type { Secret } from '../core/secret.ts';

const MOST_AT_ONCE = 8;
const GIVEN_BACK_WITHIN_MS = 5000;
/** For answers that are under way when nothing more is asked for: the service may have lent already what nobody would give back. */
const ANSWERED_WITHIN_MS = 5000;
/** What the service says of one path alone: the others may be told of as well. */
const OF_ONE_PATH: ReadonlySet<string> = new Set(['ACCESS_DENIED', 'NOT_FOUND']);

/** Whoever lends: the client library, narrowed to what is needed here. */
export interface LeaseClient {
  retrieve(
    path: string,
    options: { readonly version?: number; readonly ttlSeconds?: number; readonly signal: AbortSignal },
  ): Promise<{ readonly lease_id: string; readonly value: Secret }>;
  revoke(leaseId: string, options: { readonly signal: AbortSignal }): Promise<void>;
}

/** A variable that shall have the value of a credential. */
export interface EnvBinding {
  readonly name: string;
  readonly path: CredentialPath;
  /** Null for the newest. */
  readonly version: number | null;
}

export interface Refused {
  readonly wanted: EnvBinding;
  readonly error: unknown;
}

/** Thrown where not everything was lent; what was is given back by then. */
export class LeaseAcquisitionError extends Error {
  /** At least one, in the order in which they were wanted. */
  readonly refused: readonly Refused[];

  constructor(refused: readonly Refused[]) {
    super('not everything was lent');
    this.name = 'NotLent';
    this.refused = refused;
  }
}

export interface AcquiredLeases {
  readonly values: ReadonlyMap<string, Secret>;
  readonly leaseIds: readonly string[];
}

/**
 * One lease for each version of each path, however many variables want it. Once the signal is given nothing more is asked for; what is
 * under way has 5 seconds. @throws NotLent, and the signal's reason
 */
export async function acquireLeases(
  lender: LeaseClient,
  wanted: readonly EnvBinding[],
  { ttlSeconds, signal }: { readonly ttlSeconds: number | null; readonly signal: AbortSignal },
): Promise<AcquiredLeases> {
  const keyOf = ({ path, version }: EnvBinding): string => `${path}?${version ?? ''}`;
  const lent = new Map<string, { readonly lease_id: string; readonly value: Secret }>();
  const refused: Refused[] = [];
  const first = [...new Map(wanted.toReversed().map((each) => [keyOf(each), each])).values()].toReversed();
  const left = first.values();
  const tooLate = new AbortController();
  let isGivenUp = false;
  let timer: NodeJS.Timeout | undefined;
  const giveUp = (): void => {
    isGivenUp = true;
    timer ??= setTimeout(() => tooLate.abort(), ANSWERED_WITHIN_MS);
  };
  const options = { ...(ttlSeconds === null ? {} : { ttlSeconds }), signal: tooLate.signal };
  const work = async (): Promise<void> => {
    for (const each of left) {
      if (isGivenUp) return;
      try {
        const { version } = each;
        const own = version === null ? options : { ...options, version };
        lent.set(keyOf(each), await lender.retrieve(each.path, own));
      } catch (error) {
        if (isGivenUp) return;
        refused.push({ wanted: each, error });
        if (error instanceof LeaseholdError && !OF_ONE_PATH.has(error.code)) giveUp();
      }
    }
  };
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp);
  await Promise.all(Array.from({ length: MOST_AT_ONCE }, work));
  signal.removeEventListener('abort', giveUp);
  clearTimeout(timer);
  const leaseIds = [...lent.values()].map(({ lease_id }) => lease_id);
  if (signal.aborted || refused.length > 0) {
    await releaseLeases(lender, leaseIds);
    signal.throwIfAborted();
    throw new LeaseAcquisitionError(refused.sort((a, b) => wanted.indexOf(a.wanted) - wanted.indexOf(b.wanted)));
  }
  const values = new Map<string, Secret>();
  for (const each of wanted) {
    const held = lent.get(keyOf(each));
    if (held !== undefined) values.set(each.name, held.value);
  }
  return { values, leaseIds };
}

/** Revokes the leases within 5 seconds. Answers null, or why some were not; they end by themselves. Never rejects. */
export async function releaseLeases(lender: LeaseClient, leaseIds: readonly string[]): Promise<string | null> {
  const signal = AbortSignal.timeout(GIVEN_BACK_WITHIN_MS);
  const left = leaseIds.values();
  const reasons: string[] = [];
  const work = async (): Promise<void> => {
    for (const leaseId of left) {
      try {
        await lender.revoke(leaseId, { signal });
      } catch (error) {
        if (isEndedLease(error)) continue;
        reasons.push(error instanceof LeaseholdError ? error.message : 'the service did not answer in time');
      }
    }
  };
  await Promise.all(Array.from({ length: MOST_AT_ONCE }, work));
  if (reasons.length === 0) return null;
  return `${reasons.length} of ${leaseIds.length} leases were not revoked, and end by themselves: ${reasons[0]}`;
}
