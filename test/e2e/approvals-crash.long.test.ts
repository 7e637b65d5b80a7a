// Kills the service while requests wait for people. After the restart each is as it was: neither approved nor lost, and
// an answer that was acknowledged is in force. SOURCE: SECURITY.md, P17.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, createClient, logIn, readAgentKey, type TestResponse } from '../kit/client.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { addOperator } from '../kit/operators.ts';
import { startProcess } from '../kit/process.ts';

const KILLS = 3;
const WAITING = 12;
const MAX_DELAY_MS = 25;
const APPROVALS = '/api/v1/approvals';
const seed = newSeed();

type Json = TestResponse['body'];

test(`${KILLS} kills while requests wait lose no request and no acknowledged answer, and approve nothing (SEED=${seed})`, async (t) => {
  const dice = new Dice(seed);
  const dataDir = join(temporaryDirectory(t), 'data');
  let service = await startProcess(t, dataDir);
  let admin = createClient(service.address, service.adminToken);
  assert.equal((await admin.post('/api/v1/agents', { name: 'bot' })).status, 201);
  await demandApproval({ admin }, 'bot', ['asked/*'], { timeout: 3600 });
  const approver = await addOperator({ address: service.address, admin }, 'ann', ['approver']);
  const token = await logIn(service.address, 'bot', readAgentKey(dataDir, 'bot'));
  let unacknowledged = 0;

  for (let round = 0; round < KILLS; round++) {
    const ann = createClient(service.address, approver.token);
    const paths = Array.from({ length: WAITING }, (_, n) => `asked/${round}-${n}`);
    for (const path of paths) await admin.post('/api/v1/credentials', { path, value: path });
    const held = await Promise.all(
      paths.map((path) => askToRetrieve({ address: service.address, admin }, token, path)),
    );
    const responses = held.map(({ response }) => response.then(({ status }) => status).catch(() => null));
    // A third is answered with acknowledgement, a third around the kill, and the rest not at all.
    const approve = (n: number, client: Client) => {
      const { approval_id, nonce } = held[n] ?? assert.fail();
      return client.post(`${APPROVALS}/${approval_id}/approve`, { nonce });
    };
    // Their agents have disconnected, and have not used the grant.
    for (const n of [0, 3, 6, 9]) {
      await held[n]?.abandon();
      assert.equal((await approve(n, ann)).status, 200);
    }
    const racing = [1, 4, 7, 10].map(async (n) => {
      await held[n]?.abandon();
      return approve(n, ann).then(
        ({ status }) => status === 200,
        () => false,
      );
    });
    await sleep(dice.below(MAX_DELAY_MS));
    await service.end('SIGKILL');
    const acknowledged = await Promise.all(racing);
    assert.ok((await Promise.all(responses)).every((status) => status !== 200));

    service = await startProcess(t, dataDir);
    admin = createClient(service.address, service.adminToken);
    const again = { admin, address: service.address };
    const bot = createClient(service.address, token);
    const listed: readonly Json[] = (await admin.get(APPROVALS)).body.data;
    const entries: readonly Json[] = (await admin.get('/api/v1/audit?event_type=approval.approve&limit=1000')).body
      .data;
    for (const [n, path] of paths.entries()) {
      const found = listed.filter((approval) => approval.path === path);
      assert.equal(found.length, 1, path);
      const [{ approval_id, nonce, status }] = found;
      assert.equal(approval_id, held[n]?.approval_id);
      const isRecorded = entries.some(({ resource }) => resource === `approval:${approval_id}`);
      assert.equal(status, isRecorded ? 'approved' : 'pending', path);
      if (n % 3 === 0) assert.equal(status, 'approved', path);
      if (n % 3 === 1 && acknowledged[(n - 1) / 3]) assert.equal(status, 'approved', path);
      if (n % 3 === 1 && !acknowledged[(n - 1) / 3]) unacknowledged += 1;
      if (n % 3 === 2) assert.equal(status, 'pending', path);
      if (status === 'approved') {
        assert.equal((await bot.get(`/api/v1/credentials/${path}`)).body.data?.value, path);
      } else {
        const retried = await askToRetrieve(again, token, path);
        assert.equal(retried.approval_id, approval_id, 'the same request waits for the same approval');
        const answered = await createClient(service.address, approver.token).post(
          `${APPROVALS}/${approval_id}/approve`,
          { nonce },
        );
        assert.equal(answered.status, 200, answered.text);
        assert.equal((await retried.response).body.data?.value, path);
      }
      const { uses_left } = (await admin.get(`${APPROVALS}/${approval_id}`)).body.data;
      assert.equal(uses_left, 0, 'it passed once');
    }
    const { valid, state } = (await admin.get('/api/v1/audit/verify?state=true')).body.data;
    assert.deepEqual([valid, state.problems], [true, []]);
  }
  t.diagnostic(`${unacknowledged} of ${4 * KILLS} answers around a kill were not acknowledged`);
  await service.end('SIGTERM');
});
