/** What a restore is asked to do. */
import type { Opener } from '../backup/encryption.ts';
import type { VaultLocation } from './locations.ts';
import type { SlotAccess } from './offline-keys.ts';

export interface RestoreRequest extends SlotAccess {
  readonly file: string;
  readonly opener: Opener;
  readonly to: VaultLocation;
  /** The directory of the service, for the keys of agents; null if only a database is restored. */
  readonly dataDir: string | null;
  /** Whether a backup is restored whose chain, rows or values do not verify. */
  readonly acceptsDamage: boolean;
}
