// A vault with rows of every kind, and everything that its service returns about it.

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { readAgentKey, type TestResponse } from '../kit/client.ts';
import { until } from '../kit/log-receivers.ts';
import { addOperator } from '../kit/operators.ts';
import type { TestService } from '../kit/service.ts';

type Json = TestResponse['body'];

/** The maximum size of a value. */
export const LARGE = 'ü'.repeat(131_072);
const RETRIEVALS = 7;

export interface Filled {
  /** The session token of an agent with every permission below `prod/`. */
  readonly session: string;
  /** The session token of an operator, an editor. */
  readonly operatorSession: string;
  readonly leaseId: string;
  /** A consumed challenge, which must not be accepted again. */
  readonly answered: { readonly challenge_id: string; readonly agent_name: string; readonly signature: string };
  /** The idempotency key of an earlier request. */
  readonly repeat: (service: TestService) => Promise<TestResponse>;
  readonly repeated: string;
}

async function expect(answer: Promise<TestResponse>, status = 200): Promise<Json> {
  const { status: found, text, body } = await answer;
  assert.equal(found, status, text);
  return body?.data;
}

export async function fillVault(service: TestService): Promise<Filled> {
  const { admin } = service;
  const store = (path: string, value: string, more: object = {}) =>
    expect(admin.post('/api/v1/credentials', { path, value, ...more }), 201);
  const worker = await service.agent('worker', { 'prod/*': ['retrieve', 'list', 'store', 'delete'] });
  const other = await service.agent('other', { 'prod/*': ['retrieve'], 'stage/key': ['retrieve'] });
  const gone = await service.agent('gone', { '*': ['retrieve'] });
  // The editor has a renewed session and a lease.
  const editor = await addOperator(service, 'editor', ['viewer', 'editor'], { 'prod/*': ['retrieve', 'store'] });
  await addOperator(service, 'former', ['approver']);
  await expect(admin.delete('/api/v1/operators/former'), 204);
  for (const version of [1, 2, 3, 4]) await store('prod/db/password', `value ${version}`, { type: `type-${version}` });
  await store('prod/large', LARGE, { description: 'tab\t, quote ", backslash \\, 🔑, line\nfeed' });
  await store('prod/large', 'small now');
  await store('prod/grows', 'small');
  await store('prod/grows', LARGE.slice(1));
  await store('stage/key', 'an old one');
  await expect(worker.get('/api/v1/credentials/prod/grows'));
  await expect(admin.get('/api/v1/credentials/stage/key'));
  await expect(admin.delete('/api/v1/credentials/stage/key'), 204);
  await store('stage/key', 'a new one');
  await store('never/asked', 'for a value');
  // Targets, and a use that no upstream answers: an intent, a use lease and a result.
  const targets = [{ origin: 'http://127.0.0.1:1', allow_networks: ['127.0.0.0/8'] }];
  await expect(admin.put('/api/v1/targets/never/asked', { targets, placement: { kind: 'basic' } }));
  await expect(admin.post('/api/v1/use', { path: 'never/asked', method: 'GET', url: 'http://127.0.0.1:1/' }), 502);
  for (let n = 0; n < RETRIEVALS; n++) await expect(worker.get('/api/v1/credentials/prod/db/password'));
  await expect(worker.get('/api/v1/credentials/prod/db/password?version=2'));
  await expect(gone.get('/api/v1/credentials/prod/large'));
  await expect(editor.get('/api/v1/credentials/prod/large'));
  await expect(editor.post('/auth/session/renew'));
  await expect(admin.delete('/api/v1/agents/gone'), 204);
  // Ended leases of every kind: revoked singly, revoked in bulk by agent and path, expired.
  const { lease_id: revoked } = await expect(other.get('/api/v1/credentials/prod/db/password'));
  await expect(admin.delete(`/api/v1/leases/${revoked}`), 204);
  await expect(other.get('/api/v1/credentials/stage/key'));
  await expect(admin.post('/api/v1/leases/revoke', { agent: 'other', path: 'stage/key' }));
  await expect(other.get('/api/v1/credentials/prod/large?ttl=1'));
  await until(async () => (await admin.get('/api/v1/leases?status=expired')).body.data.length > 0);
  assert.equal((await other.get('/api/v1/credentials/nowhere')).status, 403);
  const { lease_id: leaseId } = await expect(worker.get('/api/v1/credentials/prod/db/password'));
  const asked = await expect(service.anonymous.post('/auth/challenge', { agent_name: 'worker' }));
  const signature = sign(null, Buffer.from(asked.nonce, 'base64'), readAgentKey(service.dataDir, 'worker'));
  const answered = {
    challenge_id: asked.challenge_id,
    agent_name: 'worker',
    signature: signature.toString('base64'),
  };
  await expect(service.anonymous.post('/auth/verify', answered));
  const repeat: Filled['repeat'] = ({ as }) =>
    as(worker.token).call(
      'POST',
      '/api/v1/credentials',
      { path: 'prod/once', value: 'only' },
      { 'idempotency-key': 'a-key' },
    );
  const first = await repeat(service);
  assert.equal(first.status, 201, first.text);
  return { session: worker.token, operatorSession: editor.token, leaseId, answered, repeat, repeated: first.text };
}

/** Every response to the administrator that adds no log entry, and the lists of credentials with their exact counts. */
export async function tellAll({ admin }: Pick<TestService, 'admin'>): Promise<Record<string, Json>> {
  const exported = await admin.get('/api/v1/audit/export');
  const [credentials, agents, operators, policies, leases, targets, exposure] = await Promise.all(
    ['credentials', 'agents', 'operators', 'policies', 'leases', 'targets/never/asked', 'exposure'].map((name) =>
      admin.get(`/api/v1/${name}`),
    ),
  );
  // Listing credentials is an access, and adds a log entry after the export.
  const paths: string[] = credentials?.body.data.map(({ path }: Json) => path) ?? [];
  const metadata: Json[] = [];
  for (const path of paths) metadata.push((await admin.get(`/api/v1/credentials/${path}?view=metadata`)).body.data);
  return {
    exported: exported.text,
    credentials: credentials?.body.data,
    agents: agents?.body.data,
    operators: operators?.body.data,
    policies: policies?.body.data,
    leases: leases?.body.data,
    targets: targets?.body.data,
    exposure: exposure?.body.data,
    metadata,
  };
}
