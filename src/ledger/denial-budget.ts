/**
 * Limits the denials of one agent that are recorded individually, so that no agent fills the disk: a token bucket per
 * agent, in this node's memory. Further requests are denied too; they are counted, and a summary entry records their
 * number.
 */
import type { EntryDraft } from '../core/audit.ts';
import { type ActorName, ADMIN, SERVICE } from '../core/names.ts';

export const DENIALS_PER_MINUTE = 1200;
/** The time from the first denial that is only counted to the summary entry. */
const SUMMARY_AFTER_MS = 10_000;

interface Bucket {
  tokens: number;
  /** The time at which `tokens` was computed. */
  at: number;
  /** Null if no denial waits for a summary. */
  unrecorded: Unrecorded | null;
}

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
  readonly #perMinute: number;
  readonly #buckets = new Map<ActorName, Bucket>();
  #waiting = 0;
  #isClosing = false;

  constructor(perMinute: number = DENIALS_PER_MINUTE) {
    this.#perMinute = perMinute;
  }

  /** Whether a summary is still to be recorded. */
  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  /** Whether the entry is recorded individually; if not, it is counted for the summary. */
  admits(entry: EntryDraft, now: number): boolean {
    if (!isLimited(entry)) return true;
    const bucket = this.#buckets.get(entry.agentName) ?? { tokens: this.#perMinute, at: now, unrecorded: null };
    this.#buckets.set(entry.agentName, bucket);
    const earned = (Math.max(0, now - bucket.at) * this.#perMinute) / 60_000;
    bucket.tokens = Math.min(this.#perMinute, bucket.tokens + earned);
    bucket.at = now;
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return true;
    }
    if (bucket.unrecorded === null) {
      this.#waiting += 1;
      bucket.unrecorded = { since: now, count: 0, last: entry };
    }
    bucket.unrecorded.count += 1;
    bucket.unrecorded.last = entry;
    return false;
  }

  /** The summaries that are due. They stay due until they are committed. */
  summarise(now: number): Summaries {
    if (this.#waiting === 0) return { entries: [], committed: () => undefined };
    const due = [...this.#buckets.values()].flatMap((bucket) => {
      const { unrecorded } = bucket;
      if (unrecorded === null || (!this.#isClosing && now - unrecorded.since < SUMMARY_AFTER_MS)) return [];
      return [{ bucket, unrecorded, count: unrecorded.count }];
    });
    return {
      entries: due.map(({ unrecorded }) => toSummary(unrecorded, now)),
      committed: () => {
        for (const { bucket, unrecorded, count } of due) {
          unrecorded.count -= count;
          if (unrecorded.count > 0 || bucket.unrecorded !== unrecorded) continue;
          bucket.unrecorded = null;
          this.#waiting -= 1;
        }
      },
    };
  }

  /** Makes every summary due, because the service stops. */
  close(): void {
    this.#isClosing = true;
  }
}

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
