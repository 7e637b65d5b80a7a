/** Requests that wait for people: retrievals under a policy that demands an approval. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, TestResponse } from './client.ts';
import type { TestService } from './service.ts';

const APPROVALS = '/api/v1/approvals';
/** Ends only tests that hang. */
const FIND_TIMEOUT_MS = 120_000;

type Service = Pick<TestService, 'address' | 'admin'>;

/** Grants the agent the action on the paths and demands an approval for it. */
export async function demandApproval(
  { admin }: Pick<TestService, 'admin'>,
  name: string,
  resources: readonly string[],
  approval: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const rule = { for: 'retrieve', ...approval };
  const policy = { principal: `agent:${name}`, resources, actions: [rule.for], approval: rule };
  const answer = await admin.put(`/api/v1/policies/asks-${name}`, policy);
  assert.equal(answer.status, 200, answer.text);
}

export interface HeldRequest {
  readonly approval_id: string;
  readonly nonce: string;
  readonly response: Promise<TestResponse>;
  /** Disconnects. The request still waits for its approval. */
  abandon(): Promise<void>;
}

/** Retrieves the credential with the token; resolves when the request waits for an approval. */
export async function askToRetrieve(service: Service, token: string, path: string): Promise<HeldRequest> {
  const abort = new AbortController();
  const response = fetch(`${service.address}/api/v1/credentials/${path}`, {
    headers: { authorization: `Bearer ${token}` },
    signal: abort.signal,
  }).then(async (answer): Promise<TestResponse> => {
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, body: JSON.parse(text) };
  });
  // A request that is abandoned has no other reader.
  response.catch(() => undefined);
  const { approval_id, nonce } = await findPending(service.admin, path);
  const abandon = async (): Promise<void> => {
    abort.abort();
    await response.catch(() => undefined);
  };
  return { approval_id, nonce, response, abandon };
}

/** The newest approval that waits for the path. */
export async function findPending(admin: Client, path: string): Promise<{ approval_id: string; nonce: string }> {
  const endsAt = performance.now() + FIND_TIMEOUT_MS;
  while (performance.now() < endsAt) {
    const { body } = await admin.get(`${APPROVALS}?status=pending&limit=1000`);
    const found = body.data.find((approval: { path: string }) => approval.path === path);
    if (found !== undefined) return found;
    await sleep(10);
  }
  return assert.fail(`no approval waits for ${path}`);
}
