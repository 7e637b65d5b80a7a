// The ranges that an agent may list: computed once for each change of its policies, and never out of date.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentName, PolicyName } from '../../src/core/names.ts';
import { type Pattern, toRanges } from '../../src/core/pattern.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { PolicyIndex } from '../../src/vault/policies/policy-index.ts';

const AGENT = 'ci-1' as AgentName;

test('ranges follow every change of the policies and are cached in between', () => {
  const policies = new PolicyIndex();
  const listed = new Map<string, readonly Pattern[]>();
  const put = (name: string, principal: string, resources: readonly string[]): void => {
    listed.set(name, resources as readonly string[] as Pattern[]);
    policies.put({ ...Policy.parse({ name, principal, resources: [...resources], actions: ['list'] }), createdAt: 0 });
  };
  const assertRanges = (): void =>
    assert.deepEqual(policies.grantedRanges(AGENT, 'list'), toRanges([...listed.values()].flat()));
  assertRanges();
  put('one', 'agent:ci-1', ['b/*', 'a']);
  assertRanges();
  assert.equal(policies.grantedRanges(AGENT, 'list'), policies.grantedRanges(AGENT, 'list'));
  put('two', 'agent:ci-*', ['b/c', 'c/*', 'a/*']);
  assertRanges();
  put('one', 'agent:ci-1', ['d']);
  assertRanges();
  // The principal has another policy already, so the ranges that were computed for it may be kept by mistake.
  put('three', 'agent:ci-1', ['e/*']);
  assertRanges();
  policies.remove('three' as PolicyName);
  listed.delete('three');
  assertRanges();
  policies.remove('two' as PolicyName);
  listed.delete('two');
  assertRanges();
  assert.deepEqual(policies.grantedRanges(AGENT, 'store'), []);
});
