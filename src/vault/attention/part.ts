/** A part of what needs attention. Each part is examined for a limited time and lists a limited number of items. */

import type { AttentionItem } from '../../core/attention.ts';
import type { Clock } from '../../ledger/clock.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Store } from '../../store/port.ts';
import type { Checkpoints } from '../checkpoints.ts';
import type { LogColumns } from '../log-columns.ts';
import type { NodeFacts } from '../node-facts.ts';

export const MAX_ITEMS = 20;
const PART_TIMEOUT_MS = 500;

export interface AttentionPart {
  /** At most `MAX_ITEMS`, the most urgent first. */
  readonly items: readonly AttentionItem[];
  /** Whether everything was examined. */
  readonly isComplete: boolean;
}

/** The parts of the vault that are examined. */
export interface AttentionVault {
  readonly store: Store;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly logColumns: LogColumns;
  readonly checkpoints: Checkpoints;
  readonly node: NodeFacts;
}

/** Whether the time of the part is up. */
export function startTimer(): { readonly timeoutMs: number; isUp(): boolean } {
  const endsAt = performance.now() + PART_TIMEOUT_MS;
  return { timeoutMs: PART_TIMEOUT_MS, isUp: () => performance.now() >= endsAt };
}
