/** Every call of the interface, once: a service with its required privileges must accept each one. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { CredentialId } from '../../src/core/names.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import { initialHead } from '../../src/ledger/vault-state.ts';
import { openKeys } from '../../src/server/open-keys.ts';
import { readHead } from '../../src/store/audit-log.ts';
import { foldExposures } from '../../src/store/exposures.ts';
import { Connection } from '../../src/store/postgres/connection.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { readSchema } from '../../src/store/postgres/migrate.ts';
import type { PostgresStore } from '../../src/store/postgres/store.ts';
import { readHeldRows, readRootKeyCheck, readStoredKeys } from '../../src/store/vault-metadata.ts';
import { sweepAll } from '../contract/sweeping.ts';
import { type Client, readAgentKey, verifyAs } from '../kit/client.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { newOperatorKey } from '../kit/operators.ts';
import type { TestService } from '../kit/service.ts';

/** Uses new names, so that it can run again. @throws AssertionError at the first unexpected response */
export async function useEverything(service: TestService): Promise<void> {
  const { admin } = service;
  const name = `a${randomBytes(6).toString('hex')}`;
  const path = `all/${name}`;
  const told = async (answer: ReturnType<Client['get']>, status: number): Promise<Awaited<typeof answer>> => {
    const { status: got, text } = await answer;
    assert.equal(got, status, text);
    return answer;
  };
  await told(admin.post('/api/v1/credentials', { path, value: 'one' }), 201);
  await told(admin.call('POST', '/api/v1/credentials', { path, value: 'two' }, { 'idempotency-key': name }), 201);
  await told(admin.call('POST', '/api/v1/credentials', { path, value: 'two' }, { 'idempotency-key': name }), 201);
  await told(admin.get(`/api/v1/credentials/${path}?version=1`), 200);
  await told(admin.get(`/api/v1/credentials/${path}?view=metadata`), 200);
  await told(admin.get('/api/v1/credentials?limit=5'), 200);

  const targets = { targets: [{ origin: 'https://api.example.com' }], placement: { kind: 'bearer' } };
  await told(admin.put(`/api/v1/targets/${path}`, targets), 200);
  await told(admin.get(`/api/v1/targets/${path}`), 200);
  await told(admin.delete(`/api/v1/targets/${path}`), 204);

  const key = newOperatorKey();
  const operator = `/api/v1/operators/${name}`;
  await told(admin.post('/api/v1/operators', { name, roles: ['viewer'], public_key: key.publicKey }), 201);
  const entered = await told(verifyAs(service.address, `operator:${name}`, key.privateKey), 200);
  await told(service.as(entered.body.data.session_id).post('/auth/session/renew'), 200);
  await told(admin.put(operator, { roles: ['approver'] }), 200);
  await told(admin.post(`${operator}/rotate`, { public_key: newOperatorKey().publicKey }), 200);
  await told(admin.get('/api/v1/operators'), 200);
  await told(admin.delete(operator), 204);

  await told(admin.post('/api/v1/agents', { name }), 201);
  const policy = { principal: `agent:${name}`, resources: ['all/*'], actions: ['retrieve', 'list'] };
  await told(admin.post('/api/v1/policies', { ...policy, name }), 201);
  await told(admin.put(`/api/v1/policies/${name}`, { ...policy, max_ttl: 60 }), 200);
  await told(admin.get('/api/v1/policies'), 200);
  await told(admin.get('/api/v1/agents'), 200);
  const session = await told(verifyAs(service.address, name, readAgentKey(service.dataDir, name)), 200);
  const agent = service.as(session.body.data.session_id);
  await told(agent.get('/auth/session'), 200);
  await told(agent.get('/api/v1/credentials'), 200);
  await told(agent.get('/api/v1/credentials/elsewhere'), 403);

  const lend = async (): Promise<string> =>
    (await told(agent.get(`/api/v1/credentials/${path}`), 200)).body.data.lease_id;
  const [lease, another] = [await lend(), await lend()];
  await told(agent.post(`/api/v1/leases/${lease}/renew`), 200);
  await told(agent.get(`/api/v1/leases/${lease}`), 200);
  await told(admin.get(`/api/v1/leases?agent=${name}&status=active&limit=5`), 200);
  await told(agent.delete(`/api/v1/leases/${another}`), 204);
  const revoked = await told(admin.post('/api/v1/leases/revoke', { agent: name }), 200);
  assert.deepEqual(revoked.body.data, { revoked: 1 });

  const token = session.body.data.session_id;
  await demandApproval(service, name, [path]);
  const held = await askToRetrieve(service, token, path);
  await told(agent.delete(`/api/v1/approvals/${held.approval_id}`), 204);
  assert.equal((await held.response).status, 403);
  await told(admin.delete(`/api/v1/policies/asks-${name}`), 204);

  await told(admin.get(`/api/v1/exposure/${path}`), 200);
  await told(admin.get(`/api/v1/exposure?agent=${name}`), 200);
  await told(admin.post('/api/v1/panic', { agent: name }), 200);
  const again = await told(verifyAs(service.address, name, readAgentKey(service.dataDir, name)), 200);

  await told(admin.get('/api/v1/audit?limit=5&resource=all/*&since=2020-01-01'), 200);
  await told(admin.get('/api/v1/audit/export'), 200);
  assert.equal((await told(admin.get('/api/v1/audit/verify'), 200)).body.data.valid, true);

  await told(service.as(again.body.data.session_id).delete('/auth/session'), 204);
  await told(admin.delete(`/api/v1/policies/${name}`), 204);
  await told(admin.delete(`/api/v1/agents/${name}`), 204);
  await told(admin.delete(`/api/v1/credentials/${path}`), 204);
}

