/** Recognises names of secrets: names of variables, of fields in structured values and of assignments in files. */

/** Parts of an upper-case name, at any position. SOURCE: the names in the manuals of common services and tools. */
const SECRET_PARTS = new RegExp(
  [
    'SECRET|PASSWORD|PASSWD|PASSPHRASE|PASSCODE|PWORD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|AUTH_CONFIG|MNEMONIC',
    'CONN(?:ECTION)?_?STR(?:ING)?(?:S|_|$)',
    'TOKEN(?:S|_|\\d|$)',
    '(?:^|_)(?:CREDS|BEARER)(?:_|$)',
    // SSHPASS and DBPASS, but not COMPASS.
    '(?<!ASK|BY|COM|OVER|SUR|TRES|UNDER)PASS(?:_|\\d|$)',
  ].join('|'),
);
/**
 * Words that count only at the end: KEY_FILE and AUTH_SOCK are not secrets. BINDPW and DBPWD match by their ending
 * alone.
 */
const SECRET_ENDINGS = /(?:^|_)(?:KEYS?|AUTH|PAT|JWT|COOKIE|NETRC)\d{0,2}$|PWD?\d{0,2}$/;

/**
 * Names that look like a secret's name but are not: directories, and a token with which a window manager raises a
 * window.
 */
const HARMLESS = new Set(['PWD', 'OLDPWD', 'XDG_ACTIVATION_TOKEN']);

/**
 * Endings, in capitals, of fields that describe a secret but do not contain it: TOKEN_TYPE, PRIVATE_KEY_ID,
 * TOKEN_EXPIRES_IN.
 */
const DESCRIPTIONS =
  /PUBLIC|(?:ID|NAME|URL|URI|FILE|PATH|DIR|TYPE|TTL|HASH|DIGEST|FINGERPRINT|ENDPOINT|HOST|EXPIRY|EXPIRES(?:_?(?:IN|AT|ON))?|EXPIRATION|LIFETIME|LENGTH|SIZE|COUNT|LIMIT|VERSION|ALGORITHM|ALG|ISSUER|SCOPES?|STATUS|ENABLED|REQUIRED|LABEL|DESCRIPTION|POLICY|FIELD|HEADER|PREFIX|SUFFIX|FORMAT|REGEX|PATTERN)$/;
/** Names, in capitals, of fields that identify the owner of an adjacent secret. */
const IDENTITIES =
  /(?:^|_)(?:USER|LOGIN|EMAIL|PORT|DATABASE|DB|SERVER|REGION|ACCOUNT|ROLE|KIND|CREATED|UPDATED)(?:_AT)?$/;
/** Vault's AppRole uses this name for its password. */
const SECRET_ID = /^(?:[A-Z0-9]+_)*SECRET_ID$/;

/** Checks the words of the name only; see `isHarmlessName` for exceptions. */
export function isSecretName(name: string): boolean {
  const words = wordsOf(name);
  return SECRET_PARTS.test(words) || SECRET_ENDINGS.test(words);
}

/** Whether the name, in upper or lower case, is an exception that does not denote a secret. */
export function isHarmlessName(name: string): boolean {
  return HARMLESS.has(name.toUpperCase());
}

/** Whether a field or an assignment with this name contains a secret, and does not only describe one. */
export function isSecretField(name: string): boolean {
  if (isHarmlessName(name) || !isSecretName(name)) return false;
  const words = wordsOf(name);
  return SECRET_ID.test(words) || !DESCRIPTIONS.test(words);
}

/** Whether a field among secrets, as in `"credentials": { … }`, describes them and is not one itself. */
export function describesField(name: string): boolean {
  const words = wordsOf(name);
  return !isSecretField(name) && (IDENTITIES.test(words) || DESCRIPTIONS.test(words));
}

/** The words of a name in capitals: `npm_config__authToken` becomes NPM_CONFIG_AUTH_TOKEN. */
function wordsOf(name: string): string {
  return name
    .replaceAll(/([a-z0-9])(?=[A-Z])/g, '$1_')
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_');
}

// Environment variables that make shells, loaders, runtimes or this CLI run other programs or code. No credential may
// be delivered in one: permission to store it would be permission to run programs. SOURCE: ld.so(8), the variables that
// sudo removes, and the manuals of bash, zsh, Node, Python, Perl, Ruby, Java, .NET, Git, npm and OpenSSL.

/**
 * Prefixes of such variables. WHY not NODE_ or GIT_: NODE_AUTH_TOKEN and GIT_PASSWORD are common names of credentials.
 */
const FAMILIES =
  /^(?:LEASEHOLD|LD|DYLD|BASH|PYTHON|PERL5?|RUBY|DOTNET|CORECLR|COR|GCONV|MALLOC)_|^(?:PYTHON|PERL|RUBY|PERL5)(?:PATH|OPT|LIB|HOME|STARTUP|SHELL|DB|INSPECT|BREAKPOINT|WARNINGS|USERBASE)/;
/** npm settings in any case, except authentication. */
const NPM_SETTINGS = /^npm_config_(?!.*auth)/i;
const PROGRAMS_OF_GIT =
  /^GIT_(?:.*COMMAND|SSH|ASKPASS|PAGER|.*EDITOR|EXTERNAL_DIFF|EXEC_PATH|TEMPLATE_DIR|DIR|WORK_TREE|CONFIG.*)$/;

const NAMES = new Set([
  // Shells and terminals.
  ...['PATH', 'HOME', 'SHELL', 'IFS', 'ENV', 'SHELLOPTS', 'BASHOPTS', 'CDPATH', 'FPATH', 'ZDOTDIR', 'PROMPT_COMMAND'],
  ...['PS0', 'PS1', 'PS2', 'PS3', 'PS4', 'TERM', 'TERMINFO', 'TERMCAP', 'TMPDIR'],
  // Programs that other programs start.
  ...['EDITOR', 'VISUAL', 'PAGER', 'MANPAGER', 'BROWSER', 'LESSOPEN', 'LESSCLOSE', 'RUSTC_WRAPPER'],
  ...['SSH_ASKPASS', 'SUDO_ASKPASS', 'SSH_AUTH_SOCK'],
  // Runtimes and build tools.
  ...['NODE_OPTIONS', 'NODE_PATH', 'NODE_EXTRA_CA_CERTS', 'NODE_REPL_EXTERNAL_MODULE', 'NODE_COMPILE_CACHE'],
  ...['JAVA_HOME', 'JAVA_OPTS', 'JAVA_TOOL_OPTIONS', '_JAVA_OPTIONS', 'JDK_JAVA_OPTIONS', 'CLASSPATH', 'MAVEN_OPTS'],
  ...['GRADLE_OPTS', 'PHPRC', 'PHP_INI_SCAN_DIR', 'LUA_INIT', 'LUA_PATH', 'LUA_CPATH', 'GOFLAGS', 'MAKEFLAGS'],
  // Libraries and clients.
  ...['GLIBC_TUNABLES', 'LOCPATH', 'NLSPATH', 'HOSTALIASES', 'RES_OPTIONS', 'OPENSSL_CONF', 'OPENSSL_MODULES'],
  ...['OPENSSL_ENGINES', 'SSLKEYLOGFILE', 'AWS_CONFIG_FILE', 'KUBECONFIG', 'DOCKER_CONFIG'],
]);

export function isLoaderVariable(name: string): boolean {
  return NAMES.has(name) || FAMILIES.test(name) || NPM_SETTINGS.test(name) || PROGRAMS_OF_GIT.test(name);
}
