/** Flags that several commands share. */
import type { Command, Flag } from './command.ts';
import { FORMATS } from './output/output.ts';

/** Flags that select the service and the identity. */
export const CONNECTION_FLAGS: readonly Flag[] = [
  { name: 'address', value: 'URL', help: 'address of the service (LEASEHOLD_ADDR)' },
  { name: 'agent', value: 'NAME', help: 'log in as this agent with its key (LEASEHOLD_AGENT)', completes: 'own agent' },
  {
    name: 'key-file',
    value: 'FILE',
    help: "the agent's private key, PEM or OpenSSH (LEASEHOLD_KEY_FILE)",
    completes: 'file',
  },
  {
    name: 'token-file',
    value: 'FILE',
    help: 'read the token from this file (LEASEHOLD_TOKEN_FILE)',
    completes: 'file',
  },
  {
    name: 'data-dir',
    value: 'DIR',
    help: "data directory of a service on this machine, for its address and administrator's token (LEASEHOLD_DATA_DIR)",
    completes: 'directory',
  },
  {
    name: 'ca-file',
    value: 'FILE',
    help: 'PEM file of certificate authorities; only these are trusted (LEASEHOLD_CA_FILE)',
    completes: 'file',
  },
  { name: 'profile', value: 'NAME', help: 'profile of leasehold.toml (LEASEHOLD_PROFILE)' },
  { name: 'timeout', value: 'DURATION', help: 'timeout of each request, such as 10s (default 30s, LEASEHOLD_TIMEOUT)' },
  { name: 'insecure-http', value: null, help: 'allow plain HTTP to another machine; its network can read every value' },
];

export const OUTPUT_FLAGS: readonly Flag[] = [
  {
    name: 'output',
    short: 'o',
    value: FORMATS.join('|'),
    help: 'output format (default table, LEASEHOLD_OUTPUT)',
    completes: FORMATS,
  },
  { name: 'field', value: 'NAME', help: 'print only this field' },
];

/** For commands that ask for confirmation. */
export const YES: Flag = { name: 'yes', short: 'y', value: null, help: 'do not ask for confirmation' };

export const DRY_RUN: Flag = { name: 'dry-run', value: null, help: 'show what would change, and change nothing' };

export const TTL: Flag = {
  name: 'ttl',
  value: 'DURATION',
  help: 'request shorter leases than the policies allow, such as 90s or 15m',
};

const HELP_FLAG: Flag = { name: 'help', short: 'h', value: null, help: 'show this help' };

/** All flags of the command, its own first. */
export function flagsOf(command: Command): readonly Flag[] {
  return [
    ...(command.flags ?? []),
    ...(command.printsRecords === true ? OUTPUT_FLAGS : []),
    ...(command.callsService ? CONNECTION_FLAGS : []),
    HELP_FLAG,
  ];
}
