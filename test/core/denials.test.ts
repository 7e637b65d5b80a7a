// The table of denials: its texts, and the page that lists the codes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { DENIAL_CLASSES } from '../../src/core/denial-kinds.ts';
import {
  DENIAL_CODES,
  type Denial,
  type DenialCode,
  type DenialOf,
  denialClassOf,
  errorOf,
  messageOf,
  reasonOf,
  resultOf,
  toApiError,
} from '../../src/core/denials.ts';
import { type PolicyName, parseAgentName, parseOperatorName } from '../../src/core/names.ts';
import { parsePath } from '../../src/core/path.ts';
import type { Approval } from '../../src/vault/approvals/approval.ts';

const path = parsePath('prod/key');
const approval = {
  id: 'ID',
  endedBy: 'operator:NAME',
  reason: 'not today',
  approvers: [],
  terms: { quorum: 2 },
} as unknown as Approval;
const access = { principal: parseAgentName('NAME'), action: 'retrieve' };

/** The parameters of the codes that have some. */
const PARAMETERS: { readonly [C in DenialCode]?: Omit<DenialOf<C>, 'code'> } = {
  role_required: { role: 'admin' },
  time_in_past: { field: 'expires_at' },
  no_policy: access,
  no_action: access,
  no_path: access,
  no_target: { lacks: 'host', nearest: null },
  returns_secret: { service: 'NAME' },
  operator_field: { field: 'FIELD', path },
  network_not_allowed: { field: 'FIELD', networks: ['10.0.0.0/8'] },
  use_limit: { policyName: 'NAME' as PolicyName, kind: 'uses per hour', amount: 100, count: null },
  token_at_route: { route: '/api/v1/leases' },
  token_at_base_url: { credential: path },
  token_in_request: { place: 'query', credential: path },
  lease_ended: { status: 'expired' },
  too_few_approvers: { quorum: 2 },
  approval_denied: { approval },
  approval_timed_out: { approval },
  approval_withdrawn: { approval },
  approval_ended: { approval, status: 'denied', attempt: 'answer' },
  approval_void: { approval, cause: 'policies' },
  name_taken: { of: 'agent' },
  last_admin: { field: 'roles' },
  operator_required: { to: 'passkeys' },
  key_slot_unusable: { problem: 'PROBLEM' },
  passkey_copied: { label: 'LABEL' },
};

const denials = DENIAL_CODES.map((code) => ({ code, ...PARAMETERS[code] }) as Denial);

test('every denial has a message that is one text with its end, and the result that follows from its error', () => {
  for (const denial of denials) {
    const message = messageOf(denial);
    assert.match(message, errorOf(denial) === 'INVALID_REQUEST' ? /^\S.*[^ ]$/ : /^[A-Z].*[.]$/, denial.code);
    assert.doesNotMatch(`${message} ${reasonOf(denial)}`, /undefined|\[object|\.\./, denial.code);
    assert.notEqual(resultOf(denial), 'allowed');
  }
  assert.equal(errorOf({ code: 'agent_not_found' }), 'NOT_FOUND');
  assert.equal(resultOf({ code: 'agent_not_found' }), 'not_found');
  assert.equal(resultOf({ code: 'value_altered' }), 'error');
});

test('the message is made of the reason where they say the same', () => {
  const both = (denial: Denial) => [reasonOf(denial), messageOf(denial)];
  assert.deepEqual(both({ code: 'admin_only' }), [
    'only the administrator may do this',
    'Only the administrator may do this.',
  ]);
  assert.deepEqual(both({ code: 'own_request' }), [
    'an operator may not answer its own request, or that of an agent that it registered',
    'Access denied: an operator may not answer its own request, or that of an agent that it registered.',
  ]);
  assert.deepEqual(both({ code: 'no_policy', principal: parseOperatorName('ann'), action: 'store' }), [
    'no policy names this operator',
    'Access denied: no policy names this operator (store).',
  ]);
  assert.deepEqual(both({ code: 'wrong_nonce' }), ['the nonce is another one', 'nonce: must be that of the approval']);
});

test('an error names the approval of its denial', () => {
  assert.equal(toApiError({ code: 'approval_denied', approval }).approvalId, 'ID');
  assert.equal(toApiError({ code: 'own_request' }).approvalId, null);
});

test('every code has a class of the closed set, and so has an unknown one', () => {
  for (const code of [...DENIAL_CODES, 'unknown', null]) assert.ok(DENIAL_CLASSES.includes(denialClassOf(code)));
  assert.equal(denialClassOf('no_path'), 'no_path');
  assert.equal(denialClassOf('challenge_used'), 'login');
  assert.equal(denialClassOf('token_at_route'), 'misuse');
  assert.equal(denialClassOf('use_limit'), 'limit');
  assert.equal(denialClassOf('unknown'), 'other');
});

test('the page of the codes lists every code with its error and its reason', () => {
  const page = readFileSync(new URL('../../docs/denials.md', import.meta.url), 'utf8');
  const listed = [...page.matchAll(/^\| `(\w+)` \| `(\w+)` \| (.*?) ?\|$/gm)].map(([, ...cells]) => cells);
  const expected = denials.map((denial) => [denial.code, errorOf(denial), reasonOf(denial) ?? '']);
  assert.deepEqual(listed.toSorted(), expected.toSorted());
});
