/**
 * How many denials of one agent are recorded one by one, so that none fills the disk with them: a token bucket for each agent, in
 * the memory of this node. What exceeds it is refused all the same, and counted; a summary entry says how many those were.
 */
import type { EntryDraft } from '../core/audit.ts';
import { type ActorName, ADMIN, SERVICE } from '../core/names.ts';

export const DENIALS_PER_MINUTE = 1200;
/** From the first denial that is only counted to the summary. */
const SUMMARY_AFTER_MS = 10_000;

interface Bucket {
  tokens: number;
  /** When `tokens` was right. */
  at: number;
  /** Null where nothing waits for a summary. */
  unrecorded: Unrecorded | null;
}

interface Unrecorded {
  readonly since: number;
  count: number;
  last: EntryDraft;
}

/** Summaries that a turn records. */
export interface Summaries {
  readonly entries: readonly EntryDraft[];
  /** To be called when they are committed. */
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

  /** Whether the entry is recorded; where not, it is counted for the summary. */
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

  /** What is due; nothing of it is dropped before it is committed. */
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

  /** From now on every summary is due: the service stops. */
  close(): void {
    this.#isClosing = true;
  }
}

/** Logins are limited by their own failures; the administrator and the service are not limited. */
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
    reason: `${count} more refusals of this agent within ${seconds} s were not recorded one by one`,
    requestId: null,
    remoteAddr: null,
  };
}
