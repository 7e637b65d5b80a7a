/** Flags that several subcommands share. */
import { CONNECTION_FLAGS, OUTPUT_FLAGS } from '../flags/client-flags.ts';
import { type Flags, parsed, toggle, toSeconds } from '../flags/flag.ts';
import type { Command } from './command.ts';

/** For commands that ask for confirmation. */
export const CONFIRMATION_FLAGS = {
  yes: toggle('do not ask for confirmation', { short: 'y' }),
  'dry-run': toggle('show what would change, and change nothing'),
} as const satisfies Flags;

export const TTL = parsed('DURATION', 'request shorter leases than the policies allow, such as 90s or 15m', toSeconds);

const HELP_FLAG = toggle('show this help', { short: 'h' });

/** All flags of the command, its own first. */
export function flagsOf({ flags = {}, isLocal, printsNoRecords }: Command): Flags {
  return {
    ...flags,
    ...(isLocal === true || printsNoRecords === true ? {} : OUTPUT_FLAGS),
    ...(isLocal === true ? {} : CONNECTION_FLAGS),
    help: HELP_FLAG,
  };
}
