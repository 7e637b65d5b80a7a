// A tool that waits for an approval: with a client that opens links for its user, and with one that cannot.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { addOperator } from '../kit/operators.ts';
import { connect, KEY_PATH, startStage, textOf } from './fixture.ts';

const TOOL = 'http_request';
/** Short, because a call without an answer takes as long. */
const HOLD_MS = 200;
const POLICY = { principal: 'agent:builder', resources: ['api/*'], actions: ['use'] };

const stage = await startStage({ after }, (_request, response) => void response.end('done'), HOLD_MS);
const { service, requests } = stage;
const { mcp } = await stage.open();
const approver = await addOperator(service, 'alice', ['approver']);
await service.admin.put('/api/v1/policies/asks', { ...POLICY, approval: { for: 'use' } });
const { client } = await connect({ after }, mcp);

let calls = 0;
/** A request that no other test makes: an approval is given for one. */
const newRequest = () => ({ path: KEY_PATH, url: `${stage.origin}/v1/${++calls}` });

async function answer(id: string, verb: 'approve' | 'deny', fields: object = {}): Promise<void> {
  const { nonce } = (await approver.get(`/api/v1/approvals/${id}`)).body.data;
  const { status, text } = await approver.post(`/api/v1/approvals/${id}/${verb}`, { nonce, ...fields });
  assert.equal(status, 200, text);
}

test('without links: the result is pending, not a refusal, and the same call again goes on waiting', async () => {
  const input = newRequest();
  const first = await client.callTool({ name: TOOL, arguments: input });
  const { approval_id: id, link, ...others } = first.structuredContent as Record<string, unknown>;
  assert.equal(first.isError, true);
  assert.deepEqual(others, { code: 'APPROVAL_PENDING', outcome: 'pending', is_refusal: false });
  assert.equal(link, `${service.address}/console/approvals/${id}`);
  const text = textOf(first.content);
  assert.match(text, /^APPROVAL_PENDING: .*none has answered yet\. This is not a refusal/);
  assert.match(text, /Nothing was sent\. Call this tool again with the same arguments to go on waiting\./);
  assert.ok(text.includes(`at ${link} or with: leasehold approve ${id}.`));
  assert.equal(requests.length, 0);
  await answer(String(id), 'approve');
  const second = await client.callTool({ name: TOOL, arguments: input });
  assert.deepEqual([second.isError, requests.length], [undefined, 1]);
  assert.equal((second.structuredContent as { body: string }).body, 'done');
});

test('with links: the user opens the approval, and the call ends with its result', async (t) => {
  const opened: string[] = [];
  const linking = await connect(t, mcp, 'auto', async (url) => {
    opened.push(url);
    await answer(url.slice(url.lastIndexOf('/') + 1), 'approve');
  });
  const before = requests.length;
  assert.equal((await linking.use(TOOL, newRequest()))['body'], 'done');
  assert.equal(opened.length, 1);
  assert.match(opened[0] ?? '', new RegExp(`^${service.address}/console/approvals/[0-9a-f-]{36}$`));
  assert.equal(requests.length - before, 1);
});

test('with links on the earlier protocol: a user who does not answer is asked once, then it is pending', async (t) => {
  const input = newRequest();
  let asked = 0;
  const linking = await connect(t, mcp, 'legacy', () => void asked++);
  for (let call = 0; call < 2; call++) {
    const { structuredContent } = await linking.client.callTool({ name: TOOL, arguments: input });
    assert.equal((structuredContent as { outcome: string }).outcome, 'pending');
  }
  assert.equal(asked, 1);
});

test('the outcomes without an approval are told apart by a program and by a reader', async () => {
  const call = async (input: Record<string, unknown>) => {
    const { isError, structuredContent, content } = await client.callTool({ name: TOOL, arguments: input });
    assert.equal(isError, true);
    const { outcome, is_refusal, approval_id } = structuredContent as Record<string, unknown>;
    return { told: [outcome, is_refusal], id: String(approval_id), text: textOf(content) };
  };
  const waiting = async (input: Record<string, unknown>): Promise<string> => {
    const { told, id } = await call(input);
    assert.deepEqual(told, ['pending', false]);
    return id;
  };
  const ends = async (input: Record<string, unknown>, told: readonly unknown[], text: RegExp): Promise<void> => {
    const ended = await call(input);
    assert.deepEqual(ended.told, told);
    assert.match(ended.text, text);
  };
  const [first, second, third] = [newRequest(), newRequest(), newRequest()];
  await answer(await waiting(first), 'deny', { reason: 'wrong account' });
  const denied = /^APPROVAL_DENIED: .*by operator:alice: wrong account\. Do not send the request again\.$/;
  await ends(first, ['denied', true], denied);
  await service.admin.delete(`/api/v1/approvals/${await waiting(second)}`);
  await ends(second, ['withdrawn', false], /^APPROVAL_WITHDRAWN: .*This is not a refusal/);
  await service.admin.put('/api/v1/policies/asks', { ...POLICY, approval: { for: 'use', timeout: 1 } });
  let late = await call(third);
  while (late.told[0] === 'pending') late = await call(third);
  assert.deepEqual(late.told, ['timed_out', false]);
  assert.match(late.text, /^APPROVAL_TIMED_OUT: .*This is not a refusal/);
  await service.admin.put('/api/v1/policies/asks', { ...POLICY, approval: { for: 'use', quorum: 3 } });
  await ends(newRequest(), ['no_approver', false], /^NO_APPROVER: /);
});
