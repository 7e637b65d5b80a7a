/** Holds expectations against decisions: those of the service, or those of policies that are still only files. */
import type { Simulation } from '../../client/types.ts';
import { decide, explain } from '../../core/decision.ts';
import type { Policy, PolicyDraft } from '../../core/policy.ts';
import { PolicyIndex } from '../../core/policy-index.ts';
import { inParallel } from '../parallel.ts';
import { type Expectation, toRow } from './expectations.ts';
import type { AccessQuery } from './question.ts';

const MAX_CONCURRENT = 8;

export type Ask = (question: AccessQuery) => Promise<Simulation>;

export interface TestResult {
  readonly line: number;
  readonly expected: string;
  readonly holds: boolean;
  /** What is the case instead; null where the row holds. */
  readonly found: string | null;
  /** Of the decision, in its own words. */
  readonly reason: string;
}

/** In the order of the file. @throws what `ask` threw first; nothing is asked after that */
export async function holdExpectations(expectations: readonly Expectation[], ask: Ask): Promise<TestResult[]> {
  const results = new Map<Expectation, TestResult>();
  await inParallel(expectations, MAX_CONCURRENT, async (expectation) => {
    results.set(expectation, compare(expectation, await ask(expectation.question)));
  });
  return expectations.flatMap((expectation) => results.get(expectation) ?? []);
}

function compare(expectation: Expectation, simulation: Simulation): TestResult {
  const found = difference(expectation, simulation);
  const { line } = expectation;
  return { line, expected: toRow(expectation), holds: found === null, found, reason: simulation.reason };
}

function difference(
  { allows, ttlSeconds }: Expectation,
  { allowed, policy_name, lease_ttl }: Simulation,
): string | null {
  if (allowed !== allows) return allowed ? `allowed by ${policy_name} for up to ${lease_ttl} s` : 'denied';
  if (ttlSeconds === null || ttlSeconds === lease_ttl) return null;
  return `ttl ${lease_ttl} by ${policy_name}`;
}

/** Asks policies that no vault has yet, by the function that decides there. Nobody is registered with files, so that goes unsaid. */
export function localSimulator(drafts: readonly PolicyDraft[]): Ask {
  const policies = new PolicyIndex();
  for (const draft of drafts) policies.put({ ...draft, createdAt: 0 } satisfies Policy);
  return async (question) => {
    const decision = decide(policies, question.agent, question.action, question.path);
    return {
      allowed: decision.allowed,
      policy_name: decision.allowed ? decision.policyName : null,
      lease_ttl: decision.allowed ? decision.ttlSeconds : null,
      reason: explain(decision, { ...question, policies, isRegistered: true }),
    };
  };
}
