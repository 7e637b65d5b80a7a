/** Random policies and queries from few names, so that names, TTLs, patterns and principals overlap. */
import fc from 'fast-check';
import { type AgentName, parseAgentName } from '../../src/core/names.ts';
import { type CredentialPath, parsePath } from '../../src/core/path.ts';
import { ACTIONS, type Action, Policy, type PolicyDraft } from '../../src/vault/policies/policy.ts';

const AGENTS = ['a', 'ab', 'abc', 'A', 'b'].map((name) => parseAgentName(name));
const PATHS = ['p', 'p/x', 'p/x/y', 'p/xy', 'px', 'q', '-p', 'constructor'].map((path) => parsePath(path));

export interface Asked {
  readonly agent: AgentName;
  readonly action: Action;
  readonly path: CredentialPath;
  readonly request: null;
}

export const QUESTIONS: readonly Asked[] = AGENTS.flatMap((agent) =>
  ACTIONS.flatMap((action) => PATHS.map((path) => ({ agent, action, path, request: null }))),
);

const policy = fc
  .record({
    name: fc.constantFrom('p1', 'p2', 'p3', 'P1', 'p10', 'toString', 'a-retrieve', 'a-retrieve-2'),
    principal: fc.constantFrom('a', 'a*', '*', 'ab', 'ab*', 'abc*', 'A', 'b').map((name) => `agent:${name}`),
    resources: fc.uniqueArray(fc.constantFrom('*', 'p', 'p/*', 'p/x', 'p/x/*', 'p/x/y', 'q/*', 'px', '-p'), {
      minLength: 1,
      maxLength: 3,
    }),
    actions: fc.uniqueArray(fc.constantFrom(...ACTIONS), { minLength: 1, maxLength: 4 }),
    max_ttl: fc.constantFrom(1, 2, 60, 300),
  })
  .map((fields): PolicyDraft => Policy.parse(fields));

export const policySets: fc.Arbitrary<PolicyDraft[]> = fc.uniqueArray(policy, {
  maxLength: 8,
  selector: ({ name }) => name,
});

/** The policy as the server lists it. */
export function toListed({ name, principal, resources, actions, maxTtlSeconds }: PolicyDraft) {
  const created_at = '2026-01-01T00:00:00.000Z';
  return { name, principal, resources: [...resources], actions: [...actions], max_ttl: maxTtlSeconds, created_at };
}
