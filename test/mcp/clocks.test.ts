// The service's clock decides when a lease ends, even if the clock of the MCP server's machine is wrong.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, startStage, VALUE } from './fixture.ts';
import { startServerProcess } from './process.ts';

const PATH = 'prod/db/password';
const HOUR_MS = 3_600_000;

/** A module that Node loads first: the wall clock is off, and the monotonic one is not. */
const clockOffBy = (milliseconds: number): string[] => [
  '--import',
  `data:text/javascript,const now=Date.now.bind(Date);Date.now=()=>now()+(${milliseconds})`,
];

for (const hours of [48, -48]) {
  test(`with a clock that is off by ${hours} hours every lease is revoked when the server stops`, async (t) => {
    const lines = 'touch begun; sleep 300';
    const work = { lines, credentials: { A: PATH } };
    const { use, close, statuses, filesDir, made } = await startServerProcess(
      t,
      { [PATH]: VALUE },
      { work },
      clockOffBy(hours * HOUR_MS),
    );
    for (const name of ['a', 'b', 'c']) await use('write_credential_to_file', { path: PATH, name });
    const running = use('run_with_credential', { command: 'work' }).catch(() => undefined);
    await made('begun');
    await sleep(1200);
    // None has been taken away meanwhile.
    assert.deepEqual([readdirSync(filesDir).length, await statuses()], [3, Array(4).fill('active')]);
    await close();
    await running;
    assert.deepEqual([readdirSync(filesDir).length, await statuses()], [0, Array(4).fill('revoked')]);
  });
}

test('at most 500 leases are held: only those that the service reports as ended are dropped', async (t) => {
  // A busy machine needs longer than the few seconds in which the server queries and revokes leases.
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  t.mock.method(AbortSignal, 'timeout', (milliseconds: number) => timeout(30 * milliseconds));
  const { mcp, service, agent } = await startStage(t, { allowsValues: true });
  const { use, refusal } = await connect(t, mcp, 'http');
  const retrieve = (ttl_seconds: number) => use('retrieve_credential', { path: PATH, ttl_seconds });
  const several = (count: number, ttlSeconds: number) =>
    Promise.all(Array.from({ length: count }, () => retrieve(ttlSeconds)));
  for (let n = 0; n < 49; n++) await several(10, 600);
  // The last of all end first.
  const last = await several(10, 150);
  assert.match(await refusal('retrieve_credential', { path: PATH }), /^BUSY: this server holds 500 leases already/);
  const [first, second] = last.map(({ lease_id }) => String(lease_id)) as [string, string];
  await agent.leases.revoke(first);
  await service.admin.delete(`/api/v1/leases/${second}`);
  await several(2, 600);
  assert.match(await refusal('retrieve_credential', { path: PATH }), /^BUSY: /);
  assert.equal(await mcp.close(), 0);
  const { meta } = await agent.leases.list({ status: 'active' });
  assert.equal(meta.total, 0);
});
