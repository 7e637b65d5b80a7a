/** The flags of the CLI that all subcommands share. */
import { type Flags, text, toggle } from './flag.ts';

export const FORMATS = ['table', 'json', 'yaml', 'env'] as const;

/** Flags that select the server and the identity. The settings read them, not the commands. */
export const CONNECTION_FLAGS = {
  address: text('URL', 'address of the server', { variable: 'LEASEHOLD_ADDR' }),
  agent: text('NAME', 'log in as this agent with its key', { variable: 'LEASEHOLD_AGENT' }),
  operator: text('NAME', 'log in as this operator with its key', { variable: 'LEASEHOLD_OPERATOR' }),
  'key-file': text('FILE', "the agent's or operator's private key, PEM or OpenSSH", { variable: 'LEASEHOLD_KEY_FILE' }),
  'token-file': text('FILE', 'read the token from this file', { variable: 'LEASEHOLD_TOKEN_FILE' }),
  'data-dir': text('DIR', "data directory of a server on this machine, for its address and administrator's token", {
    variable: 'LEASEHOLD_DATA_DIR',
  }),
  'ca-file': text('FILE', 'PEM file of certificate authorities; only these are trusted', {
    variable: 'LEASEHOLD_CA_FILE',
  }),
  profile: text('NAME', 'profile of leasehold.toml', { variable: 'LEASEHOLD_PROFILE' }),
  timeout: text('DURATION', 'timeout of each request, such as 10s (default 30s, or 11m for use)', {
    variable: 'LEASEHOLD_TIMEOUT',
  }),
  'insecure-http': toggle('allow plain HTTP to another machine; its network can read every value', {
    variable: 'LEASEHOLD_INSECURE_HTTP',
  }),
} as const satisfies Flags;

export const OUTPUT_FLAGS = {
  output: {
    ...text(FORMATS.join('|'), 'output format', { variable: 'LEASEHOLD_OUTPUT' }),
    byDefault: 'table',
    short: 'o',
  },
  field: text('NAME', 'print only this field'),
} as const satisfies Flags;

export const CLIENT_FLAGS = { ...OUTPUT_FLAGS, ...CONNECTION_FLAGS } as const satisfies Flags;
