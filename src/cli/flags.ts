/** Flags that many commands have. */
import type { Command, Flag } from './command.ts';
import { FORMATS } from './output/output.ts';

/** Where the service is, and who asks it. */
export const CONNECTION_FLAGS: readonly Flag[] = [
  { name: 'address', value: 'URL', help: 'where the service is (LEASEHOLD_ADDR)' },
  { name: 'agent', value: 'NAME', help: 'asks as this agent, by its key (LEASEHOLD_AGENT)', completes: 'own agent' },
  {
    name: 'key-file',
    value: 'FILE',
    help: "the agent's private key, PEM or OpenSSH (LEASEHOLD_KEY_FILE)",
    completes: 'file',
  },
  { name: 'token-file', value: 'FILE', help: 'asks with the token in it (LEASEHOLD_TOKEN_FILE)', completes: 'file' },
  {
    name: 'data-dir',
    value: 'DIR',
    help: "of a service on this machine: its address and its administrator's token (LEASEHOLD_DATA_DIR)",
    completes: 'directory',
  },
  {
    name: 'ca-file',
    value: 'FILE',
    help: "certificates in PEM: trusts only these authorities for the service's certificate (LEASEHOLD_CA_FILE)",
    completes: 'file',
  },
  { name: 'profile', value: 'NAME', help: 'of leasehold.toml (LEASEHOLD_PROFILE)' },
  { name: 'timeout', value: 'DURATION', help: 'of each call, such as 10s (default 30s, LEASEHOLD_TIMEOUT)' },
  { name: 'insecure-http', value: null, help: 'plain HTTP to another machine, which shows every value to its network' },
];

export const OUTPUT_FLAGS: readonly Flag[] = [
  {
    name: 'output',
    short: 'o',
    value: FORMATS.join('|'),
    help: 'how records are printed (default table, LEASEHOLD_OUTPUT)',
    completes: FORMATS,
  },
  { name: 'field', value: 'NAME', help: 'prints this field alone' },
];

/** Of what asks before it does something. */
export const YES: Flag = { name: 'yes', short: 'y', value: null, help: 'asks nothing' };

const HELP_FLAG: Flag = { name: 'help', short: 'h', value: null, help: 'shows this' };

/** All that the command takes, its own first. */
export function flagsOf(command: Command): readonly Flag[] {
  return [
    ...(command.flags ?? []),
    ...(command.printsRecords === true ? OUTPUT_FLAGS : []),
    ...(command.asksService ? CONNECTION_FLAGS : []),
    HELP_FLAG,
  ];
}
