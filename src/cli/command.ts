/** What a row of the table of commands is, and what its `run` gets. */
import type { Leasehold } from '../client/leasehold.ts';
import type { Output } from './output/output.ts';
import type { Settings } from './settings/settings.ts';
import type { Terminal } from './terminal.ts';

/** What a shell may offer where it stands. `own agent`: one whose key is on this machine. `assignment`: a name, `=`, and a path. */
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
  /** What stands behind the flag in help; null for a switch. */
  readonly value: string | null;
  readonly help: string;
  readonly isRepeatable?: true;
  readonly completes?: Completes;
}

export interface Argument {
  /** In capitals, as help shows it. */
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
  /** A sentence without its full stop. */
  readonly summary: string;
  /** Paragraphs for its page. */
  readonly about?: readonly string[];
  readonly arguments?: readonly Argument[];
  readonly flags?: readonly Flag[];
  /** What stands behind `--`, as help shows it: `COMMAND …`. */
  readonly rest?: string;
  readonly examples?: readonly Example[];
  /** Whether it speaks to the service, so that the flags of the connection go with it. */
  readonly asksService: boolean;
  /** Whether it prints records, so that `-o` and `--field` go with it. */
  readonly printsRecords?: true;
  /** Whether a value is stored by it: what does not fit may be one, so it is not repeated, and the way for values is told. */
  readonly takesValue?: true;
  /** Whether all words behind its name are its own, in `rest`. */
  readonly takesAllWords?: true;
  /** Whether it takes Ctrl-C and SIGTERM itself, as for a program that it runs. */
  readonly handlesSignals?: true;
  /** Resolves to the exit code. */
  run(invocation: Invocation): Promise<number>;
}

/** A command as it was called. Names that the command did not declare are a bug, and throw. */
export interface Invocation {
  readonly terminal: Terminal;
  readonly settings: Settings;
  readonly output: Output;
  /** Of an argument with the count `one`. */
  argument(name: string): string;
  /** Of an optional one. */
  optional(name: string): string | null;
  /** Of `many`. */
  many(name: string): readonly string[];
  /** The last one given; null where none was. */
  flag(name: string): string | null;
  flags(name: string): readonly string[];
  isOn(name: string): boolean;
  /** What stands behind `--`. */
  readonly rest: readonly string[];
  /** The service, as whoever the settings say. A session begun for this command ends with it. @throws UsageError where nobody asks */
  connect(asNobody?: boolean): Leasehold;
  /** Ends a session that was begun for this command. For one that does not end by returning; never rejects. */
  close(): Promise<void>;
  /** Aborted by Ctrl-C and SIGTERM, with a `UsageError` as its reason. */
  readonly signal: AbortSignal;
}
