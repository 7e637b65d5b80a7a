/** A server whose agents need approvals for each use of a credential, with a real upstream and two approvers. */
import assert from 'node:assert/strict';
import { startUpstream } from '../broker/upstream.ts';
import { type Client, createClient, logIn, readAgentKey } from '../kit/client.ts';
import type { Scope } from '../kit/directory.ts';
import { demandApproval, findPending } from '../kit/held.ts';
import { addOperator } from '../kit/operators.ts';
import { startTestService } from '../kit/service.ts';
import { exchange, storeWithTargets } from '../kit/use.ts';

/** What is held that long is answered before, or was meant to go on waiting. */
const HOLD_MS = 100;
export const APPROVALS = '/api/v1/approvals';

export interface Sent {
  readonly method?: string;
  readonly target?: string;
  readonly body?: string | Buffer;
  readonly headers?: Record<string, string>;
}

export async function startApprovals(scope: Scope, flags: readonly string[] = []) {
  const service = await startTestService(scope, [...flags], undefined, undefined, { approvalHoldMs: HOLD_MS });
  const { admin, address, dataDir } = service;
  const upstream = await startUpstream(scope, (request, response) => {
    if (request.url?.startsWith('/slow') === true) response.write('first');
    else request.resume().on('end', () => response.end('reached'));
  });
  const ann = await addOperator(service, 'ann', ['approver', 'editor'], { '*': ['retrieve', 'use', 'list', 'store'] });
  const ben = await addOperator(service, 'ben', ['approver']);

  let made = 0;
  /** An agent that has a credential with the upstream as its target, and needs an approval for each use of it. */
  async function newAgent(approval: object = {}, by: Client = admin) {
    const name = `bot-${++made}`;
    const path = `api/${name}`;
    await storeWithTargets(service, path, upstream);
    assert.equal((await by.post('/api/v1/agents', { name })).status, 201);
    await demandApproval(service, name, [path], { for: 'use', ...approval });
    return { name, path, ...(await enter(name)) };
  }

  async function enter(name: string): Promise<{ token: string; client: Client }> {
    const token = await logIn(address, name, readAgentKey(dataDir, name));
    return { token, client: createClient(address, token) };
  }

  /** Sends to the agent's base URL. */
  async function send(
    { path, token }: { readonly path: string; readonly token: string },
    { target = '/v1/pay', method = 'POST', body, headers = {} }: Sent = {},
  ) {
    const authorization = `Bearer ${token}`;
    const all = { authorization, 'content-type': 'text/plain', ...headers };
    const { response, text } = await exchange(address, `/use/${path}/-${target}`, all, {
      method,
      ...(body === undefined ? {} : { body }),
    });
    const answer = await text();
    return { status: response.statusCode, text: answer, code: /"code":"(\w+)"/.exec(answer)?.[1] ?? null };
  }

  async function approve(path: string, by: Client = ann): Promise<string> {
    const { approval_id, nonce } = await findPending(admin, path);
    const answered = await by.post(`${APPROVALS}/${approval_id}/approve`, { nonce });
    assert.equal(answered.status, 200, answered.text);
    return approval_id;
  }

  async function assertHeld(sent: ReturnType<typeof send>): Promise<void> {
    const { status, code } = await sent;
    assert.deepEqual({ status, code }, { status: 503, code: 'APPROVAL_PENDING' });
  }

  return { service, upstream, ann, ben, newAgent, enter, send, approve, assertHeld };
}
