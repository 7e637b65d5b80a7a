/**
 * A second implementation of approvals, written as plainly as possible: a list of requests and answers. It knows
 * nothing of keys, digests, batches or entries.
 */
import type { Asked, Fate } from './world.ts';

export interface ModelTerms {
  readonly each: 'request' | 'endpoint' | 'host';
  readonly scope: string;
  readonly quorum: number;
  readonly timeout: number;
}

interface Case {
  readonly number: number;
  readonly asked: Asked;
  /** The version of the policies, the targets and the agent's key at the time of the request. */
  readonly edition: string;
  readonly terms: ModelTerms;
  readonly askedAt: number;
  state: 'pending' | 'approved' | 'denied' | 'withdrawn';
  readonly yes: Set<string>;
  answeredAt: number;
  uses: number;
}

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

export class Model {
  readonly cases: Case[] = [];

  /** The fate of a request. `approvers` is how many could answer. */
  ask(asked: Asked, edition: string, terms: ModelTerms, now: number, approvers: number): Fate {
    const alike = this.cases.filter((one) => covers(one, asked, terms)).toReversed();
    const grant = alike.find((one) => one.edition === edition && isUsable(one, asked, now));
    if (grant !== undefined) {
      grant.uses += 1;
      return 'passed';
    }
    const last = alike.find((one) => one.edition === edition);
    if (last !== undefined) {
      const endsAt = last.askedAt + last.terms.timeout * 1000;
      if (last.state === 'pending' && now < endsAt) return 'pending';
      if (last.state === 'pending' && now < endsAt + MINUTE_MS) return 'timed out';
      if (last.state === 'denied' && now < endsAt) return 'denied';
      if (last.state === 'withdrawn' && now < last.answeredAt + MINUTE_MS) return 'withdrawn';
    }
    if (approvers < terms.quorum) return 'no approver';
    this.cases.push({
      number: this.cases.length,
      asked,
      edition,
      terms,
      askedAt: now,
      state: 'pending',
      yes: new Set(),
      answeredAt: 0,
      uses: 0,
    });
    return 'pending';
  }

  /** Whether the answer counts. */
  answer(one: Case, operator: string, isYes: boolean, edition: string, now: number): boolean {
    if (one.state !== 'pending' || now >= one.askedAt + one.terms.timeout * 1000) return false;
    if (one.edition !== edition) {
      this.withdraw(one, now);
      return false;
    }
    if (!isYes) {
      one.state = 'denied';
      one.answeredAt = now;
      return true;
    }
    if (one.yes.has(operator)) return false;
    one.yes.add(operator);
    if (one.yes.size < one.terms.quorum) return true;
    one.state = 'approved';
    one.answeredAt = now;
    return true;
  }

  withdraw(one: Case, now: number): boolean {
    const waits = one.state === 'pending' && now < one.askedAt + one.terms.timeout * 1000;
    // What an approval let pass may still run.
    if (!waits && one.state !== 'approved') return false;
    one.state = 'withdrawn';
    one.answeredAt = now;
    return true;
  }
}

/** A grant for one use covers the very request. A change of terms changes what is alike. */
function covers(one: Case, asked: Asked, terms: ModelTerms): boolean {
  const extent = terms.scope === 'once' ? 'request' : terms.each;
  const extentOfCase = one.terms.scope === 'once' ? 'request' : one.terms.each;
  if (one.asked.agent !== asked.agent || extent !== extentOfCase) return false;
  const [a, b] = [new URL(one.asked.url), new URL(asked.url)];
  if (a.origin !== b.origin) return false;
  if (extent === 'host') return true;
  if (a.pathname !== b.pathname || one.asked.method !== asked.method) return false;
  return extent === 'endpoint' || (a.search === b.search && one.asked.body === asked.body);
}

function isUsable(one: Case, asked: Asked, now: number): boolean {
  if (one.state !== 'approved' || !hasUsesAndTime(one, now)) return false;
  return one.terms.scope !== 'session' || one.asked.session === asked.session;
}

function hasUsesAndTime({ terms: { scope, timeout }, answeredAt, uses }: Case, now: number): boolean {
  const [number] = scope.split(' ');
  if (scope === 'once') return uses < 1 && now < answeredAt + timeout * 1000;
  if (scope.endsWith('seconds')) return now < answeredAt + Number(number) * 1000;
  return now < answeredAt + DAY_MS && (scope === 'session' || uses < Number(number));
}
