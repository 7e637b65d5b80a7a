/**
 * Node's HTTP module. WHY not an import: for that Node evaluates every export of the module, and loads a client and
 * streams of browsers, which the service does not use and which take 15 MiB of its memory.
 */
export const http = process.getBuiltinModule('node:http');
