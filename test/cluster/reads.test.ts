// Reads take no lock of the cluster: a console is served while a node holds it, and slows no batch of any node.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Connection } from '../../src/store/postgres/connection.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { startNodes } from '../kit/cluster.ts';
import { newDatabase } from '../kit/database.ts';
import { addOperator } from '../kit/operators.ts';

const LISTS = ['operators', 'policies', 'agents', 'leases', 'audit'];

const url = await newDatabase({ after });
const { nodes } = await startNodes({ after }, { nodes: 2, url });
const [one, two] = nodes;
assert.ok(one && two);
const viewer = await addOperator(one, 'viewer', ['viewer']);
assert.equal((await one.admin.post('/api/v1/agents', { name: 'ci' })).status, 201);
const token = await logIn(one.address, 'ci', readAgentKey(one.dataDir, 'ci'));

/** Runs the work while another connection holds the lock. */
async function underLock<T>(work: () => Promise<T>): Promise<T> {
  const holder = await Connection.open(parseAddress(url), 'writing');
  try {
    await holder.script(
      'SET idle_in_transaction_session_timeout = 0; BEGIN; SELECT 1 FROM audit_head WHERE id = 1 FOR UPDATE',
    );
    return await work();
  } finally {
    holder.close();
  }
}

for (const list of LISTS) {
  test(`${list} are served on every node while the lock is held`, async () => {
    for (const { address } of nodes) {
      const client = createClient(address, viewer.token);
      // The node has applied the changes of the other one.
      assert.equal((await client.get(`/api/v1/${list}`)).status, 200);
      const { status } = await underLock(() => client.get(`/api/v1/${list}`));
      assert.equal(status, 200);
    }
  });
}

test('a rejected read waits for the lock, because it is recorded', async () => {
  let isRejected = false;
  const rejected = await underLock(async () => {
    const asked = createClient(two.address, token)
      .get('/api/v1/agents')
      .then(({ status }) => {
        isRejected = true;
        return status;
      });
    assert.equal((await createClient(two.address, viewer.token).get('/api/v1/agents')).status, 200);
    assert.equal(isRejected, false);
    return [asked];
  });
  assert.deepEqual(await Promise.all(rejected), [403]);
});
