/**
 * Environment variables that control what shells, loaders, runtimes and this command execute. No credential may be
 * delivered in one: permission to store it would be permission to run programs. SOURCE: ld.so(8), the variables that
 * sudo removes, and the manuals of bash, zsh, Node, Python, Perl, Ruby, Java, .NET, Git, npm and OpenSSL.
 */

/** Prefixes. WHY not NODE_ or GIT_: NODE_AUTH_TOKEN and GIT_PASSWORD are common names of credentials. */
const FAMILIES =
  /^(?:LEASEHOLD|LD|DYLD|BASH|PYTHON|PERL5?|RUBY|DOTNET|CORECLR|COR|GCONV|MALLOC)_|^(?:PYTHON|PERL|RUBY|PERL5)(?:PATH|OPT|LIB|HOME|STARTUP|SHELL|DB|INSPECT|BREAKPOINT|WARNINGS|USERBASE)/;
/** npm settings in any case, except authentication. */
const NPM_SETTINGS = /^npm_config_(?!.*auth)/i;
const PROGRAMS_OF_GIT =
  /^GIT_(?:.*COMMAND|SSH|ASKPASS|PAGER|.*EDITOR|EXTERNAL_DIFF|EXEC_PATH|TEMPLATE_DIR|DIR|WORK_TREE|CONFIG.*)$/;

const NAMES = new Set([
  ...['PATH', 'HOME', 'SHELL', 'IFS', 'ENV', 'SHELLOPTS', 'BASHOPTS', 'CDPATH', 'FPATH', 'ZDOTDIR', 'PROMPT_COMMAND'],
  ...['PS0', 'PS1', 'PS2', 'PS3', 'PS4', 'TERM', 'TERMINFO', 'TERMCAP', 'TMPDIR'],
  ...['EDITOR', 'VISUAL', 'PAGER', 'MANPAGER', 'BROWSER', 'LESSOPEN', 'LESSCLOSE'],
  ...['NODE_OPTIONS', 'NODE_PATH', 'NODE_EXTRA_CA_CERTS', 'NODE_REPL_EXTERNAL_MODULE', 'NODE_COMPILE_CACHE'],
  ...['JAVA_HOME', 'JAVA_OPTS', 'JAVA_TOOL_OPTIONS', '_JAVA_OPTIONS', 'JDK_JAVA_OPTIONS', 'CLASSPATH'],
  ...['MAVEN_OPTS', 'GRADLE_OPTS', 'PHPRC', 'PHP_INI_SCAN_DIR', 'LUA_INIT', 'LUA_PATH', 'LUA_CPATH', 'RUSTC_WRAPPER'],
  ...['GOFLAGS', 'MAKEFLAGS', 'SSH_ASKPASS', 'SUDO_ASKPASS', 'SSH_AUTH_SOCK', 'GLIBC_TUNABLES', 'LOCPATH', 'NLSPATH'],
  ...['HOSTALIASES', 'RES_OPTIONS', 'OPENSSL_CONF', 'OPENSSL_MODULES', 'OPENSSL_ENGINES', 'SSLKEYLOGFILE'],
  ...['AWS_CONFIG_FILE', 'KUBECONFIG', 'DOCKER_CONFIG'],
]);

export function isLoaderVariable(name: string): boolean {
  return NAMES.has(name) || FAMILIES.test(name) || NPM_SETTINGS.test(name) || PROGRAMS_OF_GIT.test(name);
}
