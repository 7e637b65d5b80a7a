// A tool that waits for an approval: with a client that opens links for its user, and with one that cannot.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { addOperator } from '../kit/operators.ts';
import { connect, TRANSPORTS } from './fixture.ts';
import { KEY_PATH, startUseStage } from './use-stage.ts';

const TOOL = 'http_request';

async function stageWith(t: TestContext, approval: object, approvalHoldMs = 300) {
  const stage = await startUseStage(t, (_request, response) => void response.end('done'), { approvalHoldMs });
  const { service } = stage;
  const approver = await addOperator(service, 'alice', ['approver']);
  const policy = { principal: 'agent:builder', resources: ['api/*'], actions: ['use'], approval };
  await service.admin.put('/api/v1/policies/asks', policy);
  const answer = async (id: string, verb: 'approve' | 'deny', fields: object = {}): Promise<void> => {
    const { nonce } = (await approver.get(`/api/v1/approvals/${id}`)).body.data;
    const { status, text } = await approver.post(`/api/v1/approvals/${id}/${verb}`, { nonce, ...fields });
    assert.equal(status, 200, text);
  };
  const input = { path: KEY_PATH, url: `${stage.origin}/v1/x` };
  return { ...stage, answer, input };
}

test('without links: the result is pending, not a refusal, and the same call again goes on waiting', async (t) => {
  const { client, input, answer, service, requests } = await stageWith(t, { for: 'use' });
  const first = await client.callTool({ name: TOOL, arguments: input });
  const { approval_id: id, link, ...others } = first.structuredContent as Record<string, unknown>;
  assert.equal(first.isError, true);
  assert.deepEqual(others, { code: 'APPROVAL_PENDING', outcome: 'pending', is_refusal: false });
  assert.equal(link, `${service.address}/console/approvals/${id}`);
  const [{ text = '' } = {}] = first.content as { text?: string }[];
  assert.match(text, /^APPROVAL_PENDING: .*none has answered yet\. This is not a refusal/);
  assert.match(text, /Nothing was sent\. Call this tool again with the same arguments to go on waiting\./);
  assert.ok(text.includes(`at ${link} or with: leasehold approve ${id}.`));
  assert.equal(requests.length, 0);
  await answer(String(id), 'approve');
  const second = await client.callTool({ name: TOOL, arguments: input });
  assert.deepEqual([second.isError, requests.length], [undefined, 1]);
  assert.equal((second.structuredContent as { body: string }).body, 'done');
});

for (const over of TRANSPORTS) {
  test(`with links, over ${over}: the user opens the approval, and the call ends with its result`, async (t) => {
    const { mcp, input, answer, service, requests } = await stageWith(t, { for: 'use' });
    const opened: string[] = [];
    const { client } = await connect(t, mcp, over, 'auto', async (url) => {
      opened.push(url);
      await answer(url.slice(url.lastIndexOf('/') + 1), 'approve');
    });
    const { isError, structuredContent } = await client.callTool({ name: TOOL, arguments: input });
    assert.equal(isError, undefined);
    assert.equal((structuredContent as { body: string }).body, 'done');
    assert.equal(opened.length, 1);
    assert.match(opened[0] ?? '', new RegExp(`^${service.address}/console/approvals/[0-9a-f-]{36}$`));
    assert.equal(requests.length, 1);
  });
}

test('with links on the earlier protocol: a user who does not answer is asked once, then it is pending', async (t) => {
  const { mcp, input } = await stageWith(t, { for: 'use' });
  let asked = 0;
  const { client } = await connect(t, mcp, 'stdio', 'legacy', () => void asked++);
  for (let call = 0; call < 2; call++) {
    const { structuredContent } = await client.callTool({ name: TOOL, arguments: input });
    assert.equal((structuredContent as { outcome: string }).outcome, 'pending');
  }
  assert.equal(asked, 1);
});

test('the outcomes without an approval are told apart by a program and by a reader', async (t) => {
  const { client, input, answer, service } = await stageWith(t, { for: 'use' }, 200);
  const outcome = async (url: string): Promise<readonly [unknown, unknown, string]> => {
    const { isError, structuredContent, content } = await client.callTool({ name: TOOL, arguments: { ...input, url } });
    assert.equal(isError, true);
    const { outcome: found, is_refusal: isRefusal } = structuredContent as Record<string, unknown>;
    const [{ text = '' } = {}] = content as { text?: string }[];
    return [found, isRefusal, text];
  };
  const pendingId = async (): Promise<string> =>
    (await service.admin.get('/api/v1/approvals?status=pending')).body.data[0].approval_id;
  const [first, second, third] = [`${input.url}1`, `${input.url}2`, `${input.url}3`];
  assert.equal((await outcome(first))[0], 'pending');
  await answer(await pendingId(), 'deny', { reason: 'wrong account' });
  const denied = await outcome(first);
  assert.deepEqual(denied.slice(0, 2), ['denied', true]);
  assert.match(denied[2], /^APPROVAL_DENIED: .*by operator:alice: wrong account\. Do not send the request again\.$/);
  assert.equal((await outcome(second))[0], 'pending');
  await service.admin.delete(`/api/v1/approvals/${await pendingId()}`);
  const withdrawn = await outcome(second);
  assert.deepEqual(withdrawn.slice(0, 2), ['withdrawn', false]);
  assert.match(withdrawn[2], /^APPROVAL_WITHDRAWN: .*This is not a refusal/);
  const policy = { principal: 'agent:builder', resources: ['api/*'], actions: ['use'] };
  await service.admin.put('/api/v1/policies/asks', { ...policy, approval: { for: 'use', timeout: 1 } });
  const late = async () => {
    for (;;) {
      const found = await outcome(third);
      if (found[0] !== 'pending') return found;
    }
  };
  const timedOut = await late();
  assert.deepEqual(timedOut.slice(0, 2), ['timed_out', false]);
  assert.match(timedOut[2], /^APPROVAL_TIMED_OUT: .*This is not a refusal/);
  await service.admin.put('/api/v1/policies/asks', { ...policy, approval: { for: 'use', quorum: 3 } });
  const none = await outcome(`${input.url}4`);
  assert.deepEqual(none.slice(0, 2), ['no_approver', false]);
  assert.match(none[2], /^NO_APPROVER: /);
});
