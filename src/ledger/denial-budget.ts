/**
 * Limits the denials of one agent that are recorded individually, so that no agent fills the disk: a token bucket per
 * agent, in this node's memory. Further requests are denied too; they are counted, and a summary entry records their
 * number.
 */
import type { EntryDraft } from '../core/audit.ts';
import { ADMIN, SERVICE } from '../core/names.ts';
import { TokenBuckets } from './token-buckets.ts';

export const DENIALS_PER_MINUTE = 1200;
/** The time from the first denial that is only counted to the summary entry. */
const SUMMARY_AFTER_MS = 10_000;

interface Unrecorded {
  readonly since: number;
  count: number;
  last: EntryDraft;
}

/** The summaries that a batch records. */
export interface Summaries {
  readonly entries: readonly EntryDraft[];
  /** Must be called after the commit. */
  committed(): void;
}

export class DenialBudget {
  readonly #buckets: TokenBuckets;
  /** By budget. */
  readonly #unrecorded = new Map<string, Unrecorded>();
  #isClosing = false;
  #unrecordedDenials = 0;

  constructor(perMinute: number = DENIALS_PER_MINUTE) {
    this.#buckets = new TokenBuckets(perMinute, 60_000);
  }

  /** Whether a summary is still to be recorded. */
  get isWaiting(): boolean {
    return this.#unrecorded.size > 0;
  }

  /** Denials that were not recorded individually, so far. */
  get unrecordedDenials(): number {
    return this.#unrecordedDenials;
  }

  /** Whether the entry is recorded individually; if not, it is counted for the summary. */
  admits(entry: EntryDraft, now: number): boolean {
    if (!isLimited(entry)) return true;
    const budget = budgetOf(entry);
    const bucket = this.#buckets.at(budget, now);
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return true;
    }
    const unrecorded = this.#unrecorded.get(budget) ?? { since: now, count: 0, last: entry };
    this.#unrecorded.set(budget, unrecorded);
    unrecorded.count += 1;
    this.#unrecordedDenials += 1;
    unrecorded.last = entry;
    return false;
  }

  /** The summaries that are due. They stay due until they are committed. */
  summarise(now: number): Summaries {
    if (this.#unrecorded.size === 0) return { entries: [], committed: () => undefined };
    const due = [...this.#unrecorded]
      .filter(([, { since }]) => this.#isClosing || now - since >= SUMMARY_AFTER_MS)
      .map(([budget, unrecorded]) => ({ budget, unrecorded, count: unrecorded.count }));
    return {
      entries: due.map(({ unrecorded }) => toSummary(unrecorded, now)),
      committed: () => {
        for (const { budget, unrecorded, count } of due) {
          unrecorded.count -= count;
          if (unrecorded.count === 0) this.#unrecorded.delete(budget);
        }
      },
    };
  }

  /** Makes every summary due, because the service stops. */
  close(): void {
    this.#isClosing = true;
  }
}

/**
 * WHY apart: a thief of an agent's token could otherwise use up the agent's budget, so that its own denials
 * are only counted.
 */
const budgetOf = ({ eventType, agentName }: EntryDraft): string =>
  eventType === 'credential.misuse' ? `${agentName} ${eventType}` : agentName;

/** Failed logins have their own limit; the administrator and the service are not limited. */
function isLimited({ eventType, agentName, result }: EntryDraft): boolean {
  const isDenial = result === 'denied' || result === 'not_found';
  return isDenial && agentName !== ADMIN && agentName !== SERVICE && eventType !== 'auth.verify';
}

function toSummary({ since, count, last }: Unrecorded, now: number): EntryDraft {
  const seconds = Math.max(1, Math.ceil((now - since) / 1000));
  return {
    eventType: last.eventType,
    agentName: last.agentName,
    resource: '*',
    result: 'denied',
    policyName: null,
    leaseId: null,
    reason: `${count} more denials of this agent within ${seconds} s were not recorded individually`,
    requestId: null,
    remoteAddr: null,
  };
}
