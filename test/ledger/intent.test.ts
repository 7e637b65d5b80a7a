// An intent and its result through the ledger: both entries have one id, and the chain is valid.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readHead } from '../../src/store/audit-log.ts';
import { intent, result } from '../core/intents.ts';
import { runVerifier, toExport } from '../crypto/python-verifier.ts';
import { openVault, put, readLog, verify } from '../vault/fixture.ts';

test('the result of an intent is recorded later under the same id, after other entries and a restart', async (t) => {
  const vault = await openVault(t);
  const id = await vault.ledger.submit(intent('begin'));
  await put(vault, 'other');
  const again = await openVault(t, { directory: vault.directory });
  await again.ledger.submit(result('end', id, 'allowed'));
  const entries = await readLog(again.real);
  const own = entries.filter((entry) => entry.id === id);
  assert.deepEqual(
    own.map((entry) => [entry.request_id, entry.seq]),
    [
      ['begin', 1],
      ['end', 3],
    ],
  );
  assert.equal((await verify(again)).isValid, true);
  const { head } = await again.real.run(readHead());
  assert.ok(head);
  const auditKey = again.keys.audit.export().toString('base64');
  const verdict = await runVerifier(t, { text: toExport(entries), head, auditKey });
  assert.equal(verdict.status, 0, verdict.errors);
});
