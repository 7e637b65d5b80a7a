/** What looks like a secret: names of variables, and values that can be told by their form. Mistaken at times, so people can overrule it. */

/** Words of a name in capitals, wherever they stand in it. SOURCE: the names in the manuals of the usual services and tools. */
const SECRET_PARTS = new RegExp(
  [
    'SECRET|PASSWORD|PASSWD|PASSPHRASE|PWORD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|AUTH_CONFIG|CONN(?:ECTION)?_?STR(?:ING)?(?:S|_|$)',
    'TOKEN(?:S|_|$)',
    '(?:^|_)(?:CREDS|BEARER)(?:_|$)',
    // SSHPASS and DBPASS, but no COMPASS.
    '(?<!ASK|BY|COM|OVER|SUR|TRES|UNDER)PASS(?:_|$)',
  ].join('|'),
);
/** Words that say so at the end alone: KEY_FILE and AUTH_SOCK are none. Of BINDPW and DBPWD the end will do. */
const SECRET_ENDINGS = /(?:^|_)(?:KEYS?|AUTH|PAT|JWT|COOKIE|NETRC)$|PWD?$/;

/** Passed on whatever their values look like: programs hardly run without them, and a folder may be called sk-… as well. */
const NEEDED = new Set([
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LANGUAGE', 'TZ', 'PWD', 'OLDPWD', 'TMPDIR'],
  ...['DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY', 'DBUS_SESSION_BUS_ADDRESS', 'SSH_AUTH_SOCK'],
  // SOURCE: XDG Base Directory Specification
  ...['XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME'],
  ...['XDG_CONFIG_DIRS', 'XDG_DATA_DIRS'],
]);

/** Names that say more than they hold: folders, and a mark by which windows come to the front. Their values are looked at all the same. */
const HARMLESS = new Set(['PWD', 'OLDPWD', 'XDG_ACTIVATION_TOKEN']);

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
  /\b(?:whsec_[\w+/=-]{20}|gsk_[A-Za-z0-9]{20}|xai-[A-Za-z0-9]{30}|hf_[A-Za-z0-9]{20}|r8_[A-Za-z0-9]{20}|lin_api_[A-Za-z0-9]{20})/,
  /\b(?:gl(?:dt|rt|ptt|cbt|ft|soat|agent|imt|oas)-[\w-]{16}|tskey-[a-z]{2,20}-[\w-]{12}|dapi[0-9a-f]{32}|\d{8,10}:AA[\w-]{33})/,
  // Whoever has the address of such a hook can post.
  /\bhooks\.slack\.com\/(?:services|workflows|triggers)\/[\w/]{16}|\bdiscord(?:app)?\.com\/api\/webhooks\/\d+\/[\w-]{16}/,
  // Connection strings of Azure and of ODBC, and what Docker keeps.
  /\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=[^\s;]{8}|(?:^|;) ?(?:password|pwd) ?=[^;]/i,
  /"auth" ?: ?"[A-Za-z0-9+/=]{8}/,
  // A URL with a password, also where it begins with its user, as some give a proxy.
  /^[^\s/:@]{1,64}:[^\s/@]+@[\w.-]+(?::\d+)?\/?$/,
  /\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:[^\s/@]+@/i,
];

/** By its words alone; a few such names are harmless. */
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
export function isNeededName(name: string): boolean {
  return NEEDED.has(name);
}

/** Whether a name in any case is no secret's, though it looks like one. */
export function isHarmlessName(name: string): boolean {
  return HARMLESS.has(name.toUpperCase());
}
