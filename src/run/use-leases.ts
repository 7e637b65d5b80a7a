/**
 * The use leases of a program: it gets base URLs of the vault and, in place of keys, the tokens of leases. A token is
 * worth nothing elsewhere, and the values of the credentials never come here.
 */
import { LeaseholdError } from '../client/errors.ts';
import { Secret } from '../core/credential.ts';
import type { CredentialPath } from '../core/path.ts';
import { isLoaderVariable } from '../masking/secret-names.ts';
import { UsageError } from '../platform/errors.ts';
import { acquireEach, type LeaseClient, type LeaseOptions } from './leases.ts';
import { baseUrlVariable, namesFor, type UseBinding } from './use-bindings.ts';

const VARIABLE = /^(?!__proto__$)[A-Za-z_][A-Za-z0-9_]{0,127}$/;

interface IssuedUseLease {
  readonly lease_id: string;
  readonly token: Secret;
  readonly base_url: string;
  readonly env: Readonly<Record<string, Secret>>;
}

export interface UseLeaseClient extends LeaseClient {
  issueUse(
    path: string,
    options: { readonly ttlSeconds?: number; readonly signal: AbortSignal },
  ): Promise<IssuedUseLease>;
  /** The base URL under the address that the command uses; a service behind a proxy may know another one. */
  baseUrl(path: string): string;
  read(leaseId: string, options: { readonly signal: AbortSignal }): Promise<LeaseTimes>;
  renew(leaseId: string, options: { readonly signal: AbortSignal }): Promise<LeaseTimes>;
}

/** By the service's clock. */
interface LeaseTimes {
  readonly issued_at: string;
  readonly expires_at: string;
}

/** The leases by path, one for each. */
export type AcquiredUses = ReadonlyMap<CredentialPath, IssuedUseLease>;

/** All or none. @throws LeaseAcquisitionError, and the signal's reason */
export async function acquireUses(
  client: UseLeaseClient,
  bindings: readonly UseBinding[],
  options: LeaseOptions,
): Promise<AcquiredUses> {
  const acquireOne = ({ path }: UseBinding, inFlight: Parameters<UseLeaseClient['issueUse']>[1]) =>
    client.issueUse(path, inFlight);
  const acquired = await acquireEach(client, bindings, ({ path }) => path, options, acquireOne);
  return new Map(
    bindings.flatMap(({ path }) => {
      const lease = acquired.get(path);
      return lease === undefined ? [] : [[path, lease]];
    }),
  );
}

/**
 * The variables of a program; later uses override those of earlier ones. `token` of each is the lease's.
 * @throws UsageError for a service whose SDKs cannot be configured by variables
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
      // WHY: the names come from the service, and some variables make programs run code.
      if (!VARIABLE.test(name) || isLoaderVariable(name)) {
        throw new LeaseholdError('INVALID_RESPONSE', `the service names the variable ${name}, which must not be set`);
      }
      return [name, new Secret(text.startsWith(lease.base_url) ? baseUrl + text.slice(lease.base_url.length) : text)];
    }),
  );
}
