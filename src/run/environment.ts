/** The environment that a child inherits: the parent's without the vault's own variables and without what looks like a secret. */
import { isHarmlessName, isSecretName } from '../masking/secret-names.ts';
import { holdsSecret } from '../masking/secret-patterns.ts';

const OWN = /^LEASEHOLD_/i;
const ALL = '*';

/** Passed on whatever their values look like: programs hardly run without them, and a directory may be called sk-… as well. */
const NEEDED = new Set([
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LANGUAGE', 'TZ', 'PWD', 'OLDPWD', 'TMPDIR'],
  ...['DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY', 'DBUS_SESSION_BUS_ADDRESS', 'SSH_AUTH_SOCK'],
  // SOURCE: XDG Base Directory Specification
  ...['XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME'],
  ...['XDG_CONFIG_DIRS', 'XDG_DATA_DIRS'],
]);

export type Variables = Readonly<Record<string, string | undefined>>;

export interface Inherited {
  readonly variables: Readonly<Record<string, string>>;
  /** Names of what was left out because it looks like a secret, in alphabetical order; the vault's own always are. */
  readonly withheld: readonly string[];
}

/**
 * `keep` are names to be passed on whatever they look like. `*` among them keeps all but the vault's own, which go only by name: a
 * program that holds the vault's token holds everything.
 */
export function inheritEnvironment(parent: Variables, keep: readonly string[] = []): Inherited {
  const kept = new Set(keep);
  const variables: Record<string, string> = Object.create(null);
  const withheld: string[] = [];
  for (const [name, value] of Object.entries(parent)) {
    // WHY the second: as the name of a property it would be more than a name.
    if (value === undefined || name === '__proto__') continue;
    const isOwn = OWN.test(name);
    if (kept.has(name) || (!isOwn && (kept.has(ALL) || !looksSecret(name, value)))) variables[name] = value;
    else if (!isOwn) withheld.push(name);
  }
  return { variables, withheld: withheld.sort() };
}

/** An empty value is nobody's secret. */
function looksSecret(name: string, value: string): boolean {
  if (value === '' || NEEDED.has(name)) return false;
  return (isSecretName(name) && !isHarmlessName(name)) || holdsSecret(value);
}
