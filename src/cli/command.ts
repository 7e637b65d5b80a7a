/** The types of a command table entry and of a command invocation. */
import type { Leasehold } from '../client/leasehold.ts';
import type { Output } from './output/output.ts';
import type { Settings } from './settings/settings.ts';
import type { Terminal } from './terminal.ts';

/** What completion offers. `own agent`: an agent whose key is on this machine. `assignment`: NAME=PATH. */
export type Completes =
  | 'path'
  | 'agent'
  | 'own agent'
  | 'policy'
  | 'assignment'
  | 'file'
  | 'directory'
  | 'command'
  | readonly string[];

export interface Flag {
  readonly name: string;
  /** One letter, as in `-o`. */
  readonly short?: string;
  /** Placeholder for the value in help; null for a switch. */
  readonly value: string | null;
  readonly help: string;
  readonly isRepeatable?: true;
  readonly completes?: Completes;
}

export interface Argument {
  /** In capitals, as shown in help. */
  readonly name: string;
  readonly help: string;
  readonly count: 'one' | 'optional' | 'many';
  readonly completes?: Completes;
}

interface Example {
  readonly line: string;
  readonly does: string;
}

export interface Command {
  /** One word, or a noun and a verb: `policy show`. */
  readonly name: string;
  /** An imperative sentence without a period. */
  readonly summary: string;
  /** Paragraphs of the help page. */
  readonly about?: readonly string[];
  readonly arguments?: readonly Argument[];
  readonly flags?: readonly Flag[];
  /** Placeholder for the words after `--`, as shown in help: `COMMAND …`. */
  readonly rest?: string;
  readonly examples?: readonly Example[];
  /** Whether the command calls the service and takes the connection flags. */
  readonly callsService: boolean;
  /** Whether the command prints records and takes `-o` and `--field`. */
  readonly printsRecords?: true;
  /** Whether the command stores a value. An unexpected argument may then be a secret, so errors never repeat it. */
  readonly takesValue?: true;
  /** Whether `rest` receives all words after the name, unparsed. */
  readonly takesAllWords?: true;
  /** Whether the command handles Ctrl-C and SIGTERM itself, for example to forward them to a program. */
  readonly handlesSignals?: true;
  /** Resolves to the exit code. */
  run(invocation: Invocation): Promise<number>;
}

/** A parsed call of a command. Reading an argument that the command does not declare throws. */
export interface Invocation {
  readonly terminal: Terminal;
  readonly settings: Settings;
  readonly output: Output;
  /** An argument with count `one`. */
  argument(name: string): string;
  /** An argument with count `optional`. */
  optional(name: string): string | null;
  /** An argument with count `many`. */
  many(name: string): readonly string[];
  /** The last value given, or null. */
  flag(name: string): string | null;
  flags(name: string): readonly string[];
  isOn(name: string): boolean;
  /** The words after `--`. */
  readonly rest: readonly string[];
  /** A client with the identity of the settings; its session ends with the command. @throws UsageError when not logged in */
  connect(anonymous?: boolean): Leasehold;
  /** Ends the session of this command early, for a command that ends the process. Never rejects. */
  close(): Promise<void>;
  /** Aborts on Ctrl-C and SIGTERM, with a `UsageError` as the reason. */
  readonly signal: AbortSignal;
}
