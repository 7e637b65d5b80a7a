// A vault moves from one store to the other by a backup and a restore: everything that the server returns is the same.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { verifyBackup } from '../../src/backup/file.ts';
import { parseVerifierKey } from '../../src/crypto/checkpoint.ts';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { openReceipt } from '../kit/receipts.ts';
import type { TestService } from '../kit/service.ts';
import { newGrantedDatabase } from '../postgres/owner-roles.ts';
import { backUp, newPlace, OPENER, restoreTo, startAt, urlFile } from './fixture.ts';
import { type Filled, fillVault, LARGE, tellAll } from './full-vault.ts';

/** What the log gained between two exports. */
function addedEvents(before: string, after: string): string[] {
  assert.equal(after.startsWith(before), true, 'the log is not the one that it was');
  const added = after.slice(before.length).trimEnd().split('\n');
  return [...new Set(added.map((line): string => JSON.parse(line).event_type))];
}

/** What a restored vault has to do: serve sessions, leases and repeats as before, and make receipts that verify. */
async function assertWorks(service: TestService, dataDir: string, filled: Filled, before: Proof): Promise<void> {
  const { admin } = service;
  const agent = service.as(filled.session);
  assert.equal((await agent.get('/api/v1/credentials/prod/grows')).body.data.value, LARGE.slice(1));
  assert.equal((await agent.get('/api/v1/credentials/prod/db/password?version=1')).body.data.value, 'value 1');
  assert.equal((await agent.post(`/api/v1/leases/${filled.leaseId}/renew`)).status, 200);
  assert.equal((await service.as(filled.operatorSession).get('/auth/session')).status, 200);
  assert.equal((await filled.repeat(service)).text, filled.repeated);
  assert.equal((await service.anonymous.post('/auth/verify', filled.answered)).body.error.code, 'AUTH_FAILED');
  const token = await logIn(service.address, 'worker', readAgentKey(dataDir, 'worker'));
  assert.equal((await createClient(service.address, token).get('/auth/session')).status, 200);
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
  const { state } = (await admin.get('/api/v1/audit/verify?state=true')).body.data;
  assert.equal(state.problem_count, 0);
  // The receipt from before is about an entry that the moved log still has, at the same place.
  const { receipt, verifier_key: key } = await proofOf(service, before.seq);
  const [old, now] = [open(before.receipt, before.verifierKey), open(receipt, key)];
  assert.deepEqual([now?.seq, now?.hmac], [old?.seq, old?.hmac]);
  assert.ok(old !== null && now !== null && now.size > old.size);
}

interface Proof {
  readonly seq: number;
  readonly receipt: string;
  readonly verifierKey: string;
}

const proofOf = async ({ admin }: TestService, seq: number) =>
  (await admin.get(`/api/v1/audit/entries/${seq}/proof`)).body.data;

function open(receipt: string, key: string) {
  const verifier = parseVerifierKey(key);
  return verifier === null ? null : openReceipt(receipt, verifier);
}

test('a vault moves from SQLite to PostgreSQL and back: everything is the same, and works on', async (t) => {
  let place = await newPlace(t, 'sqlite');
  const { dataDir: rootKeyOf } = place;
  let service = await startAt(t, place);
  const filled = await fillVault(service);
  const proof = await proofOf(service, 9);
  const before: Proof = { seq: 9, receipt: proof.receipt, verifierKey: proof.verifier_key };
  const key = readAgentKey(place.dataDir, 'worker').export({ format: 'jwk' });
  for (const to of ['postgres', 'sqlite'] as const) {
    const { exported, ...told } = await tellAll(service);
    const file = await backUp(t, service);
    const [ended, started] = (await service.admin.get('/api/v1/audit?limit=2')).body.data;
    assert.deepEqual([started.event_type, started.result], ['service.backup', 'allowed']);
    assert.deepEqual([ended.event_type, ended.result, ended.id], ['service.backup_result', 'allowed', started.id]);
    assert.match(ended.reason, new RegExp(`^complete through entry ${started.seq}, \\d+ bytes$`));
    const { header, totals } = await verifyBackup(file, OPENER);
    const from = to === 'sqlite' ? 'postgres' : 'sqlite';
    assert.deepEqual([header.store, header.log_end?.seq, totals.agent_keys], [from, started.seq, 2]);
    // Later than the snapshot: not part of the backup.
    await service.admin.post('/api/v1/credentials', { path: 'later/one', value: 'not in the backup' });
    const { verifier_key: verifierKey, origin } = (await service.admin.get('/api/v1/audit/checkpoint')).body.data;
    await service.stop();
    place =
      to === 'sqlite'
        ? await newPlace(t, to, rootKeyOf)
        : // As docs/cluster.md describes it: the role of the nodes owns nothing.
          { ...(await newPlace(t, 'sqlite', rootKeyOf)), flags: ['--database-file', await grantedDatabase(t)] };
    const { out, told: asked } = await restoreTo(t, file, place);
    assert.match(out, /The chain is valid: \d+ entries, the last one about this restore\.\n/);
    assert.match(out, /\n1\d values of a sample of credentials were decrypted\.\n/);
    assert.ok(asked.includes(`  ${verifierKey}`), asked.join('\n'));
    service = await startAt(t, place);
    assert.deepEqual(service.warnings, []);
    const signed = (await service.admin.get('/api/v1/audit/checkpoint')).body.data;
    assert.equal(signed.origin, to === 'postgres' ? `${origin}/2` : origin.replace(/2$/, '3'), 'another signing key');
    const { exported: longer, ...same } = await tellAll(service);
    assert.deepEqual(same, told);
    const added = addedEvents(exported, longer);
    assert.deepEqual(added, ['credential.list', 'service.backup', 'service.restore', 'service.start']);
    const [restoreEntry] = (await service.admin.get('/api/v1/audit?event_type=service.restore')).body.data;
    assert.match(restoreEntry.reason, new RegExp(`^from a backup of .+Z, through entry ${started.seq}$`));
    assert.equal((await service.admin.get('/api/v1/credentials/later/one')).status, 404);
    assert.deepEqual(readAgentKey(place.dataDir, 'worker').export({ format: 'jwk' }), key);
    await assertWorks(service, place.dataDir, filled, before);
  }
});

async function grantedDatabase(t: TestContext): Promise<string> {
  return urlFile(t, (await newGrantedDatabase(t)).service);
}

test('the stream of the service has no value and no private key in it', async (t) => {
  const place = await newPlace(t, 'sqlite');
  const service = await startAt(t, place);
  await service.agent('worker', { '*': ['retrieve'] });
  await service.admin.post('/api/v1/credentials', { path: 'a/b', value: 'a value that must not be here' });
  const { text, headers } = await service.admin.post('/api/v1/backup');
  assert.equal(headers.get('content-type'), 'application/x-ndjson');
  const pem = readFileSync(`${place.dataDir}/agents/worker/private_key.pem`, 'utf8').split('\n')[1] ?? '';
  const rootKey = readFileSync(`${place.dataDir}/root.key`, 'utf8').trim();
  for (const secret of ['a value that must not be here', pem, 'PRIVATE KEY', rootKey]) {
    assert.equal(text.includes(secret), false);
  }
  const lines: Record<string, { sealed: string }[]>[] = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const [key] = lines.find((line) => line['agent_keys'] !== undefined)?.['agent_keys'] ?? [];
  assert.ok(key);
  assert.equal(Buffer.from(key.sealed, 'base64').includes('PRIVATE KEY'), false);
  // The value is encrypted in format version 1.
  assert.equal(Buffer.from(key.sealed, 'base64')[0], 1);
});
