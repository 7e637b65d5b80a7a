/**
 * The environment that a program inherits: the parent's, without Leasehold's own variables and without values that look
 * like secrets. Also the exceptions that keep the program's requests to base URLs out of proxies.
 */
import { isThisMachine } from '../client/server-url.ts';
import { isHarmlessName, isSecretName } from '../masking/secret-names.ts';
import { holdsSecret } from '../masking/secret-patterns.ts';

const OWN = /^LEASEHOLD_/i;
const ALL = '*';

/** Always passed on, because programs need them. The value may look like a secret, such as a directory named sk-…. */
const NEEDED = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'TERM',
  'LANG',
  'LANGUAGE',
  'TZ',
  'PWD',
  'OLDPWD',
  'TMPDIR',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'XAUTHORITY',
  'DBUS_SESSION_BUS_ADDRESS',
  'SSH_AUTH_SOCK',
  // SOURCE: XDG Base Directory Specification
  'XDG_RUNTIME_DIR',
  'XDG_CONFIG_HOME',
  'XDG_DATA_HOME',
  'XDG_STATE_HOME',
  'XDG_CACHE_HOME',
  'XDG_CONFIG_DIRS',
  'XDG_DATA_DIRS',
]);

export type Variables = Readonly<Record<string, string | undefined>>;

export interface Inherited {
  readonly variables: Readonly<Record<string, string>>;
  /** Sorted names of the variables that look like secrets. Leasehold's own are withheld too, and not listed. */
  readonly withheld: readonly string[];
}

/**
 * `keep`: names that are always passed on. `*` keeps all except Leasehold's own, which must be named, because a program
 * with the vault's token can access everything.
 */
export function inheritEnvironment(parent: Variables, keep: readonly string[] = []): Inherited {
  const kept = new Set(keep);
  const variables: Record<string, string> = Object.create(null);
  const withheld: string[] = [];
  for (const [name, value] of Object.entries(parent)) {
    // WHY `__proto__`: assigning it would set the object's prototype.
    if (value === undefined || name === '__proto__') continue;
    const isOwn = OWN.test(name);
    if (kept.has(name) || (!isOwn && (kept.has(ALL) || !looksSecret(name, value)))) variables[name] = value;
    else if (!isOwn) withheld.push(name);
  }
  return { variables, withheld: withheld.sort() };
}

function looksSecret(name: string, value: string): boolean {
  if (value === '' || NEEDED.has(name)) return false;
  return (isSecretName(name) && !isHarmlessName(name)) || holdsSecret(value);
}

/** WHY both: programs read one of them, and if both are set, they differ in which one applies. */
const PROXY_VARIABLES = ['NO_PROXY', 'no_proxy'] as const;

/**
 * The variables that keep requests to the base URLs out of proxies: over plain HTTP a proxy would read the lease's
 * token and the server's responses. Empty for `https:` to another machine, where TLS protects the request and a proxy
 * may be the only route.
 */
export function proxyExceptions(
  environment: Readonly<Record<string, string>>,
  baseUrls: readonly string[],
): Record<string, string> {
  const direct = baseUrls
    .map((url) => new URL(url))
    .filter(({ protocol, hostname }) => protocol === 'http:' || isThisMachine(hostname));
  // WHY without brackets: Python's httpx fails if the variable contains them.
  const hosts = new Set(direct.map(({ hostname }) => hostname.replaceAll(/[[\]]/g, '')));
  if (hosts.size === 0) return {};
  const before = PROXY_VARIABLES.map((name) => environment[name]);
  const values = before.map((own, index) => {
    const exceptions = (own ?? before[1 - index] ?? '').split(/[\s,]+/).filter((exception) => exception !== '');
    return exceptions.includes('*') ? '*' : [...new Set([...exceptions, ...hosts])].join(',');
  });
  return Object.fromEntries(PROXY_VARIABLES.map((name, index) => [name, values[index] ?? '']));
}
