// The service is unreachable when the MCP server starts: the server starts, and its tools report it until the service
// responds.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileSigner, Leasehold } from '../../src/client/leasehold.ts';
import { openMcp } from '../../src/mcp/server.ts';
import { standBetween } from '../client/fault-proxy.ts';
import { findPort } from '../kit/port.ts';
import { startTestService } from '../kit/service.ts';
import { connect, EVERYTHING, LEAST } from './fixture.ts';
import { prepare, start, until } from './process.ts';

/** The first two requests get no response. */
async function startAway(t: TestContext, as: 'agent' | 'administrator') {
  const service = await startTestService(t);
  await service.agent('builder', EVERYTHING);
  const between = await standBetween(t, service);
  for (const _ of [1, 2]) between.next('cut before');
  const sign = fileSigner(join(service.dataDir, 'agents/builder/private_key.pem'));
  const who = as === 'agent' ? { agent: { name: 'builder', sign } } : { token: service.adminToken };
  const client = new Leasehold({ address: between.address, retries: 0, ...who });
  const logged: string[] = [];
  const log = (line: string): void => void logged.push(line);
  const mcp = await openMcp({ ...LEAST, client, allowsValues: true, log });
  t.after(() => mcp.close());
  return { service, mcp, logged, ...(await connect(t, mcp, 'http')) };
}

test('tools return UNAVAILABLE until the service responds, and then work as the agent', async (t) => {
  const { service, mcp, logged, use, refusal } = await startAway(t, 'agent');
  await service.admin.post('/api/v1/credentials', { path: 'prod/a', value: 'v' });
  assert.equal(mcp.agent, null);
  assert.match(logged.join('\n'), /the service does not respond/);
  assert.match(await refusal('list_credentials'), /^UNAVAILABLE: no response from http/);
  const { for_the_operator } = await use('explain_access', { path: 'dev/x' });
  assert.match(String(for_the_operator), /^The agent builder asks for the action retrieve on dev\/x\./);
  assert.equal((await use('retrieve_credential', { path: 'prod/a' }))['value'], 'v');
});

test('an administrator’s token that is detected late is rejected', async (t) => {
  const { service, refusal } = await startAway(t, 'administrator');
  await service.admin.post('/api/v1/credentials', { path: 'prod/a', value: 'v' });
  assert.match(await refusal('retrieve_credential', { path: 'prod/a' }), /^UNAVAILABLE: /);
  for (const tool of ['retrieve_credential', 'describe_lease']) {
    const input = tool === 'describe_lease' ? { lease_id: crypto.randomUUID() } : { path: 'prod/a' };
    assert.match(await refusal(tool, input), /^NOT_ALLOWED: the server must act as an agent/);
  }
  assert.equal((await service.admin.get('/api/v1/leases')).body.data.length, 0);
});

test('the command starts without the service', async (t) => {
  const { words, home } = await prepare(t, {}, {});
  const nowhere = `http://127.0.0.1:${await findPort()}`;
  const { stderr } = start(t, words.with(words.indexOf('--address') + 1, nowhere), home);
  await until(() => stderr().includes('tools: '));
  assert.match(stderr(), /^leasehold mcp: the service does not respond; tools return UNAVAILABLE until it does\n/);
});
