/** What the SDKs of a service read from the environment to use a credential by base URL. Data only. */
import { SERVICES } from './catalogue.ts';
import type { ServiceDefinition } from './definition.ts';

/**
 * What a token begins with, so that the service's SDKs accept it as a key: empty unless they check the key's shape.
 */
export function tokenPrefix({ key }: ServiceDefinition): string {
  const { prefixes, checkedBySdk } = key;
  return checkedBySdk === null ? '' : (prefixes.find((prefix) => checkedBySdk.test(prefix)) ?? '');
}

/** What tokens of use leases may begin with. */
export const TOKEN_PREFIXES: readonly string[] = [...new Set(SERVICES.map(tokenPrefix))].filter(
  (prefix) => prefix !== '',
);

/** The variables with their values. `baseUrl` replaces the origin of the credential's target. */
export function sdkEnvironment(
  { variables }: ServiceDefinition,
  baseUrl: string,
  token: string,
): Record<string, string> {
  return Object.fromEntries(
    variables.map(({ name, holds, suffix = '', value = '' }) => {
      if (holds === 'base-url') return [name, `${baseUrl}${suffix}`];
      return [name, holds === 'key' ? token : value];
    }),
  );
}
