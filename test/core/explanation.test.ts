// The explanation of a decision. SOURCE: docs/decisions.md, "Policies".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseAgentName } from '../../src/core/names.ts';
import { parsePath } from '../../src/core/path.ts';
import { parsePattern } from '../../src/core/pattern.ts';
import { explain } from '../../src/vault/policies/decision-text.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { decide, PolicyIndex } from '../../src/vault/policies/policy-index.ts';
import { runs } from '../kit/property.ts';

const ANN = parseAgentName('ann');

function policy(
  name: string,
  principal: string,
  resources: string[],
  actions = ['retrieve'],
  maxTtlSeconds = 60,
): Policy {
  return { ...Policy.parse({ name, principal, resources, actions, max_ttl: maxTtlSeconds }), createdAt: 0 };
}

function indexOf(...policies: Policy[]): PolicyIndex {
  const index = new PolicyIndex();
  for (const each of policies) index.put(each);
  return index;
}

const REASONS: readonly [what: string, action: string, path: string, reason: string][] = [
  [
    'the policy and the pattern that decided',
    'retrieve',
    'prod/db/x',
    'Policy short grants retrieve on prod/db/*; it is the most restrictive policy that matches.',
  ],
  [
    'the exact path',
    'retrieve',
    'prod/web',
    'Policy long grants retrieve on prod/web; it is the most restrictive policy that matches.',
  ],
  [
    'the nearest pattern',
    'retrieve',
    'prod/d',
    'No policy grants this agent the action on this path; the nearest pattern is prod/db/*.',
  ],
  [
    'the nearest pattern, at a longer path',
    'retrieve',
    'prod/website/x',
    'No policy grants this agent the action on this path; the nearest pattern is prod/web.',
  ],
  ['the missing action', 'delete', 'prod/db/x', 'No policy grants this agent the action.'],
  [
    'the actions that there are',
    'destroy',
    'prod/db/x',
    'The action does not exist; the actions are retrieve, use, list, store, delete.',
  ],
];

for (const [what, action, text, reason] of REASONS) {
  test(`an explanation names ${what}`, () => {
    const policies = indexOf(
      policy('long', 'agent:ann', ['prod/db/*', 'prod/web'], ['retrieve'], 300),
      policy('short', 'agent:a*', ['other', 'prod/db/*'], ['retrieve', 'list'], 60),
      policy('bob', 'agent:bob', ['prod/d', 'prod/website/x'], ['retrieve', 'delete']),
    );
    const path = parsePath(text);
    const decision = decide(policies, ANN, action, path);
    const question = { policies, agent: ANN, action, path };
    assert.equal(explain(decision, { ...question, isRegistered: true }), reason);
    assert.equal(explain(decision, { ...question, isRegistered: false }), `${reason} The agent is not registered.`);
  });
}

test('an explanation says that no policy names the agent', () => {
  const policies = indexOf(policy('bob', 'agent:bob', ['*']));
  const path = parsePath('prod');
  const question = { policies, agent: ANN, action: 'retrieve', path, isRegistered: true };
  assert.equal(explain(decide(policies, ANN, 'retrieve', path), question), 'No policy names this agent.');
});

const commonLength = (a: string, b: string): number => {
  let length = 0;
  while (length < Math.min(a.length, b.length) && a[length] === b[length]) length++;
  return length;
};

test('the nearest pattern has the longest common prefix with the path', () => {
  const segments = fc.array(fc.constantFrom('a', 'b', 'ab', 'abc'), { minLength: 1, maxLength: 3 });
  const paths = segments.map((parts) => parsePath(parts.join('/')));
  const patterns = fc.tuple(paths, fc.constantFrom('', '/*')).map(([path, end]) => parsePattern(path + end));
  fc.assert(
    fc.property(fc.uniqueArray(patterns, { minLength: 1, maxLength: 6 }), paths, (resources, path) => {
      const policies = indexOf(policy('p', 'agent:ann', resources));
      const decision = decide(policies, ANN, 'retrieve', path);
      const reason = explain(decision, { policies, agent: ANN, action: 'retrieve', path, isRegistered: true });
      if (decision.allowed) return;
      const nearest = /the nearest pattern is (\S+)\.$/.exec(reason)?.[1] ?? '';
      assert.ok(
        resources.some((pattern) => pattern === nearest),
        reason,
      );
      const longest = Math.max(...resources.map((pattern) => commonLength(pattern, path)));
      assert.equal(commonLength(nearest, path), longest, `${reason} ${path} ${resources}`);
    }),
    runs(80, 1000),
  );
});
