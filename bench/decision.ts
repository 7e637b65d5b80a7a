// A decision in process, by the compiled index of core, among 10,000 policies.

import type { CredentialPath } from '../src/core/path.ts';
import { decide, PolicyIndex } from '../src/vault/policies/policy-index.ts';
import { toFigure } from './measurement.ts';
import { benchAgent, benchPath, benchPolicy, randomBelow } from './targets.ts';
import type { Figure, Stage } from './types.ts';

const POLICIES = 10_000;
const PATHS = 1_000_000;

export async function measureDecision({ plan }: Stage): Promise<Figure[]> {
  const policies = new PolicyIndex();
  for (let index = 0; index < POLICIES; index++) policies.put({ ...benchPolicy(index), createdAt: 0 });
  timeDecisions(policies, plan.decisions); // warm-up
  const microseconds = Array.from({ length: plan.rounds }, () => timeDecisions(policies, plan.decisions));
  return [toFigure('Decision among 10,000 policies', 'µs', microseconds)];
}

/** Microseconds per decision. */
function timeDecisions(policies: PolicyIndex, count: number): number {
  const agents = Array.from({ length: 64 }, (_, index) => benchAgent(index));
  const requests = Array.from({ length: count }, () => ({
    agent: agents[randomBelow(agents.length)] ?? benchAgent(0),
    path: newString(benchPath(randomBelow(PATHS))),
  }));
  let allowed = 0;
  const startedAt = performance.now();
  for (const { agent, path } of requests) {
    if (decide(policies, agent, 'retrieve', path).allowed) allowed += 1;
  }
  const elapsedMs = performance.now() - startedAt;
  if (allowed !== count) throw new Error(`${allowed} of ${count} decisions allowed access`);
  return (elapsedMs * 1000) / count;
}

/** An equal string that V8 has not seen before, as those of requests are. */
function newString(path: CredentialPath): CredentialPath {
  return Buffer.from(path, 'latin1').toString('latin1') as CredentialPath;
}
