// Parsing of policies: principals, actions, TTLs. SOURCE: docs/decisions.md, "Policies".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAgentName } from '../../src/core/names.ts';
import { isAction, Policy, parsePrincipal, parseTtl, principalMatches } from '../../src/vault/policies/policy.ts';
import { principalNames } from './reference.ts';
import { refusal } from './refusals.ts';

const LONGEST_NAME = 'a'.repeat(63);
const FIELDS = { name: 'p', principal: 'agent:a', resources: ['prod/*'], actions: ['retrieve'] };

const PRINCIPALS = [
  'agent:a',
  'agent:ci-1',
  'agent:ci-*',
  'agent:*',
  'agent:A*',
  'agent:admin*',
  `agent:${LONGEST_NAME}`,
  `agent:${LONGEST_NAME}*`,
];

const NO_PRINCIPALS = [
  '',
  'a',
  '*',
  'agent',
  'agent:',
  'Agent:a',
  'user:a',
  ' agent:a',
  'agent: a',
  'agent:a ',
  'agent:a\n',
  'agent:**',
  'agent:a**',
  'agent:*a',
  'agent:a*b',
  'agent:-*',
  'agent:-a',
  'agent:a/*',
  'agent:agent:a',
  'agent:admin',
  'agent:Service',
  `agent:${LONGEST_NAME}a`,
  `agent:${LONGEST_NAME}a*`,
];

test('the grammar of principals', () => {
  for (const text of PRINCIPALS) assert.equal(parsePrincipal(text), text);
  for (const text of NO_PRINCIPALS) refusal('principal', () => parsePrincipal(text), text);
});

test('a principal matches an agent by its whole name, or by the prefix before the *', () => {
  const agents = ['a', 'A', 'ab', 'ci-1', 'ci-', 'ci', 'CI-1', 'xci-1', LONGEST_NAME].map((name) =>
    parseAgentName(name),
  );
  for (const principal of [...PRINCIPALS, 'agent:ci', 'agent:a-*'].map(parsePrincipal)) {
    for (const agent of agents) {
      assert.equal(principalMatches(principal, agent), principalNames(principal, agent), `${principal} and ${agent}`);
    }
  }
  assert.equal(principalMatches(parsePrincipal('agent:ci-*'), parseAgentName('ci-1')), true);
  assert.equal(principalMatches(parsePrincipal('agent:ci-*'), parseAgentName('ci-')), true);
  assert.equal(principalMatches(parsePrincipal('agent:ci-*'), parseAgentName('ci')), false);
  assert.equal(principalMatches(parsePrincipal('agent:ci'), parseAgentName('ci-1')), false);
  assert.equal(principalMatches(parsePrincipal('agent:ci-*'), parseAgentName('CI-1')), false);
});

for (const seconds of [1, 2, 300, 31_536_000]) {
  test(`a TTL may be ${seconds} s`, () => {
    assert.equal(parseTtl(seconds, 'max_ttl'), seconds);
  });
}

for (const value of [0, -1, 1.5, 31_536_001, 2 ** 31, 1e300, Number.NaN, Number.POSITIVE_INFINITY, -0]) {
  test(`a TTL may not be ${Object.is(value, -0) ? '-0' : value}`, () => {
    assert.match(
      refusal('max_ttl', () => Policy.parse({ ...FIELDS, max_ttl: value })),
      /1 to 31536000/,
    );
    refusal('ttl', () => parseTtl(value, 'ttl'));
  });
}

test('max_ttl is 300 s by default', () => {
  assert.equal(Policy.parse(FIELDS).maxTtlSeconds, 300);
  assert.equal(Policy.parse({ ...FIELDS, max_ttl: undefined }).maxTtlSeconds, 300);
});

test('a policy keeps the given fields, each pattern and action once', () => {
  const given = {
    name: 'p.1',
    principal: 'agent:ci-*',
    resources: ['b/*', 'a', 'b/*', '*'],
    actions: ['delete', 'retrieve', 'delete', 'list', 'store'],
    max_ttl: 7,
  };
  assert.deepEqual(Policy.toInput(Policy.parse(given)), {
    ...given,
    resources: ['b/*', 'a', '*'],
    actions: ['delete', 'retrieve', 'list', 'store'],
  });
});

test('the actions are retrieve, use, list, store and delete, and no property of Object.prototype', () => {
  for (const action of ['retrieve', 'use', 'list', 'store', 'delete']) assert.equal(isAction(action), true);
  for (const action of ['', '*', 'Retrieve', 'retrieve ', 'read', 'constructor', '__proto__', 'length', '0']) {
    assert.equal(isAction(action), false, action);
    refusal('actions[1]', () => Policy.parse({ ...FIELDS, actions: ['retrieve', action] }));
  }
});

test('a policy needs a name, at least one pattern and at least one action', () => {
  refusal('name', () => Policy.parse({ ...FIELDS, name: '' }));
  refusal('resources', () => Policy.parse({ ...FIELDS, resources: [] }));
  refusal('actions', () => Policy.parse({ ...FIELDS, actions: [] }));
  refusal('resources[1]', () => Policy.parse({ ...FIELDS, resources: ['a', 'b*'] }));
});

test('a policy has at most 256 patterns', () => {
  const resources = Array.from({ length: 256 }, (_, index) => `a/${index}`);
  assert.equal(Policy.parse({ ...FIELDS, resources }).resources.length, 256);
  refusal('resources', () => Policy.parse({ ...FIELDS, resources: [...resources, 'b'] }));
});
