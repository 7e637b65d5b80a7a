/**
 * Node's HTTP module. WHY not an import: for that Node evaluates every export of the module, and loads a client and
 * streams of browsers, which the service does not use and which take 15 MiB of its memory.
 */
export const http = process.getBuiltinModule('node:http');

/**
 * After this time an agent closes an idle connection; it does not limit a request. WHY less than 5 s: common servers
 * close a connection after 5 s without a request, and one sent then fails.
 */
export const IDLE_CONNECTION_MS = 4000;
