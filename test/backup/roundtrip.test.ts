// A backup of each store restores to each store: everything that the service tells is the same, and works on.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { verifyBackup } from '../../src/backup/file.ts';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { withScope } from '../kit/directory.ts';
import { fillVault, LARGE, tellAll } from '../migrate/full-vault.ts';
import { backUp, KINDS, newPlace, OPENER, restoreTo, startAt } from './fixture.ts';

/** What the log gained between two exports. */
function addedEvents(before: string, after: string): string[] {
  assert.equal(after.startsWith(before), true, 'the log is not the one that it was');
  const added = after.slice(before.length).trimEnd().split('\n');
  return [...new Set(added.map((line): string => JSON.parse(line).event_type))];
}

for (const from of KINDS) {
  test(`a vault on ${from} is the same after a restore to either store, and its agents work on`, async (t) => {
    const source = await newPlace(t, from);
    const service = await startAt(t, source);
    const filled = await fillVault(service);
    const { exported, ...told } = await tellAll(service);
    const file = await backUp(t, service);
    const { admin } = service;
    const [ended, started] = (await admin.get('/api/v1/audit?limit=2')).body.data;
    assert.deepEqual([started.event_type, started.result], ['service.backup', 'allowed']);
    assert.deepEqual([ended.event_type, ended.result, ended.id], ['service.backup_result', 'allowed', started.id]);
    assert.match(ended.reason, new RegExp(`^complete through entry ${started.seq}, \\d+ bytes$`));
    // Later than the snapshot: not part of the backup.
    await admin.post('/api/v1/credentials', { path: 'later/one', value: 'not in the backup' });
    const key = readAgentKey(source.dataDir, 'worker');
    const { verifier_key: verifierKey } = (await admin.get('/api/v1/audit/checkpoint')).body.data;

    for (const to of KINDS) {
      await withScope(async (scope) => {
        const place = await newPlace(scope, to, source.dataDir);
        const { out, told: asked } = await restoreTo(scope, file, place);
        assert.match(out, /The chain is valid: \d+ entries, the last one about this restore\.\n/);
        assert.match(out, /\n1\d values of a sample of credentials were unsealed\.\n/);
        assert.ok(asked.includes(`  ${verifierKey}`), asked.join('\n'));
        const restored = await startAt(scope, place);
        assert.deepEqual(restored.warnings, []);
        const { exported: longer, ...same } = await tellAll(restored);
        assert.deepEqual(same, told);
        const added = addedEvents(exported, longer);
        assert.deepEqual(added, ['credential.list', 'service.backup', 'service.restore', 'service.start']);
        const [restoreEntry] = (await restored.admin.get('/api/v1/audit?event_type=service.restore')).body.data;
        assert.match(restoreEntry.reason, new RegExp(`^from a backup of .+Z, through entry ${started.seq}$`));
        assert.equal((await restored.admin.get('/api/v1/audit/verify')).body.data.valid, true);
        assert.equal((await restored.admin.get('/api/v1/credentials/later/one')).status, 404);
        const agent = restored.as(filled.session);
        assert.equal((await agent.get('/api/v1/credentials/prod/grows')).body.data.value, LARGE.slice(1));
        assert.equal((await agent.get('/api/v1/credentials/prod/db/password?version=1')).body.data.value, 'value 1');
        assert.equal((await agent.post(`/api/v1/leases/${filled.leaseId}/renew`)).status, 200);
        assert.equal((await filled.repeat(restored)).text, filled.repeated);
        assert.equal((await restored.anonymous.post('/auth/verify', filled.answered)).body.error.code, 'AUTH_FAILED');
        // The key that the service made was restored.
        assert.deepEqual(
          readAgentKey(place.dataDir, 'worker').export({ format: 'jwk' }),
          key.export({ format: 'jwk' }),
        );
        const token = await logIn(restored.address, 'worker', readAgentKey(place.dataDir, 'worker'));
        assert.equal((await createClient(restored.address, token).get('/auth/session')).status, 200);
        await restored.stop();
      });
    }
    const { header, totals } = await verifyBackup(file, OPENER);
    assert.deepEqual([header.store, header.log_end?.seq, totals.agent_keys], [from, started.seq, 2]);
  });
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
  // Version 1 of a sealed value.
  assert.equal(Buffer.from(key.sealed, 'base64')[0], 1);
});
