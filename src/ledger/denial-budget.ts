/**
 * Limits the denials of one agent that are recorded, so that no agent fills the disk: a token bucket per agent, in this
 * node's memory. Further requests are rejected and counted, but not recorded.
 */
import type { EntryDraft } from '../core/audit.ts';
import { ApiError } from '../core/errors.ts';
import { ADMIN, SERVICE } from '../core/names.ts';
import { TokenBuckets } from './token-buckets.ts';

export const DENIALS_PER_MINUTE = 1200;

export class DenialBudget {
  readonly #buckets: TokenBuckets;
  #unrecordedDenials = 0;

  constructor(perMinute: number = DENIALS_PER_MINUTE) {
    this.#buckets = new TokenBuckets(perMinute, 60_000);
  }

  /** Denials that were not recorded, so far. */
  get unrecordedDenials(): number {
    return this.#unrecordedDenials;
  }

  /** Whether the entry is recorded; if not, it is counted. */
  admits(entry: EntryDraft, now: number): boolean {
    if (!isLimited(entry)) return true;
    const bucket = this.#buckets.at(budgetOf(entry), now);
    if (bucket.tokens < 1) {
      this.#unrecordedDenials += 1;
      return false;
    }
    bucket.tokens -= 1;
    return true;
  }
}

export function tooManyDenials(): ApiError {
  return new ApiError('RATE_LIMITED', 'Too many requests of this agent were denied. Try again in a second.', 1);
}

/**
 * WHY apart: a thief of an agent's token could otherwise use up the agent's budget, so that its own denials
 * are not recorded.
 */
const budgetOf = ({ eventType, agentName }: EntryDraft): string =>
  eventType === 'credential.misuse' ? `${agentName} ${eventType}` : agentName;

/** Failed logins have their own limit; the administrator and the service are not limited. */
function isLimited({ eventType, agentName, result }: EntryDraft): boolean {
  const isDenial = result === 'denied' || result === 'not_found';
  return isDenial && agentName !== ADMIN && agentName !== SERVICE && eventType !== 'auth.verify';
}
