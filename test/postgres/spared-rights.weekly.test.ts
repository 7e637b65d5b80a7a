// Each privilege of the service's role is used by a node.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { newOperatorKey } from '../kit/operators.ts';
import { querySql } from '../kit/postmaster.ts';
import { startTestService } from '../kit/service.ts';
import { createVault, useBesides, useEverything } from './full-vault.ts';
import { GRANTS, newGrantedDatabase, quote } from './owner-roles.ts';

test('no privilege of the role can be removed', async (t) => {
  const { owner, service, serviceRole } = await newGrantedDatabase(t);
  const node = await startTestService(t, ['--database', service]);
  // A try that fails half-way leaves an operator behind, and where operators exist one of them has to approve.
  const { publicKey } = newOperatorKey();
  await node.admin.post('/api/v1/operators', { name: 'approver', roles: ['approver'], public_key: publicKey });
  const store = await PostgresStore.open(parseAddress(service));
  const spared: string[] = [];
  for (const { table, right } of GRANTS) {
    await querySql(owner, `REVOKE ${right} ON leasehold.${table} FROM ${quote(serviceRole)}`);
    try {
      await useBesides(store, service);
      await useEverything(node);
      await createWithout(t, table, right);
      spared.push(`${right} on ${table}`);
    } catch {
      // Missed by one of them, as it should be.
    }
    await querySql(owner, `GRANT ${right} ON leasehold.${table} TO ${quote(serviceRole)}`);
    // Nothing but the right was missing.
    await useEverything(node);
  }
  assert.deepEqual(spared, []);
  await store.close();
  await node.stop();
});

/** A new vault, in a database of which the service's role lacks the privilege from its first connection on. */
async function createWithout(t: TestContext, table: string, right: string): Promise<void> {
  const { owner, service, serviceRole } = await newGrantedDatabase(t);
  const store = await PostgresStore.open(parseAddress(service));
  try {
    await querySql(owner, `REVOKE ${right} ON leasehold.${table} FROM ${quote(serviceRole)}`);
    await createVault(store, (creation) => creation);
  } finally {
    await store.close();
  }
}
