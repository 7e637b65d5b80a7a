// An older state is a roll-back: a directory that has seen a later one refuses it. Damage is restored only if accepted.

import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDirectDb } from '../kit/direct-db.ts';
import { assertRolledBack } from '../kit/rolled-back.ts';
import { backUp, newPlace, restoreTo, restoreWith, startAt, wordsFor } from './fixture.ts';

test('a directory that has seen a later entry refuses the restored vault until the operator accepts it', async (t) => {
  const place = await newPlace(t, 'sqlite');
  const service = await startAt(t, place);
  await service.admin.post('/api/v1/credentials', { path: 'a', value: 'first' });
  const file = await backUp(t, service);
  for (let n = 0; n < 5; n++) await service.admin.post('/api/v1/credentials', { path: 'a', value: `later ${n}` });
  await service.stop();
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(place.dataDir, `leasehold.db${suffix}`), { force: true });
  const { out } = await restoreTo(t, file, place);
  assert.match(out, /WARNING {2}The database has lost entries of the log: this node has seen entry \d+/);
  assert.match(out, /--accept-rollback\n$/);
  const refused = await startAt(t, place);
  await assertRolledBack(refused, /has lost entries of the log/);
  await refused.stop();
  const accepted = await startAt(t, place, ['--accept-rollback']);
  const [start, restore] = (await accepted.admin.get('/api/v1/audit?limit=2')).body.data;
  assert.deepEqual([start.event_type, restore.event_type], ['service.start', 'service.restore']);
  assert.match(start.reason, /has lost entries of the log/);
  assert.equal((await accepted.admin.get('/api/v1/credentials/a')).body.data.value, 'first');
});

const TAMPERED = {
  'the audit chain is broken at entry 2': `UPDATE audit_entries SET reason = 'none' WHERE seq = 2`,
  'the MACs of 1 rows do not match': `UPDATE policies SET max_ttl = 99999`,
  '1 of the sampled values do not decrypt': `UPDATE credentials SET newest_sealed = zeroblob(60) WHERE path = 'a'`,
};

for (const [finding, statement] of Object.entries(TAMPERED)) {
  test(`a restore refuses what was altered before the backup, and names it: ${finding}`, async (t) => {
    const source = await newPlace(t, 'sqlite');
    const service = await startAt(t, source);
    await service.agent('worker', { '*': ['retrieve'] });
    await service.admin.post('/api/v1/credentials', { path: 'a', value: 'first' });
    const outside = await openDirectDb(source.dataDir);
    await outside.run(statement.replace('max_ttl ', 'max_ttl_seconds '));
    await outside.close();
    const file = await backUp(t, service);
    const place = await newPlace(t, 'sqlite', source.dataDir);
    const refused = await restoreWith(wordsFor(t, file, place));
    assert.match(refused.told.at(-1) ?? '', new RegExp(`^The backup does not verify: ${finding}`));
    assert.deepEqual([refused.code, refused.out], [1, '']);
    const { code, out } = await restoreWith([...wordsFor(t, file, place), '--accept-damage']);
    assert.equal(code, 0);
    assert.match(out, new RegExp(`WARNING {2}Accepted: ${finding}`));
    if (statement !== TAMPERED['the audit chain is broken at entry 2']) return;
    const restored = await startAt(t, place);
    const [entry] = (await restored.admin.get('/api/v1/audit?event_type=service.restore')).body.data;
    assert.match(entry.reason, new RegExp(finding));
  });
}
