// `leasehold exposure` and `leasehold panic`.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const home = newHome({ after }, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
for (const path of ['a/1', 'a/2']) await home.leasehold(['put', path, '-'], { input: 's3cret' });
const agent = await service.agent('bot', { 'a/*': ['retrieve'] });
for (const path of ['a/1', 'a/2', 'a/1']) assert.equal((await agent.get(`/api/v1/credentials/${path}`)).status, 200);

test('exposure prints a row for each agent and version, by path or by agent', async () => {
  const byPath = await home.leasehold(['exposure', 'a/1', '-o', 'json']);
  assert.equal(byPath.code, 0, byPath.stderr);
  const [row] = JSON.parse(byPath.stdout);
  const { path, version, agent_name, exposure, times, live, deleted } = row;
  assert.deepEqual(
    [path, version, agent_name, exposure, times, live, deleted],
    ['a/1', 1, 'bot', 'seen', 2, true, false],
  );
  const byAgent = await home.leasehold(['exposure', '--agent-name', 'bot', '--field', 'path']);
  assert.equal(byAgent.stdout, 'a/1\na/2\n');
  assert.match((await home.leasehold(['exposure', '--agent-name', 'nobody'])).stderr, /Nothing was seen or used/);
  for (const both of [['exposure'], ['exposure', 'a/1', '--agent-name', 'bot']]) {
    const { code, stderr } = await home.leasehold(both);
    assert.equal(code, 1);
    assert.match(stderr, /give either PATH or --agent-name/);
  }
});

test('panic needs confirmation, changes nothing with --dry-run, and prints what to rotate', async () => {
  const unconfirmed = await home.leasehold(['panic', '--agent-name', 'bot']);
  assert.equal(unconfirmed.code, 1);
  assert.match(unconfirmed.stderr, /--yes/);
  const dry = await home.leasehold(['panic', '--agent-name', 'bot', '--dry-run']);
  assert.match(
    dry.stderr,
    /^3 active leases and every session and brokered request of bot will end\. Nothing was done\./,
  );
  assert.equal((await agent.get('/api/v1/credentials/a/1')).status, 200);
  await home.leasehold(['put', 'a/2', '-'], { input: 'a new s3cret' });
  const ended = await home.leasehold(['panic', '--agent-name', 'bot', '--yes', '-o', 'json']);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stderr, /^Revoked 4 leases, ended 1 session, aborted 0 requests\.\n$/);
  assert.deepEqual(JSON.parse(ended.stdout), [
    { path: 'a/1', version: 1, current: true, advice: 'rotate' },
    { path: 'a/2', version: 1, current: false, advice: 'replaced' },
  ]);
  assert.equal((await agent.get('/api/v1/credentials/a/1')).status, 401);
});
