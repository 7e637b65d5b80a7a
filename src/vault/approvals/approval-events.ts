/** The outcomes of approvals, as this node commits them: for metrics and for webhooks. */

import { Counter, Histogram } from '../../core/measures.ts';
import type { StoredChange } from '../../store/stored-data.ts';
import type { Approval, ApprovalId } from './approval.ts';

const APPROVAL_OUTCOMES = ['approved', 'denied', 'timed_out', 'withdrawn'] as const;
type Outcome = (typeof APPROVAL_OUTCOMES)[number];

export interface ApprovalEvent {
  readonly kind: 'requested' | Outcome;
  readonly approval: Approval;
}

const WAIT_BOUNDS = [1, 2, 5, 10, 30, 60, 120, 300, 900, 3600, 14_400, 86_400];
/** A grant is stored again by each use that counts; a later one of these is not the approval itself. */
const APPROVED_MS = 5000;
const MAX_REMEMBERED = 1000;

export class ApprovalEvents {
  readonly measures = { outcomes: new Counter(APPROVAL_OUTCOMES), waitSeconds: new Histogram(WAIT_BOUNDS) };
  readonly #now: () => number;
  readonly #approved = new Set<ApprovalId>();
  /** Must not throw, and returns immediately. */
  onEvent: ((event: ApprovalEvent) => void) | null = null;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes the changes of a batch of this node. */
  committed(changes: readonly StoredChange[]): void {
    const puts = changes.flatMap((change) =>
      change.kind === 'put' && change.resource === 'approval' ? [change.row] : [],
    );
    if (puts.length === 0) return;
    const added = new Set(
      changes.flatMap((change) => (change.kind === 'addApprovalRequest' ? [change.request.id] : [])),
    );
    for (const approval of puts) {
      const kind = approval.status === 'pending' ? 'requested' : approval.status;
      if (kind === 'requested' ? !added.delete(approval.id) : !this.#isNew(approval)) continue;
      if (kind !== 'requested') this.#count(kind, approval);
      this.onEvent?.({ kind, approval });
    }
  }

  #isNew({ id, status, endedAt }: Approval): boolean {
    if (status !== 'approved') return true;
    if (this.#approved.has(id) || this.#now() - (endedAt ?? 0) > APPROVED_MS) return false;
    if (this.#approved.size >= MAX_REMEMBERED) this.#approved.clear();
    this.#approved.add(id);
    return true;
  }

  #count(outcome: Outcome, { id, requestedAt, endedAt }: Approval): void {
    this.measures.outcomes.add(outcome);
    // The end of a grant is not the end of a wait.
    if (outcome === 'withdrawn' && this.#approved.delete(id)) return;
    this.measures.waitSeconds.observe(Math.max(0, (endedAt ?? requestedAt) - requestedAt) / 1000);
  }
}
