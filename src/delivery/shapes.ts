/** What looks like a secret: names of variables, and values that can be told by their form. Mistaken at times, so people can overrule it. */

/** Words of a name in capitals, wherever they stand in it. SOURCE: the names in the manuals of the usual services and tools. */
const SECRET_PARTS =
  /SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|TOKEN(?:S|_|$)|(?:^|_)(?:CREDS|PASS)(?:_|$)/;
/** Words that say so at the end alone: KEY_FILE and AUTH_SOCK are none. */
const SECRET_ENDINGS = /(?:^|_)(?:KEYS?|AUTH|PAT|PWD|JWT|COOKIE)$/;

/** Never taken for secrets: programs hardly run without them, or they are how one asks for a secret and not the secret. */
const HARMLESS = new Set([
  ...[
    'PATH',
    'HOME',
    'USER',
    'LOGNAME',
    'SHELL',
    'TERM',
    'COLORTERM',
    'LANG',
    'LANGUAGE',
    'TZ',
    'PWD',
    'OLDPWD',
    'TMPDIR',
  ],
  ...[
    'DISPLAY',
    'WAYLAND_DISPLAY',
    'XAUTHORITY',
    'DBUS_SESSION_BUS_ADDRESS',
    'DESKTOP_SESSION',
    'HOSTNAME',
    'EDITOR',
    'PAGER',
  ],
  ...['SSH_AUTH_SOCK', 'SSH_AGENT_PID', 'SSH_ASKPASS', 'GIT_ASKPASS', 'SUDO_ASKPASS', 'GPG_AGENT_INFO', 'GPG_TTY'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'FTP_PROXY', 'NO_PROXY', 'NO_COLOR', 'FORCE_COLOR', 'COLUMNS', 'LINES'],
]);
const HARMLESS_BEGINNINGS = /^(?:LC_|XDG_)/;

/** Of a value, in characters: no shape may take long on a large one. */
const MOST_LOOKED_AT = 16 * 1024;

/** Anywhere in a value: these are long and begin like nothing else. */
const KEY_SHAPES: readonly RegExp[] = [
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY/,
  /AGE-SECRET-KEY-1[A-Z0-9]{20}/,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\b(?:gh[oprsu]_[A-Za-z0-9]{20}|github_pat_[A-Za-z0-9_]{20}|glpat-[\w-]{16})/,
  /\b(?:sk-[\w-]{16}|[rs]k_(?:live|test)_[A-Za-z0-9]{10}|xox[a-z]-[\w-]{10}|xapp-[\w-]{10})/,
  /\b(?:AIza[\w-]{30}|ya29\.[\w-]{10}|GOCSPX-[\w-]{20})/,
  /\b(?:npm_[A-Za-z0-9]{30}|pypi-[\w-]{30}|dckr_pat_[\w-]{16}|rubygems_[a-f0-9]{30})/,
  /\b(?:hv[bsr]\.[\w-]{20}|lh[as]_[\w-]{20}|dp\.[a-z]{2,}\.[\w-]{20}|ops_eyJ|dop_v1_[a-f0-9]{20}|shp(?:at|ss)_[a-f0-9]{20})/,
  /\bSG\.[\w-]{16,}\.[\w-]{16,}/,
  /\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\./,
  // A URL with a password.
  /\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:[^\s/@]+@/i,
];

/** Of names that are not harmless. */
export function isSecretName(name: string): boolean {
  // By words: `npm_config__authToken` is AUTH and TOKEN.
  const words = name
    .replaceAll(/([a-z0-9])(?=[A-Z])/g, '$1_')
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_');
  return SECRET_PARTS.test(words) || SECRET_ENDINGS.test(words);
}

export function isKeyShaped(value: string): boolean {
  const beginning = value.slice(0, MOST_LOOKED_AT);
  return KEY_SHAPES.some((shape) => shape.test(beginning));
}

/** Whether a variable with this name is passed on whatever its value looks like. */
export function isHarmlessName(name: string): boolean {
  const words = name.toUpperCase();
  return HARMLESS.has(words) || HARMLESS_BEGINNINGS.test(words);
}
