/** Acquires the leases of a program, all or none, and releases them when it has ended. */
import { isEndedLease, LeaseholdError } from '../client/errors.ts';
import type { CredentialPath } from '../core/path.ts';
import { inParallel } from '../platform/waiting.ts';
import type { Secret } from '../vault/credentials/credential.ts';

const MAX_CONCURRENT = 8;
const RELEASE_TIMEOUT_MS = 5000;
/** WHY requests are awaited after an abort: the server may have issued leases whose responses are in flight. */
const IN_FLIGHT_TIMEOUT_MS = 5000;
/** Errors that concern a single path; the other paths are still requested, so that all errors are reported. */
const SINGLE_PATH_ERRORS: ReadonlySet<string> = new Set([
  'ACCESS_DENIED',
  'NOT_FOUND',
  'APPROVAL_DENIED',
  'APPROVAL_TIMED_OUT',
  'APPROVAL_WITHDRAWN',
  'NO_APPROVER',
]);

/** The options of a request for a lease. */
export interface InFlight {
  readonly ttlSeconds?: number;
  readonly signal: AbortSignal;
}

export interface LeaseClient {
  retrieve(
    path: string,
    options: InFlight & { readonly version?: number },
  ): Promise<{ readonly lease_id: string; readonly value: Secret }>;
  revoke(leaseId: string, options: { readonly signal: AbortSignal }): Promise<void>;
}

export interface EnvBinding {
  readonly name: string;
  readonly path: CredentialPath;
  /** Null for the newest version. */
  readonly version: number | null;
}

export interface FailedLease {
  readonly wanted: Pick<EnvBinding, 'name' | 'path'>;
  readonly error: unknown;
}

/** Thrown when a lease was denied. The leases that were already acquired have been released. */
export class LeaseAcquisitionError extends Error {
  /** At least one, in the order of the bindings. */
  readonly failures: readonly FailedLease[];

  constructor(failures: readonly FailedLease[]) {
    super('not every lease was issued');
    this.name = 'LeaseAcquisitionError';
    this.failures = failures;
  }
}

export interface AcquiredLeases {
  readonly values: ReadonlyMap<string, Secret>;
  readonly leaseIds: readonly string[];
}

export interface LeaseOptions {
  /** Null for the longest lease that the policies allow. */
  readonly ttlSeconds: number | null;
  readonly signal: AbortSignal;
}

/**
 * Acquires one lease for each version of each path, for any number of variables. After an abort no further request is
 * sent, and requests in flight may take 5 seconds. @throws LeaseAcquisitionError, and the signal's reason
 */
export async function acquireLeases(
  client: LeaseClient,
  bindings: readonly EnvBinding[],
  options: LeaseOptions,
): Promise<AcquiredLeases> {
  const keyOf = ({ path, version }: EnvBinding): string => `${path}?${version ?? ''}`;
  const acquired = await acquireEach(client, bindings, keyOf, options, ({ path, version }, inFlight) =>
    client.retrieve(path, version === null ? inFlight : { ...inFlight, version }),
  );
  const values = new Map<string, Secret>();
  for (const each of bindings) {
    const lease = acquired.get(keyOf(each));
    if (lease !== undefined) values.set(each.name, lease.value);
  }
  return { values, leaseIds: [...acquired.values()].map(({ lease_id }) => lease_id) };
}

/** Acquires one lease for each key, all or none, like `acquireLeases`. */
export async function acquireEach<K, B extends FailedLease['wanted'], L extends { readonly lease_id: string }>(
  client: Pick<LeaseClient, 'revoke'>,
  bindings: readonly B[],
  keyOf: (binding: B) => K,
  { ttlSeconds, signal }: LeaseOptions,
  acquireOne: (binding: B, options: InFlight) => Promise<L>,
): Promise<ReadonlyMap<K, L>> {
  const acquired = new Map<K, L>();
  const failures: FailedLease[] = [];
  const distinct = [...Map.groupBy(bindings, keyOf).values()].flatMap((equal) => equal.slice(0, 1));
  const timeout = new AbortController();
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => {
    isStopped = true;
    timer ??= setTimeout(() => timeout.abort(), IN_FLIGHT_TIMEOUT_MS);
  };
  const options = { ...(ttlSeconds === null ? {} : { ttlSeconds }), signal: timeout.signal };
  const acquire = async (each: B): Promise<void> => {
    if (isStopped) return;
    try {
      acquired.set(keyOf(each), await acquireOne(each, options));
    } catch (error) {
      if (isStopped) return;
      failures.push({ wanted: each, error });
      if (error instanceof LeaseholdError && !SINGLE_PATH_ERRORS.has(error.code)) stop();
    }
  };
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop);
  await inParallel(distinct, MAX_CONCURRENT, acquire);
  signal.removeEventListener('abort', stop);
  clearTimeout(timer);
  if (signal.aborted || failures.length > 0) {
    await releaseLeases(
      client,
      Array.from(acquired.values(), ({ lease_id }) => lease_id),
    );
    signal.throwIfAborted();
    const order = new Map<unknown, number>(bindings.map((each, at) => [each, at]));
    const at = ({ wanted }: FailedLease): number => order.get(wanted) ?? 0;
    throw new LeaseAcquisitionError(failures.sort((a, b) => at(a) - at(b)));
  }
  return acquired;
}

/**
 * Revokes the leases within 5 seconds. Resolves to null, or to a message about the leases that were not revoked. Never
 * rejects.
 */
export async function releaseLeases(
  client: Pick<LeaseClient, 'revoke'>,
  leaseIds: readonly string[],
): Promise<string | null> {
  const failures = await revokeAll(client, leaseIds, AbortSignal.timeout(RELEASE_TIMEOUT_MS));
  if (failures.size === 0) return null;
  const [first] = failures.values();
  const reason = first instanceof LeaseholdError ? first.message : 'the server did not answer in time';
  return `${failures.size} of ${leaseIds.length} leases were not revoked and will expire: ${reason}`;
}

/** Revokes the leases. Resolves to the errors of leases that may still be active, by lease id. Never rejects. */
async function revokeAll(
  client: Pick<LeaseClient, 'revoke'>,
  leaseIds: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, unknown>> {
  const failures = new Map<string, unknown>();
  await inParallel(leaseIds, MAX_CONCURRENT, async (leaseId) => {
    try {
      await client.revoke(leaseId, { signal });
    } catch (error) {
      if (!isEndedLease(error)) failures.set(leaseId, error);
    }
  });
  return failures;
}
