// The grammar of names and ids. SOURCE: docs/decisions.md, "Names and paths".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { actorName, credentialType, id, policyName } from '../../src/core/grammars.ts';
import { parseAgentName } from '../../src/core/names.ts';
import { refusal } from './refusals.ts';

interface Grammar {
  readonly what: string;
  readonly parse: (text: string, field?: string) => string;
  readonly longest: number;
  readonly field: string;
}

const GRAMMARS: readonly Grammar[] = [
  { what: 'an agent’s name', parse: parseAgentName, longest: 63, field: 'name' },
  { what: 'a name in a filter', parse: (text) => actorName.parse(text, 'agent'), longest: 63, field: 'agent' },
  { what: 'a policy’s name', parse: (text) => policyName.parse(text, 'name'), longest: 128, field: 'name' },
  { what: 'a type', parse: (text) => credentialType.parse(text, 'type'), longest: 64, field: 'type' },
];

const REFUSED = [
  '',
  '.a',
  '_a',
  '-a',
  '__proto__',
  'a b',
  ' a',
  'a ',
  'a\n',
  'a/b',
  'a:b',
  'a@b',
  'a*',
  '*',
  'a\u0000',
  'ä',
  '\u212a',
  '\u0663',
  '\ud83d\ude00',
  '%61',
];

for (const { what, parse, longest, field } of GRAMMARS) {
  test(`the grammar of ${what}, whose error does not depend on the input`, () => {
    const accepted = ['a', 'Z', '0', 'a.b_c-D9', 'a-', 'a.', 'a..b', 'constructor', 'toString', 'a'.repeat(longest)];
    for (const text of accepted) assert.equal(parse(text), text);
    const errors = [...REFUSED, 'a'.repeat(longest + 1)].map((text) => refusal(field, () => parse(text), text));
    assert.equal(new Set(errors).size, 1);
  });
}

test('no agent has a reserved name, and a filter may ask for it', () => {
  for (const name of ['admin', 'service', 'anonymous', 'Admin', 'SERVICE', 'aNonymous']) {
    refusal('name', () => parseAgentName(name));
    refusal('agent_name', () => parseAgentName(name, 'agent_name'));
  }
  for (const name of ['administrator', 'admin.', 'service-1', 'my-admin']) assert.equal(parseAgentName(name), name);
  for (const name of ['admin', 'service', 'anonymous']) assert.equal(actorName.parse(name, 'agent'), name);
});

test('the well-known types are types', () => {
  for (const type of ['api_key', 'token', 'password', 'certificate', 'ssh_key', 'oauth_token', 'generic']) {
    assert.equal(credentialType.parse(type, 'type'), type);
  }
});

const UUID = '0190c5f2-7e3a-7b1c-8d2e-0123456789ab';
const NO_UUIDS = [
  '',
  `${UUID}\n`,
  ` ${UUID}`,
  `{${UUID}}`,
  UUID.replaceAll('-', ''),
  `${UUID}0`,
  UUID.replace('0', 'g'),
];
const LETTERS = [...UUID].flatMap((character, at) => (/[a-f]/.test(character) ? [at] : []));
const IN_OTHER_CASE = LETTERS.map(
  (at) => UUID.slice(0, at) + UUID.slice(at, at + 1).toUpperCase() + UUID.slice(at + 1),
);

test('ids of leases and challenges are UUIDs in lower case', () => {
  assert.equal(id().parse(UUID, 'lease_id'), UUID);
  for (const text of [...NO_UUIDS, ...IN_OTHER_CASE]) {
    refusal('lease_id', () => id().parse(text, 'lease_id'));
  }
});