/** The work of a node without requests: its start, changes of other nodes, checkpoints, rotations and sweeping. */
export async function useBesides(store: PostgresStore, url: string): Promise<void> {
  const connection = await Connection.open(parseAddress(url), 'reading');
  await readSchema(connection).finally(() => connection.close());
  await store.run(readHead());
  await store.run(readRootKeyCheck());
  await store.run(readHeldRows('agent'));
  await store.run(readHeldRows('operator'));
  await store.run(readHeldRows('policy'));
  const turn = await store.begin([]);
  try {
    await turn.shared?.readControl(0);
  } finally {
    await turn.rollback();
  }
  await createVault(store, (creation) => assert.rejects(creation, /pkey \(23505\)/));
  await writeRarely(store);
  await sweepAll(store, Date.now(), 100);
  const writer = await Connection.open(parseAddress(url), 'writing');
  await writer.run(foldExposures(Date.now() + 8 * 24 * 3_600_000, 100)).finally(() => writer.close());
}

/** An existing vault is found only by a role that may create it. */
export async function createVault(
  store: PostgresStore,
  expect: (creation: Promise<void>) => Promise<void>,
): Promise<void> {
  const { keys, unsaved } = openKeys(null, { path: '', secret: new Uint8Array(32) });
  assert.ok(unsaved);
  await expect(store.initialise(keys.checkValue, initialHead(keys), Date.now(), unsaved));
}

/** Writes that calls of the interface cause late or seldom: subtrees, signed checkpoints, re-encrypted values. */
async function writeRarely(store: PostgresStore): Promise<void> {
  const [{ head }, { keyset }] = [await store.run(readHead()), await store.run(readStoredKeys())];
  const { found, commit } = await store.begin([{ keySlots: true }]);
  const [slot] = found.keySlots;
  assert.ok(head && keyset && slot);
  const [from, sealed] = [new Uint8Array(1), new Uint8Array(2)];
  const bound = { credentialId: 'none' as CredentialId, path: 'none' as CredentialPath, version: 1 };
  const { durable } = await commit({
    entries: [],
    head,
    // No log is so long.
    treeNodes: [{ level: 48, position: 0, hash: '' }],
    changes: [
      { kind: 'putKeySlot', slot },
      { kind: 'putKeyset', keyset },
      { kind: 'reencrypt', ...bound, from, sealed },
    ],
    accesses: new Map(),
  });
  await durable;
  await store.addCheckpoint({ generation: 0, size: head.seq, signedAt: 0, note: '' });
  const log = store.openStreamLog();
  try {
    await log.savePosition('test', (await log.readPosition('test')) ?? 0);
  } finally {
    log.close();
  }
}
