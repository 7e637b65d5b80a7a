// Commands on operators, and commands as an operator.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Authenticator } from '../kit/authenticator.ts';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';
import { openBrowser } from '../kit/sign-in.ts';

const service = await startTestService({ after });
const home = newHome({ after }, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
const keyOf = (name: string): string => join(home.path, `.config/leasehold/operators/${name}.pem`);

test('operator add keeps the private key on this machine, and --operator logs in with it', async () => {
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

test('an editor learns which policy it needs, a viewer which role', async () => {
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
  await home.leasehold(['operator', 'add', 'anna', '--role', 'admin']);
  const agent = await home.leasehold(['whoami', '--agent', 'operator:anna']);
  assert.match(agent.stderr, /^leasehold: --agent: must be 1 to 63 characters/);
  const other = newHome(t, { LEASEHOLD_ADDR: service.address });
  writeFileSync(join(other.path, 'leasehold.toml'), 'agent = "operator:anna"\n');
  const fromFile = await other.leasehold(['whoami']);
  assert.equal(fromFile.code, 1, fromFile.stdout);
  assert.match(fromFile.stderr, /must be 1 to 63 characters/);
  const model = await home.leasehold(['mcp', '--operator', 'anna'], { isInProcess: true });
  assert.match(model.stderr, /^leasehold: a model must not act as an operator/);
});

test('operator list, show, rotate and delete', async () => {
  const missing = await home.leasehold(['operator', 'add', 'carol']);
  assert.match(missing.stderr, /^leasehold: --role is missing\.\n {2}The roles are viewer, approver, editor, admin\./);
  assert.equal(existsSync(keyOf('carol')), false);
  await home.leasehold(['operator', 'add', 'carol', '--role', 'viewer', '--description', 'on call']);
  const before = readFileSync(keyOf('carol'), 'utf8');
  assert.match((await home.leasehold(['operator', 'list'])).stdout, /carol +viewer +key +on call/);
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

test('operator add --invite and operator invite print a link for a passkey, and make no key', async () => {
  const added = await home.leasehold(['operator', 'add', 'dora', '--role', 'viewer', '--invite', '-o', 'json']);
  assert.equal(added.code, 0, added.stderr);
  assert.deepEqual([JSON.parse(added.stdout).public_key, existsSync(keyOf('dora'))], [null, false]);
  const origin = service.address.replace('127.0.0.1', 'localhost');
  const first = new RegExp(`^${origin}/console/enrol#(\\S+)$`, 'm').exec(added.stderr)?.[1] ?? '';
  const invited = await home.leasehold(['operator', 'invite', 'dora', '--field', 'link']);
  const second = invited.stdout.trim().split('#')[1] ?? '';
  const browser = openBrowser(service);
  assert.equal((await browser.enrol(second, new Authenticator())).status, 201);
  assert.equal((await browser.enrol(first, new Authenticator())).status, 401);
  assert.match((await home.leasehold(['operator', 'list'])).stdout, /dora +viewer +1 passkey /);
  assert.equal((await home.leasehold(['operator', 'invite', 'none'])).code, 2);
});

test('operator add --oidc needs a provider', async () => {
  const added = await home.leasehold(['operator', 'add', 'olga', '--role', 'viewer', '--oidc', 'dora@example.com']);
  assert.match(added.stderr, /identity: needs a provider/);
});

test('console prints the URL, and for an operator a code that signs a browser in', async () => {
  const origin = service.address.replace('127.0.0.1', 'localhost');
  const plain = await home.leasehold(['console', '--no-open']);
  assert.deepEqual([plain.code, plain.stdout], [0, `${origin}/console/\n`]);
  assert.equal(plain.stderr, 'The CLI does not send the token to the browser. Paste it into the page.\n');
  await home.leasehold(['operator', 'add', 'amy', '--role', 'admin']);
  const printed = await home.leasehold(['console', '--no-open', '--operator', 'amy']);
  assert.equal(printed.code, 0, printed.stderr);
  const [, code] = /^http:\/\/localhost:\d+\/console\/#handoff=(\S+)\n$/.exec(printed.stdout) ?? [];
  const opened = await service.anonymous.post('/api/v1/auth/handoff/redeem', { code });
  assert.equal(opened.body.data.agent_name, 'operator:amy');
});
