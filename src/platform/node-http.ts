/**
 * Node's HTTP module. WHY not an import: an import makes Node evaluate every export of the module. That loads a client
 * and browser streams, which the server does not use and which take 15 MiB of its memory.
 */
export const http = process.getBuiltinModule('node:http');

/**
 * An agent closes a connection that was idle for this time; a request may take longer. WHY less than 5 s: common
 * servers close a connection after 5 s without a request, and a request sent then fails.
 */
export const IDLE_CONNECTION_MS = 4000;
