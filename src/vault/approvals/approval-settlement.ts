/**
 * Records what the time and changes decide about approvals: requests that timed out, and what relied on something that
 * changed. Until then the time and the comparison at each use decide the same. SOURCE: docs/approvals.md.
 */

import type { Resource } from '../../core/resources.ts';
import { sha256Base64 } from '../../crypto/primitives.ts';
import type { Clock } from '../../ledger/clock.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { findLiveApprovals, findTimedOut } from '../../store/approval-lists.ts';
import type { Store } from '../../store/port.ts';
import type { ResultOf } from '../../store/statement.ts';
import type { StoredChange } from '../../store/stored-data.ts';
import { yieldToEventLoop } from '../paging.ts';
import { settleApproval } from './approval-operations.ts';

const SETTLE_INTERVAL_MS = 1000;
const SETTLE_ROWS = 64;

/** An approval relies on rows of these resources. It also relies on the credential's id, which ends with a removal. */
const RELIED_ON: readonly Resource[] = ['policy', 'targets', 'agent', 'operator'];

/** Whether an approval may rely on something else after the change. */
function mayVoid(change: StoredChange): boolean {
  if (change.kind !== 'put' && change.kind !== 'remove') return false;
  return RELIED_ON.includes(change.resource) || (change.kind === 'remove' && change.resource === 'credential');
}

export interface ApprovalSettlementParts {
  readonly ledger: Ledger;
  readonly store: Store;
  readonly clock: Clock;
  readonly onFailure: (error: unknown) => void;
}

export class ApprovalSettlement {
  readonly #parts: ApprovalSettlementParts;
  readonly #timer: NodeJS.Timeout;
  /** True at startup too, because a change may have been the last act of the previous process. */
  #mustReview = true;
  #settled: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: ApprovalSettlementParts) {
    this.#parts = parts;
    this.#timer = setInterval(() => this.#settleSoon(), SETTLE_INTERVAL_MS).unref();
  }

  committed(changes: readonly StoredChange[]): void {
    if (changes.some(mayVoid)) this.#mustReview = true;
  }

  #settleSoon(): void {
    const { ledger } = this.#parts;
    if (this.#isStopped || ledger.state !== 'ok') return;
    this.#settled = this.#settled.then(() => this.#settle()).catch((error: unknown) => this.#parts.onFailure(error));
  }

  async #settle(): Promise<void> {
    const { store, clock, ledger } = this.#parts;
    for (const place of await store.run(findTimedOut(clock.now(), SETTLE_ROWS))) {
      if (this.#isStopped) return;
      await ledger.submit(settleApproval(place, sha256Base64));
    }
    if (!this.#mustReview) return;
    this.#mustReview = false;
    await this.#review().catch((error: unknown) => {
      this.#mustReview = true;
      throw error;
    });
  }

  async #review(): Promise<void> {
    const { store, clock, ledger } = this.#parts;
    for (let after: string | null = ''; after !== null; ) {
      await yieldToEventLoop();
      const step: ResultOf<typeof findLiveApprovals> = await store.run(
        findLiveApprovals(store.dialect, clock.now(), after, SETTLE_ROWS),
      );
      if (this.#isStopped) return;
      await Promise.all(step.rows.map((place) => ledger.submit(settleApproval(place, sha256Base64))));
      after = step.next;
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#settled;
  }
}
