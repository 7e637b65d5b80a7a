/** Calls that wait for an approval: further tries of the same request, also of one that changes something. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { LeaseholdError } from '../../src/client/errors.ts';
import { Leasehold } from '../../src/client/leasehold.ts';
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
      // As many as fit into the time that a busy machine needs for the approval.
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
