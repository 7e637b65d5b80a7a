/** Calls that wait for an approval: further tries of the same request, also of one that changes something. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { groupApprovals, isReadable } from '../../src/client/approvals.ts';
import { LeaseholdError } from '../../src/client/errors.ts';
import { Leasehold } from '../../src/client/leasehold.ts';
import type { ListedApproval } from '../../src/client/types.ts';
import { startUpstream } from '../broker/upstream.ts';
import { startTestService } from '../kit/service.ts';
import { storeWithTargets, VALUE } from '../kit/use.ts';

const service = await startTestService({ after }, [], undefined, undefined, { approvalHoldMs: 100 });
const upstream = await startUpstream({ after }, (_request, response) => response.end('done'));
await storeWithTargets(service, 'llm/key', upstream);
const { token } = await service.agent('bot');
const admin = new Leasehold({ address: service.address, token: service.adminToken });
const url = `https://127.0.0.1:${upstream.port}/v1/pay`;

async function demand(action: 'use' | 'retrieve') {
  const policy = { principal: 'agent:bot', resources: ['llm/*'], actions: [action], approval: { for: action } };
  assert.equal((await service.admin.put('/api/v1/policies/asks', policy)).status, 200);
}

test('a use that changes something is tried as often as the call says, and the error has the approval', async () => {
  await demand('use');
  const pending: string[] = [];
  const onApprovalPending = (id: string) => void pending.push(id);
  const vault = new Leasehold({ address: service.address, token, retries: 1, onApprovalPending });
  await assert.rejects(vault.use({ path: 'llm/key', method: 'POST', url }), (error) => {
    assert.ok(error instanceof LeaseholdError);
    assert.deepEqual([error.code, error.status, error.approvalId], ['APPROVAL_PENDING', 503, pending[0]]);
    return true;
  });
  assert.deepEqual(pending, [pending[0], pending[0]]);
  assert.equal(upstream.requests.length, 0);
});

test('approvalRetries are apart from retries, and an approval between two tries lets the call pass', async () => {
  for (const action of ['use', 'retrieve'] as const) {
    await demand(action);
    let approved: Promise<unknown> | null = null;
    const vault = new Leasehold({
      address: service.address,
      token,
      retries: 0,
      // Enough retries for the time that a busy machine needs for the approval.
      approvalRetries: 500,
      onApprovalPending(id) {
        approved ??= admin.approvals.read(id).then(({ nonce }) => admin.approvals.approve(id, nonce));
      },
    });
    if (action === 'retrieve') assert.equal((await vault.credentials.retrieve('llm/key')).value.reveal(), VALUE);
    else assert.equal((await vault.use({ path: 'llm/key', method: 'DELETE', url })).body, 'done');
    await approved;
  }
  assert.equal(upstream.requests.length, 1);
});

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
