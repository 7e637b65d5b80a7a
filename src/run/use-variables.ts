/**
 * The use leases of a program. It receives base URLs of the vault and, instead of keys, the tokens of leases. A token
 * works only through the vault, and the values of the credentials never reach this process. The program needs the lease
 * of its token, so leases are renewed while it runs, and the server decides each renewal again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { LeaseholdError } from '../client/errors.ts';
import { isTransient } from '../client/retries.ts';
import type { AgentUseLease, Lease } from '../client/types.ts';
import type { CredentialPath } from '../core/path.ts';
import { isLoaderVariable } from '../masking/secret-names.ts';
import { UsageError } from '../platform/errors.ts';
import { Secret } from '../vault/credentials/credential.ts';
import { baseUrlVariable, namesFor, type UseBinding } from './bindings.ts';
import { acquireEach, type InFlight, type LeaseClient, type LeaseOptions } from './leases.ts';

const VARIABLE = /^(?!__proto__$)[A-Za-z_][A-Za-z0-9_]{0,127}$/;

type IssuedUseLease = Pick<AgentUseLease, 'lease_id' | 'token' | 'base_url' | 'env'>;

export interface UseLeaseClient extends LeaseClient {
  issueUse(path: string, options: InFlight): Promise<IssuedUseLease>;
  /** The base URL under the address that the command uses. A server behind a proxy may know another address. */
  baseUrl(path: string): string;
  read(leaseId: string, options: { readonly signal: AbortSignal }): Promise<LeaseTimes>;
  renew(leaseId: string, options: { readonly signal: AbortSignal }): Promise<LeaseTimes>;
}

/** Times on the server's clock. */
type LeaseTimes = Pick<Lease, 'issued_at' | 'expires_at'>;

export type AcquiredUses = ReadonlyMap<CredentialPath, IssuedUseLease>;

/** Acquires all leases or none. @throws LeaseAcquisitionError, and the signal's reason */
export function acquireUses(
  client: UseLeaseClient,
  bindings: readonly UseBinding[],
  options: LeaseOptions,
): Promise<AcquiredUses> {
  const pathOf = ({ path }: UseBinding): CredentialPath => path;
  return acquireEach(client, bindings, pathOf, options, ({ path }, inFlight) => client.issueUse(path, inFlight));
}

/**
 * The variables of a program. Later bindings override previous ones. `token` is the token of each lease. @throws
 * UsageError for a service whose SDKs cannot be configured by variables
 */
export function useVariables(
  bindings: readonly UseBinding[],
  acquired: AcquiredUses,
  baseUrlOf: (path: CredentialPath) => string,
): Map<string, Secret> {
  const variables = new Map<string, Secret>();
  for (const binding of bindings) {
    const lease = acquired.get(binding.path);
    if (lease === undefined) continue;
    for (const [name, value] of variablesOf(binding, lease, baseUrlOf(binding.path))) variables.set(name, value);
  }
  return variables;
}

function variablesOf({ name: where, path, prefix, variable }: UseBinding, lease: IssuedUseLease, baseUrl: string) {
  const { token, env } = lease;
  if (prefix !== null) {
    const [urlName, keyName] = namesFor(prefix);
    return new Map([
      [urlName, new Secret(baseUrl)],
      [keyName, token],
    ]);
  }
  const given = Object.entries(env).map(([name, value]) => [name, value.reveal()] as const);
  const hasUrl = given.some(([, text]) => text.startsWith(lease.base_url));
  const hasKey = given.some(([, text]) => text === token.reveal());
  if (variable !== null && !(hasUrl && Object.hasOwn(env, variable))) {
    return new Map([
      [baseUrlVariable(variable), new Secret(baseUrl)],
      [variable, token],
    ]);
  }
  if (!hasUrl || !hasKey) {
    throw new UsageError(
      `${where} ${path}: no SDK of its service takes both base URL and key from variables`,
      `${where} NAME=${path} sets NAME_BASE_URL and NAME_API_KEY; the program passes them to its client.`,
    );
  }
  return new Map(
    given.map(([name, text]) => {
      // WHY: the names come from the server, and some variables make programs run code.
      if (!VARIABLE.test(name) || isLoaderVariable(name)) {
        throw new LeaseholdError('INVALID_RESPONSE', `the server names the variable ${name}, which must not be set`);
      }
      return [name, new Secret(text.startsWith(lease.base_url) ? baseUrl + text.slice(lease.base_url.length) : text)];
    }),
  );
}

/** WHY a minimum: leases of one second must not fill the audit log. WHY a maximum: a timer cannot wait longer. */
const MIN_INTERVAL_MS = 250;
const MAX_INTERVAL_MS = 12 * 3600 * 1000;
const READ_RETRY_MS = 1000;
const MAX_READS = 60;

/** Renews the leases until the signal is aborted, and reports leases that could not be renewed. Never rejects. */
export async function keepRenewed(
  client: Pick<UseLeaseClient, 'read' | 'renew'>,
  uses: ReadonlyMap<string, Pick<IssuedUseLease, 'lease_id'>>,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<void> {
  const ends = Array.from(uses, async ([path, { lease_id: leaseId }]): Promise<void> => {
    try {
      await renewOne(client, leaseId, signal);
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof LeaseholdError ? error.message : 'the server did not answer';
      say(`${path}: the use lease was not renewed: ${reason}`);
    }
  });
  await Promise.all(ends);
}

/** Rejects when the lease cannot be renewed, or the signal is aborted. */
async function renewOne(
  client: Pick<UseLeaseClient, 'read' | 'renew'>,
  leaseId: string,
  signal: AbortSignal,
): Promise<never> {
  const startedAt = performance.now();
  let { issued_at, expires_at } = await readTimes(client, leaseId, signal);
  // This machine's clock may differ from the server's, so only the elapsed time is measured here.
  const remaining = (): number => Date.parse(expires_at) - Date.parse(issued_at) - (performance.now() - startedAt);
  for (;;) {
    const half = remaining() / 2;
    // WHY: a timer of NaN milliseconds fires at once, and the lease would be renewed without a pause.
    if (!Number.isFinite(half)) throw new LeaseholdError('INVALID_RESPONSE', 'the lease has no times');
    await sleep(Math.min(Math.max(half, MIN_INTERVAL_MS), MAX_INTERVAL_MS), undefined, { signal });
    try {
      ({ expires_at } = await client.renew(leaseId, { signal }));
    } catch (error) {
      if (!isTransient(error) || remaining() <= 0) throw error;
    }
  }
}

/** Reads the times of the lease; retries for a minute. */
async function readTimes(client: Pick<UseLeaseClient, 'read'>, leaseId: string, signal: AbortSignal) {
  for (let tries = 1; ; tries++) {
    try {
      return await client.read(leaseId, { signal });
    } catch (error) {
      if (tries === MAX_READS || !isTransient(error)) throw error;
      await sleep(READ_RETRY_MS, undefined, { signal });
    }
  }
}
