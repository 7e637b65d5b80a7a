/** What this node knows about itself and its surroundings, for the overview. */
import type { MinuteLatency } from '../core/minute-latency.ts';

/** A node of the vault. */
export interface VaultNode {
  /** Host name and process id. */
  readonly name: string;
  readonly version: string;
  readonly startedAt: number;
}

/** How late the copies outside the database are. */
export interface Lateness {
  /** For how long the newest anchor has not been on disk; 0 if it is. */
  readonly anchorSeconds: number;
  /** For how long a destination has not confirmed a checkpoint, by destination. */
  readonly deliveries: readonly { readonly label: string; readonly waitingSeconds: number }[];
  /** When the newest complete backup was recorded; null if none is known, undefined before the first search. */
  readonly backupAt: number | null | undefined;
}

export interface NodeFacts {
  readonly self: VaultNode;
  status(): string;
  lateness(): Lateness;
  latency(): { readonly retrieve: readonly MinuteLatency[]; readonly use: readonly MinuteLatency[] };
}
