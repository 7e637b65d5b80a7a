/**
 * Enforces the limits of policies on uses: uses and bytes per hour, and concurrent uses, per agent and policy, in this
 * node's memory. Uses that are denied for another reason are not counted. Of the rejections of an agent under a policy
 * the first is recorded immediately; the others are recorded once a minute with their number.
 */

import { type DenialOf, toApiError } from '../../core/denials.ts';
import { Counter } from '../../core/measures.ts';
import type { AgentName, PolicyName } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { TokenBuckets } from '../../ledger/budgets.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { NOOP } from '../audit/lifecycle.ts';
import type { PolicyLimits } from '../policies/policy.ts';
import { LIMIT_KINDS, type LimitKind, recordRejectedUses } from './misuse-operations.ts';

export interface Admission {
  /** Uncounts a use that was not made. */
  cancel(): void;
  /** The use has ended; `bytes` are those of both bodies. */
  end(bytes: number): void;
}

interface Subject {
  readonly agentName: AgentName;
  readonly policyName: PolicyName;
}

/** Rejections since the last entry about them. */
interface Rejections {
  readonly agentName: AgentName;
  readonly denial: DenialOf<'use_limit'>;
  count: number;
}

interface Exceeded {
  readonly kind: LimitKind;
  readonly amount: number;
  readonly retryAfterSeconds: number;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** A brokered request may end at any time. */
const CONCURRENT_RETRY_SECONDS = 1;
const UNLIMITED: Admission = { cancel: () => undefined, end: () => undefined };

export class UseLimits {
  readonly #ledger: Ledger;
  readonly #now: () => number;
  readonly #intervalMs: number;
  readonly #buckets = new TokenBuckets(1, HOUR_MS);
  /** The number of brokered requests by agent and policy; none is 0. */
  readonly #running = new Map<string, number>();
  readonly #rejections = new Map<string, Rejections>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly rejectedUses = new Counter<LimitKind>(LIMIT_KINDS);

  constructor(ledger: Ledger, now: () => number, intervalMs = MINUTE_MS) {
    this.#ledger = ledger;
    this.#now = now;
    this.#intervalMs = intervalMs;
  }

  /** Counts a use of the agent, under the policy that decides now. @throws RATE_LIMITED, after it was recorded */
  async admit(context: Context, path: CredentialPath): Promise<Admission> {
    const { auth } = context;
    // Operators have no limits: only those with the role admin may use a credential.
    if (auth.kind === 'admin' || auth.kind === 'operator') return UNLIMITED;
    const { agentName } = auth;
    const { memory } = this.#ledger;
    // WHY first: the next batch deletes the policies that have expired, after which another policy may decide.
    if (memory.control.policies.expired(this.#now()).length > 0) await this.#ledger.submit(NOOP);
    const policy = memory.control.policies.findDecidingPolicy(agentName, 'use', path);
    if (policy === null || policy.limits === null) return UNLIMITED;
    const subject: Subject = { agentName, policyName: policy.name };
    const exceeded = this.#exceeded(subject, policy.limits);
    if (exceeded === null) return this.#count(subject, policy.limits);
    this.rejectedUses.add(exceeded.kind);
    const { kind, amount, retryAfterSeconds } = exceeded;
    const denial = { code: 'use_limit', policyName: policy.name, kind, amount, count: null } as const;
    await this.#record(agentName, denial, { path, context });
    throw toApiError(denial, retryAfterSeconds);
  }

  /** Records the rejections that are only counted. Never rejects. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all([...this.#rejections.values()].map((rejections) => this.#summarise(rejections)));
  }

  #exceeded(subject: Subject, limits: PolicyLimits): Exceeded | null {
    const { usesPerHour, bytesPerHour, concurrent } = limits;
    for (const [perHour, what] of [
      [usesPerHour, 'uses per hour'],
      [bytesPerHour, 'bytes per hour'],
    ] as const) {
      if (perHour === null) continue;
      const bucket = this.#bucket(subject, what, perHour);
      if (bucket.tokens >= 1) continue;
      return { kind: what, amount: perHour, retryAfterSeconds: this.#buckets.waitSeconds(bucket, perHour) };
    }
    if (concurrent === null || (this.#running.get(keyOf(subject)) ?? 0) < concurrent) return null;
    return { kind: 'concurrent uses', amount: concurrent, retryAfterSeconds: CONCURRENT_RETRY_SECONDS };
  }

  #count(subject: Subject, { usesPerHour, bytesPerHour }: PolicyLimits): Admission {
    const key = keyOf(subject);
    const uses = usesPerHour === null ? null : this.#bucket(subject, 'uses per hour', usesPerHour);
    if (uses !== null) uses.tokens -= 1;
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    const release = (): void => {
      const rest = (this.#running.get(key) ?? 0) - 1;
      if (rest > 0) this.#running.set(key, rest);
      else this.#running.delete(key);
    };
    return {
      cancel: () => {
        if (uses !== null) uses.tokens += 1;
        release();
      },
      end: (bytes) => {
        if (bytesPerHour !== null) this.#bucket(subject, 'bytes per hour', bytesPerHour).tokens -= bytes;
        release();
      },
    };
  }

  /** The limit is part of the key, so that a changed limit begins with a full bucket. */
  #bucket(subject: Subject, what: string, perHour: number) {
    return this.#buckets.at(`${keyOf(subject)} ${perHour} ${what}`, this.#now(), perHour);
  }

  async #record(
    agentName: AgentName,
    denial: DenialOf<'use_limit'>,
    single: { readonly path: CredentialPath; readonly context: Context },
  ): Promise<void> {
    const key = `${keyOf({ agentName, policyName: denial.policyName })} ${denial.amount} ${denial.kind}`;
    const known = this.#rejections.get(key);
    if (known !== undefined) {
      known.count += 1;
      return;
    }
    this.#rejections.set(key, { agentName, denial, count: 0 });
    this.#summariseLater(key);
    await this.#ledger.submit(recordRejectedUses({ agentName, denial, single }));
  }

  #summariseLater(key: string): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      const rejections = this.#rejections.get(key);
      if (rejections === undefined || rejections.count === 0) {
        this.#rejections.delete(key);
        return;
      }
      this.#summariseLater(key);
      void this.#summarise(rejections);
    }, this.#intervalMs).unref();
    this.#timers.add(timer);
  }

  /** The rejections stay counted if they could not be recorded. */
  async #summarise(rejections: Rejections): Promise<void> {
    const { agentName, denial, count } = rejections;
    if (count === 0) return;
    rejections.count = 0;
    const operation = recordRejectedUses({ agentName, denial: { ...denial, count }, single: null });
    await this.#ledger.submit(operation).catch(() => {
      rejections.count += count;
    });
  }
}

/** Neither name contains a space. */
const keyOf = ({ agentName, policyName }: Subject): string => `${agentName} ${policyName}`;
