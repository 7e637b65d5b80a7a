/**
 * Keeps a program's requests to its base URLs out of proxies: over plain HTTP a proxy would read the lease's token, and
 * the server's responses.
 */
import { isThisMachine } from '../client/address.ts';

/** WHY both: programs read one of them, and where both are set they differ in which one counts. */
const VARIABLES = ['NO_PROXY', 'no_proxy'] as const;

/**
 * The variables that exempt the hosts of the base URLs; none for `https:` to another machine, where TLS protects the
 * request and a proxy may be the only way.
 */
export function proxyExceptions(
  environment: Readonly<Record<string, string>>,
  baseUrls: readonly string[],
): Record<string, string> {
  const direct = baseUrls
    .map((url) => new URL(url))
    .filter(({ protocol, hostname }) => protocol === 'http:' || isThisMachine(hostname));
  // WHY without brackets: with them, Python's httpx fails at the variable.
  const hosts = new Set(direct.map(({ hostname }) => hostname.replaceAll(/[[\]]/g, '')));
  if (hosts.size === 0) return {};
  const before = VARIABLES.map((name) => environment[name]);
  const values = before.map((own, index) => {
    const exceptions = (own ?? before[1 - index] ?? '').split(/[\s,]+/).filter((exception) => exception !== '');
    return exceptions.includes('*') ? '*' : [...new Set([...exceptions, ...hosts])].join(',');
  });
  return Object.fromEntries(VARIABLES.map((name, index) => [name, values[index] ?? '']));
}
