// Commands on operators, and commands as an operator.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

async function scene(t: TestContext) {
  const service = await startTestService(t);
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  return { service, home, keyOf: (name: string) => join(home.path, `.config/leasehold/operators/${name}.pem`) };
}

test('operator add keeps the private key on this machine, and --operator logs in with it', async (t) => {
  const { service, home, keyOf } = await scene(t);
  const added = await home.leasehold(['operator', 'add', 'alice', '--role', 'admin', '-o', 'json']);
  assert.equal(added.code, 0, added.stderr);
  assert.deepEqual(JSON.parse(added.stdout).roles, ['admin']);
  assert.match(added.stderr, /alice\.pem\. Use it with: leasehold --operator alice\n$/);
  assert.equal(statSync(keyOf('alice')).mode & 0o777, 0o600);
  const who = await home.leasehold(['whoami', '--operator', 'alice', '--field', 'name']);
  assert.deepEqual([who.code, who.stdout], [0, 'operator:alice\n']);
  assert.equal((await home.leasehold(['put', 'a/b', '-', '--operator', 'alice'], { input: 'v' })).code, 0);
  const [entry] = (await service.admin.get('/api/v1/audit?event_type=credential.store')).body.data;
  assert.equal(entry.agent_name, 'operator:alice');
});

test('an editor learns which policy it needs, a viewer which role', async (t) => {
  const { home } = await scene(t);
  const added = await home.leasehold(['operator', 'add', 'bob', '--role', 'editor', '--role', 'approver']);
  assert.match(added.stderr, /leasehold policy put bob-edits --principal operator:bob /);
  const denied = await home.leasehold(['put', 'a/b', '-', '--operator', 'bob'], { input: 'v' });
  assert.equal(denied.code, 2);
  const command = /leasehold (policy explain operator:bob store a\/b)\n/.exec(denied.stderr)?.[1]?.split(' ') ?? [];
  const explained = await home.leasehold([...command, '-o', 'json']);
  const { allowed, grant } = JSON.parse(explained.stdout);
  assert.equal(allowed, false);
  assert.equal((await home.leasehold(grant.split(' ').slice(1))).code, 0);
  assert.equal((await home.leasehold(['put', 'a/b', '-', '--operator', 'bob'], { input: 'v' })).code, 0);
  await home.leasehold(['operator', 'set', 'bob', '--role', 'viewer']);
  const viewer = await home.leasehold(['put', 'a/b', '-', '--operator', 'bob'], { input: 'v' });
  assert.match(viewer.stderr, /^leasehold: Only an operator with the role editor may do this /);
});

test('no file and no --agent selects an operator, and no model acts as one', async (t) => {
  const { service, home } = await scene(t);
  await home.leasehold(['operator', 'add', 'alice', '--role', 'admin']);
  const agent = await home.leasehold(['whoami', '--agent', 'operator:alice']);
  assert.match(agent.stderr, /^leasehold: --agent: must be 1 to 63 characters/);
  const other = newHome(t, { LEASEHOLD_ADDR: service.address });
  writeFileSync(join(other.path, 'leasehold.toml'), 'agent = "operator:alice"\n');
  const fromFile = await other.leasehold(['whoami']);
  assert.equal(fromFile.code, 1, fromFile.stdout);
  assert.match(fromFile.stderr, /must be 1 to 63 characters/);
  const model = await home.leasehold(['mcp', '--operator', 'alice'], { input: '' });
  assert.match(model.stderr, /^leasehold: a model must not act as an operator/);
});

test('operator list, show, rotate and delete', async (t) => {
  const { home, keyOf } = await scene(t);
  const missing = await home.leasehold(['operator', 'add', 'carol']);
  assert.match(missing.stderr, /^leasehold: --role is missing\.\n {2}The roles are viewer, approver, editor, admin\./);
  assert.equal(existsSync(keyOf('carol')), false);
  await home.leasehold(['operator', 'add', 'carol', '--role', 'viewer', '--description', 'on call']);
  const before = readFileSync(keyOf('carol'), 'utf8');
  assert.match((await home.leasehold(['operator', 'list'])).stdout, /carol +viewer +on call/);
  assert.equal((await home.leasehold(['operator', 'rotate', 'carol'])).code, 0);
  assert.notEqual(readFileSync(keyOf('carol'), 'utf8'), before);
  assert.equal((await home.leasehold(['whoami', '--operator', 'carol'])).code, 0);
  writeFileSync(keyOf('carol'), before);
  const former = await home.leasehold(['whoami', '--operator', 'carol']);
  assert.match(former.stderr, /^leasehold: Login failed: operator carol is not registered, or this is not its key/);
  const removed = await home.leasehold(['operator', 'delete', 'carol', '--yes']);
  assert.equal(removed.stderr, 'Removed carol.\n');
  assert.equal((await home.leasehold(['operator', 'show', 'carol'])).code, 2);
});
