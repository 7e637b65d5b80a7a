/** Whether the base-URL variables of the catalogue's SDKs point to this vault, with the end that each SDK expects. */
import { isLoopback } from '../../client/address.ts';
import { SERVICES } from '../../core/catalogue/catalogue.ts';
import type { ServiceDefinition } from '../../core/catalogue/definition.ts';
import { pathViolation } from '../../core/path.ts';
import { type CheckResult, ok, warning } from './check-result.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** `address` has the scheme http or https. */
export function checkBaseUrls(address: URL, environment: Environment): CheckResult[] {
  return SERVICES.flatMap((service) =>
    service.variables.flatMap(({ name, holds, suffix = '' }) => {
      const text = environment[name] ?? '';
      return holds !== 'base-url' || text === '' ? [] : [check(address, environment, service, { name, suffix, text })];
    }),
  );
}

function check(
  address: URL,
  environment: Environment,
  { title, variables }: ServiceDefinition,
  { name, suffix, text }: { readonly name: string; readonly suffix: string; readonly text: string },
): CheckResult {
  const url = URL.parse(text);
  const prefix = `${address.pathname.replace(/\/+$/, '')}/use/`;
  if (url === null || !isSameServer(address, url) || !url.pathname.startsWith(prefix)) {
    return warning(name, `set to another address: SDKs of ${title} do not use this vault`);
  }
  const form = `${address.origin}${prefix}PATH/-${suffix}`;
  const [, path = '', end = null] = /^(.+?)\/-\d*(\/.*)?$/.exec(url.pathname.slice(prefix.length)) ?? [];
  const isComplete = trim(end ?? '') === trim(suffix) && url.search === '' && url.hash === '';
  if (!isComplete || pathViolation(path) !== null) return warning(name, `must have the form ${form}`);
  const keys = variables.filter(({ holds }) => holds === 'key').map((key) => key.name);
  if (keys.length > 0 && keys.every((key) => (environment[key] ?? '') === '')) {
    return warning(name, `uses ${path}, but ${keys.join(' or ')} is not set: give it a token of the vault`);
  }
  return ok(name, `uses ${path} of this vault`);
}

const trim = (path: string): string => path.replace(/\/+$/, '');

/** WHY not two addresses of loopback: another user may listen on the other one. */
function isSameServer(one: URL, other: URL): boolean {
  const isAlias = isLoopback(one.hostname) && isLoopback(other.hostname);
  const isSameHost =
    one.hostname === other.hostname || (isAlias && [one.hostname, other.hostname].includes('localhost'));
  return isSameHost && one.protocol === other.protocol && one.port === other.port;
}
