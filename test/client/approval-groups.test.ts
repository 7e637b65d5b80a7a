/** Groups of requests for approval: what one answer may be for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupApprovals, isReadable } from '../../src/client/approval-groups.ts';
import type { ListedApproval } from '../../src/client/types.ts';

const START = Date.parse('2026-11-24T00:00:00.000Z');
let count = 0;

function request(atMs: number, fields: Partial<ListedApproval> = {}): ListedApproval {
  count += 1;
  return {
    approval_id: String(count).padStart(6, '0'),
    nonce: 'n',
    status: 'pending',
    agent_name: 'bot',
    action: 'use',
    path: 'llm/key',
    policy_names: ['p'],
    covers: 'This exact request.',
    each: 'request',
    uses: 1,
    seconds: 300,
    for_session: false,
    quorum: 1,
    approvals: [],
    method: 'POST',
    host: 'https://api.example.com',
    target_path: '/v1/a',
    purpose: null,
    requested_at: new Date(START + atMs).toISOString(),
    expires_at: new Date(START + 300_000).toISOString(),
    answered_at: null,
    answered_by: null,
    reason: null,
    uses_left: null,
    grant_ends_at: null,
    ...fields,
  };
}

const sizes = (approvals: readonly ListedApproval[]) => groupApprovals(approvals).map(({ length }) => length);

test('requests within 2 s of the first are one group, and the oldest is first', () => {
  const [late, first, second] = [request(2001), request(0), request(2000)];
  assert.deepEqual(groupApprovals([late, second, first]), [[first, second], [late]]);
  assert.deepEqual(groupApprovals([]), []);
});

test('any difference that an answer would be about makes another group', () => {
  const differences: readonly Partial<ListedApproval>[] = [
    { agent_name: 'other' },
    { action: 'retrieve' },
    { path: 'llm/other' },
    { method: 'GET' },
    { host: 'https://api.example.org' },
    { target_path: '/v1/b' },
    { covers: 'Any request.' },
    { quorum: 2 },
    { policy_names: ['p', 'q'] },
    { approvals: [{ operator: 'operator:alice', at: new Date(START).toISOString() }] },
  ];
  for (const difference of differences) assert.deepEqual(sizes([request(0), request(1, difference)]), [1, 1]);
  assert.deepEqual(sizes([request(0), request(1, { agent_name: 'other' }), request(2)]), [2, 1]);
});

test('a group has at most as many requests as can be shown', () => {
  const many = Array.from({ length: 45 }, () => request(0));
  assert.deepEqual(sizes(many), [20, 20, 5]);
});

test('a use without its request is not readable; a retrieval has none', () => {
  assert.equal(isReadable({ action: 'use', request: null }), false);
  assert.equal(isReadable({ action: 'retrieve', request: null }), true);
});
