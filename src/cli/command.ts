/** The types of the command table: a command, its arguments and flags, and one invocation of it. */
import type { Leasehold } from '../client/leasehold.ts';
import { CONNECTION_FLAGS, OUTPUT_FLAGS } from '../flags/client-flags.ts';
import { type Flags, type FlagValues, parsed, toggle, toSeconds } from '../flags/flag.ts';
import type { Output } from './output/output.ts';
import type { Settings } from './settings/settings.ts';
import type { Terminal } from './terminal.ts';

export interface Argument {
  /** The name in capitals, as shown in help. */
  readonly name: string;
  readonly help: string;
  readonly count: 'one' | 'optional' | 'many';
}

type ValueOf<A extends Argument> = { one: string; optional: string | null; many: readonly string[] }[A['count']];
type ArgumentValues<A extends readonly Argument[]> = { [At in keyof A]: ValueOf<A[At]> };

interface CommandOf<A extends readonly Argument[], F extends Flags> {
  /** One word, or a noun and a verb: `policy show`. */
  readonly name: string;
  readonly about?: readonly string[];
  readonly arguments?: A;
  readonly flags?: F;
  /** Placeholder for the words after `--`, as shown in help: `COMMAND …`. */
  readonly rest?: string;
  /** Maps a command line to its effect. */
  readonly examples?: Readonly<Record<string, string>>;
  readonly isLocal?: true;
  readonly printsNoRecords?: true;
  /** Whether the command stores a value. An unexpected argument may then be a secret, so errors never repeat it. */
  readonly takesValue?: true;
  readonly takesAllWords?: true;
  readonly handlesSignals?: true;
  /** Whether the first signal cancels it and a second one must not end the process: it may be publishing. */
  readonly endsItself?: true;
  /** Whether a call that waits for an approval ends after one try, because the command's own caller repeats it. */
  readonly returnsPending?: true;
  /** Receives the values of `flags` and of each argument. Resolves to the exit code if it is not 0. */
  run(invocation: Invocation, flags: FlagValues<F>, ...given: ArgumentValues<A>): Promise<number> | Promise<void>;
}

export type Command = CommandOf<readonly Argument[], Flags>;

/** An entry of the command table, as `leasehold --help` lists it. The command itself is loaded when it is needed. */
export interface Entry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<Command>;
}

/** Types the parameters of `run` by the command's own flags and arguments. */
export function defineCommand<const A extends readonly Argument[] = [], F extends Flags = Record<never, never>>(
  command: CommandOf<A, F>,
): Command {
  // The program passes values to `run` that it parsed by this command's own flags and arguments.
  return command as unknown as Command;
}

export interface Invocation {
  readonly terminal: Terminal;
  readonly settings: Settings;
  readonly output: Output;
  readonly rest: readonly string[];
  /**
   * A client with the identity of the settings; its session ends with the command. @throws UsageError when not logged
   * in
   */
  connect(anonymous?: boolean): Leasehold;
  /**
   * Resolves the settings again and returns a new client, for a command that outlives the server that it calls. Throws
   * the same errors as `connect`.
   */
  reconnect(): Promise<Leasehold>;
  /** Prints once how an operator can answer the approval. */
  readonly announceApproval: (approvalId: string) => void;
  /** Ends the session of this command early, for a command that ends the process. Never rejects. */
  close(): Promise<void>;
  /** Aborts on Ctrl-C and SIGTERM, with a `UsageError` as the reason. */
  readonly signal: AbortSignal;
}

export const CONFIRMATION_FLAGS = {
  yes: toggle('do not ask for confirmation', { short: 'y' }),
  'dry-run': toggle('show the changes without making them'),
} as const satisfies Flags;

/** The limit of immediate revocation, for the help of the commands that revoke. */
export const REQUESTS_IN_FLIGHT =
  'Brokered requests in flight are aborted at once on the node that revokes, and within one second on the others.';

export const TTL = parsed('DURATION', 'request shorter leases than the policies allow, such as 90s or 15m', toSeconds);

const HELP_FLAG = toggle('show this help', { short: 'h' });

export function flagsOf({ flags = {}, isLocal, printsNoRecords }: Command): Flags {
  return {
    ...flags,
    ...(isLocal === true || printsNoRecords === true ? {} : OUTPUT_FLAGS),
    ...(isLocal === true ? {} : CONNECTION_FLAGS),
    help: HELP_FLAG,
  };
}
