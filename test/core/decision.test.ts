// The decision and its index, compared with a loop over a list. SOURCE: docs/decisions.md, "Policies".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type AgentName, type PolicyName, parseAgentName } from '../../src/core/names.ts';
import { type CredentialPath, parsePath } from '../../src/core/path.ts';
import { matchingPatterns, nearestPattern, type Pattern, toRanges } from '../../src/core/pattern.ts';
import { ACTIONS, Policy } from '../../src/vault/policies/policy.ts';
import { decide, PolicyIndex } from '../../src/vault/policies/policy-index.ts';
import { runs } from '../kit/property.ts';
import { decidePlainly, patternCovers, principalNames } from './reference.ts';

const EVERY_LENGTH = { has: () => true };

const AGENTS = ['a', 'ab', 'abc', 'A', 'b', 'constructor', 'a.b-c'].map((name) => parseAgentName(name));
const PATHS = ['p', 'p/x', 'p/x/y', 'p/xy', 'px', 'q', '__proto__/x', 'constructor'].map((path) => parsePath(path));
const QUESTIONED = [...ACTIONS, 'destroy', 'constructor', '', 'Retrieve'];

interface Fields {
  readonly name: string;
  readonly principal: string;
  readonly resources: string[];
  readonly actions: string[];
  readonly max_ttl: number;
}

const toPolicy = (fields: Fields): Policy => ({ ...Policy.parse(fields), createdAt: 0 });

// Few of each, so that policies collide: same names, same TTLs, overlapping patterns and principals.
const policies = fc
  .record<Fields>({
    name: fc.constantFrom('p1', 'p2', 'p3', 'P1', 'p10', 'toString'),
    principal: fc
      .constantFrom('a', 'a*', '*', 'ab', 'ab*', 'abc*', 'A', 'b', 'constructor', 'a.b-c')
      .map((name) => `agent:${name}`),
    resources: fc.uniqueArray(
      fc.constantFrom('*', 'p', 'p/*', 'p/x', 'p/x/*', 'p/x/y', 'q/*', 'px', '__proto__/*', 'constructor'),
      { minLength: 1, maxLength: 3 },
    ),
    actions: fc.uniqueArray(fc.constantFrom(...ACTIONS), { minLength: 1, maxLength: 4 }),
    max_ttl: fc.constantFrom(1, 2, 300),
  })
  .map(toPolicy);
const sets = fc.uniqueArray(policies, { maxLength: 12, selector: ({ name }) => name });

function indexOf(several: readonly Policy[]): PolicyIndex {
  const index = new PolicyIndex();
  for (const policy of several) index.put(policy);
  return index;
}

function* questions(): Generator<[agent: AgentName, action: string, path: CredentialPath]> {
  for (const agent of AGENTS) for (const action of QUESTIONED) for (const path of PATHS) yield [agent, action, path];
}

/** The expected content of the index, computed from the list. */
function holdAgainst(index: PolicyIndex, list: readonly Policy[]): void {
  for (const [agent, action, path] of questions()) {
    const policy = decidePlainly(list, agent, action, path);
    const own = list.filter(({ principal }) => principalNames(principal, agent));
    const code = !(ACTIONS as readonly string[]).includes(action)
      ? 'unknown_action'
      : own.length === 0
        ? 'no_policy'
        : own.some(({ actions }) => (actions as readonly string[]).includes(action))
          ? 'no_path'
          : 'no_action';
    const expected =
      policy === null
        ? { allowed: false, denial: code === 'unknown_action' ? { code } : { code, principal: agent, action } }
        : { allowed: true, policyName: policy.name, ttlSeconds: policy.maxTtlSeconds };
    assert.deepEqual(decide(index, agent, action, path), expected, `${agent} ${action} ${path}`);
  }
}

test('a decision equals that of a loop over all policies', () => {
  fc.assert(
    fc.property(sets, (list) => holdAgainst(indexOf(list), list)),
    runs(60, 1000),
  );
});

test('after any puts, replacements and removals the index has exactly the content of the list', () => {
  const steps = fc.array(fc.oneof(policies, fc.constantFrom('p1', 'p2', 'p3', 'P1', 'p10', 'toString', 'p4')), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(steps, (history) => {
      const index = new PolicyIndex();
      let list: Policy[] = [];
      for (const step of history) {
        const name = typeof step === 'string' ? step : step.name;
        list = list.filter((policy) => policy.name !== name);
        if (typeof step === 'string') index.remove(name as Policy['name']);
        else {
          list.push(step);
          index.put(step);
        }
        assert.deepEqual(
          index.all(),
          list.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
        );
        assert.equal(index.size, list.length);
        assert.equal(index.get(name as Policy['name']), typeof step === 'string' ? null : step);
      }
      holdAgainst(index, list);
      for (const agent of AGENTS) {
        for (const action of ACTIONS) {
          const granting = list.filter(
            (policy) => principalNames(policy.principal, agent) && policy.actions.includes(action),
          );
          const granted = granting.flatMap(({ resources }) => resources);
          assert.deepEqual(index.grantedRanges(agent, action), toRanges(granted));
          for (const path of PATHS) {
            assert.equal(index.nearestPattern(agent, action, path), nearestPattern(granted, path));
          }
        }
      }
    }),
    runs(60, 1000),
  );
});

test('the smallest max_ttl decides, then the name, regardless of which pattern is more specific', () => {
  const grant = (name: string, resource: string, maxTtlSeconds: number) =>
    toPolicy({ name, principal: 'agent:a', resources: [resource], actions: ['retrieve'], max_ttl: maxTtlSeconds });
  const [agent, path] = [parseAgentName('a'), parsePath('p/x')];
  const decides = (...list: Policy[]) => decide(indexOf(list), agent, 'retrieve', path);
  const wide = grant('wide', '*', 60);
  const exact = grant('exact', 'p/x', 300);
  assert.deepEqual(decides(exact, wide), { allowed: true, policyName: 'wide', ttlSeconds: 60 });
  const names = ['b', 'B', 'a10', 'a2', 'a'].map((name) => grant(name, 'p/*', 60));
  assert.deepEqual(decides(...names), { allowed: true, policyName: 'B', ttlSeconds: 60 });
  assert.deepEqual(decides(...names, grant('z', 'p/*', 59)), { allowed: true, policyName: 'z', ttlSeconds: 59 });
});

test('every pattern that covers the deepest path is found', () => {
  const segments = fc.array(fc.constantFrom('a', 'b', 'a.b', '~'), { minLength: 1, maxLength: 32 });
  fc.assert(
    fc.property(segments, segments, fc.nat(), (deep, other, at) => {
      const path = parsePath(deep.join('/'));
      const pattern = matchingPatterns(path, EVERY_LENGTH)[at % (deep.length + 1)] ?? '*';
      const policy = toPolicy({
        name: 'p',
        principal: 'agent:*',
        resources: [pattern],
        actions: ['list'],
        max_ttl: 1,
      });
      const index = indexOf([policy]);
      for (const asked of [path, parsePath(other.join('/'))]) {
        const isCovered = patternCovers(pattern, asked);
        assert.equal(decide(index, parseAgentName('a'), 'list', asked).allowed, isCovered, `${pattern} ${asked}`);
      }
      assert.equal(decide(index, parseAgentName('a'), 'list', path).allowed, true);
    }),
    runs(100, 1000),
  );
});

// The ranges that an agent may list: computed once for each change of its policies, and never out of date.

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
