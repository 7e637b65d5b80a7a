/** Whether the proxy variables of the environment capture requests to the vault. */
import { type CheckResult, ok, warning } from './check-result.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** `address` has the scheme http or https. */
export function checkProxies(address: URL, environment: Environment): CheckResult[] {
  const scheme = address.protocol.slice(0, -1);
  const setOf = (names: readonly string[]) =>
    names.flatMap((name) => [name.toLowerCase(), name]).filter((name) => (environment[name] ?? '') !== '');
  const proxies = setOf([`${scheme.toUpperCase()}_PROXY`, 'ALL_PROXY']);
  if (proxies.length === 0) return [];
  // WHY all spellings: which one wins depends on the program.
  const exceptions = setOf(['NO_PROXY']);
  const isExcepted = exceptions.length > 0 && exceptions.every((name) => isExcluded(address, environment[name] ?? ''));
  const names = proxies.join(', ');
  if (isExcepted) return [ok('SDK proxy', `${names} set, and ${exceptions.join(', ')} excludes the vault`)];
  const host = withoutBrackets(address.hostname);
  return [
    warning(
      'SDK proxy',
      `programs may send requests for the vault to the proxy of ${names}: add ${host} to NO_PROXY and no_proxy`,
    ),
  ];
}

const withoutBrackets = (host: string): string => host.replaceAll(/[[\]]/g, '');

/**
 * By the forms that all programs read: `*`, a host or a domain, each with an optional port. WHY not networks such as
 * 10.0.0.0/8: several SDKs ignore them.
 */
function isExcluded(address: URL, exceptions: string): boolean {
  const host = withoutBrackets(address.hostname);
  const port = address.port || (address.protocol === 'https:' ? '443' : '80');
  return exceptions.split(/[\s,]+/).some((exception) => {
    if (exception === '*') return true;
    const [, name = '', ownPort = port] = /^(\[[^\]]*\]|.*?)(?::(\d{1,5}))?$/.exec(exception.toLowerCase()) ?? [];
    // An IPv6 address without brackets has colons and no port.
    const isAddress = withoutBrackets(exception.toLowerCase()) === host;
    const domain = withoutBrackets(name).replace(/^\*?\./, '');
    return isAddress || (ownPort === port && domain !== '' && (host === domain || host.endsWith(`.${domain}`)));
  });
}
