// A PostgreSQL server without space: it reports disk_full at a statement or at the commit. Requests get 503 without
// effect, acknowledged changes stay, and the node accepts changes again when the server has space.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startNodes } from '../kit/cluster.ts';
import { querySql } from '../kit/postmaster.ts';

/** Deferred, the trigger runs within the commit. */
const FULL = `
  CREATE FUNCTION public.no_room() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;`;
const AT: Readonly<Record<string, string>> = {
  statement: 'CREATE TRIGGER full_disk BEFORE INSERT ON leasehold.audit_entries EXECUTE FUNCTION public.no_room()',
  commit: `CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON leasehold.audit_entries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.no_room()`,
};

for (const [point, trigger] of Object.entries(AT)) {
  test(`without room at a ${point} requests are 503 without effect, and the node recovers`, async (t) => {
    const { url, nodes } = await startNodes(t, { nodes: 1 });
    const admin = nodes[0]?.admin ?? assert.fail();
    const store = (value: string) => admin.post('/api/v1/credentials', { path: 'a/b', value });
    assert.equal((await store('before')).status, 201);
    await querySql(url, FULL + trigger);
    for (const answer of [await store('lost'), await admin.get('/api/v1/credentials/a/b')]) {
      assert.equal(answer.status, 503, answer.text);
      assert.doesNotMatch(answer.text, /before|lost|extend file/);
    }
    await querySql(url, 'DROP TRIGGER full_disk ON leasehold.audit_entries');
    assert.equal((await admin.get('/api/v1/credentials/a/b')).body.data.value, 'before');
    assert.equal((await store('after')).status, 201);
    const { body } = await admin.get('/api/v1/credentials/a/b?view=metadata');
    assert.equal(body.data.versions.length, 2, 'a rejected change had an effect');
    assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
  });
}
