/** What a restore is asked to do, and how it reports. */
import type { Opener } from '../backup/encryption.ts';
import type { SlotAccess } from './offline-keys.ts';
import type { VaultLocation } from './restore-target.ts';

export interface RestoreRequest extends SlotAccess {
  readonly file: string;
  readonly opener: Opener;
  readonly to: VaultLocation;
  /** The directory of the service, for the keys of agents; null if only a database is restored. */
  readonly dataDir: string | null;
  /** The verifier keys of which the vault in the backup must have one; null to ask. */
  readonly verifierKeys: readonly string[] | null;
  /** Whether a backup is restored whose chain, rows or values do not verify. */
  readonly acceptsDamage: boolean;
}

/** How a running restore reports, asks, and is cancelled. */
export interface RestoreReporter {
  readonly signal: AbortSignal;
  /** A line about the step that begins, or a warning. */
  say(line: string): void;
  /** How many rows of a table were restored. */
  progress(what: string, rows: number, of: number): void;
  /** The answer to a question on the terminal; null without a terminal. */
  ask(question: string): Promise<string | null>;
}
