// The policies that require an approval, compared with a loop over all policies. Also the cost of the search, which
// precedes every retrieval and brokered request.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseAgentName } from '../../src/core/names.ts';
import { parsePath } from '../../src/core/path.ts';
import { explain } from '../../src/vault/policies/decision-text.ts';
import { Policy, type PolicyInput, principalMatches } from '../../src/vault/policies/policy.ts';
import { decide, PolicyIndex } from '../../src/vault/policies/policy-index.ts';
import { assertGrowth } from '../kit/growth.ts';
import { runs } from '../kit/property.ts';
import { patternCovers } from './reference.ts';

const AGENTS = ['a', 'ab', 'b'].map((name) => parseAgentName(name));
const PATHS = ['p', 'p/x', 'p/x/y', 'q'].map((path) => parsePath(path));

const demanding = (
  name: string,
  principal: string,
  resources: string[],
  approval?: PolicyInput['approval'],
): Policy => ({
  ...Policy.parse({ name, principal, resources, actions: ['use', 'retrieve'], approval }),
  createdAt: 0,
});

const policies = fc
  .record({
    name: fc.constantFrom('p1', 'p2', 'p3', 'p4', 'p5'),
    principal: fc.constantFrom('agent:a', 'agent:a*', 'agent:*', 'agent:b', 'operator:*'),
    resources: fc.uniqueArray(fc.constantFrom('*', 'p', 'p/*', 'p/x', 'p/x/*', 'q'), { minLength: 1, maxLength: 4 }),
    action: fc.constantFrom('use', 'retrieve', null),
  })
  .map(({ name, principal, resources, action }) =>
    demanding(name, principal, resources, action === null ? undefined : { for: action }),
  );

test('after any changes, each policy that demands an approval is found once where it matches, and no other', () => {
  const steps = fc.array(fc.oneof(policies, fc.constantFrom('p1', 'p2', 'p3')), { maxLength: 20 });
  fc.assert(
    fc.property(steps, (history) => {
      const index = new PolicyIndex();
      const byName = new Map<string, Policy>();
      for (const step of history) {
        if (typeof step === 'string') {
          index.remove(step as Policy['name']);
          byName.delete(step);
        } else {
          index.put(step);
          byName.set(step.name, step);
        }
      }
      for (const agent of AGENTS) {
        for (const path of PATHS) {
          for (const action of ['use', 'retrieve', 'list'] as const) {
            const expected = [...byName.values()].filter(
              ({ approval, principal, resources }) =>
                approval?.for === action &&
                principalMatches(principal, agent) &&
                resources.some((pattern) => patternCovers(pattern, path)),
            );
            const found = index.findApprovalPolicies(agent, action, path);
            assert.deepEqual(found.map(({ name }) => name).sort(), expected.map(({ name }) => name).sort());
          }
        }
      }
    }),
    runs(80, 1000),
  );
});

const SIZES = [10, 10_000];
const indexOf = (size: number, toPolicy: (number: number) => Policy): PolicyIndex => {
  const index = new PolicyIndex();
  for (let number = 0; number < size; number++) index.put(toPolicy(number));
  return index;
};

test('the search does not depend on the number of policies of others, or on other paths', () => {
  const indexes = new Map(
    SIZES.map((size) => [
      size,
      indexOf(size, (number) =>
        number % 2 === 0
          ? demanding(`other-${number}`, `agent:other-${number}`, ['*'], { for: 'use' })
          : demanding(`own-${number}`, 'agent:*', [`own/${number}/*`], { for: 'use' }),
      ),
    ]),
  );
  const [agent, path] = [parseAgentName('ann'), parsePath('team/a/secret')];
  assertGrowth(
    (size) => {
      for (let time = 0; time < 2000; time++) indexes.get(size)?.findApprovalPolicies(agent, 'use', path);
    },
    { small: 10, times: 1000, limit: 30 },
  );
});

test('explanations of many agents do not read all the patterns for each', () => {
  const indexes = new Map(
    SIZES.map((size) => [size, indexOf(size, (number) => demanding(`p-${number}`, 'agent:*', [`z${number}/*`]))]),
  );
  const path = parsePath('team/a/secret');
  assertGrowth(
    (size) => {
      const index = indexes.get(size) ?? assert.fail();
      for (let number = 0; number < 500; number++) {
        const agent = parseAgentName(`agent-${number}`);
        const decision = decide(index, agent, 'use', path);
        const question = { policies: index, agent, isRegistered: true, action: 'use', path };
        assert.ok(explain(decision, question).includes('z0/*'));
      }
    },
    { small: 10, times: 1000, limit: 30 },
  );
});
