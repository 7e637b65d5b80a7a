/** Every route of the interface has a call, which sends the documented request and returns the response. */
import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type AuditEntry, Leasehold } from '../../src/client/leasehold.ts';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { logIn, readAgentKey } from '../kit/client.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { newOperatorKey } from '../kit/operators.ts';
import { AGENT, collect, setScene, throughProxy, withCode } from './fixture.ts';

const shared = await setScene({ after });

/** The row that a request meant: the first that fits, those without parameters before those with. */
function rowOf(method: string, address: string): string | undefined {
  const [path = ''] = address.split('?');
  const fits = (pattern: string): boolean =>
    new RegExp(`^${pattern.replaceAll(/\{path\}/g, '.+').replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path);
  const rows = ROUTES.filter((route) => route.method === method && fits(route.path));
  const row = rows.toSorted((a, b) => a.path.split('{').length - b.path.split('{').length)[0];
  return row === undefined ? undefined : `${row.method} ${row.path}`;
}

test('every route in the table is called, and every response is returned', async () => {
  const { asAdmin, asAgent, between, service } = shared;
  const vault = asAdmin();

  assert.deepEqual(await vault.health(), { status: 'ok' });
  const stored = await vault.credentials.store({ path: 'prod/a b'.replace(' ', '+'), type: 'api_key', value: 'v1' });
  assert.deepEqual([stored.path, stored.type], ['prod/a+b', 'api_key']);
  await vault.credentials.store({ path: 'prod/a+b', value: 'zwölf\n' });
  const held = await vault.credentials.retrieve('prod/a+b', { ttlSeconds: 60 });
  assert.deepEqual([held.path, held.value.reveal()], ['prod/a+b', 'zwölf\n']);
  assert.equal((await vault.credentials.retrieve('prod/a+b', { version: 1 })).value.reveal(), 'v1');
  const { versions } = await vault.credentials.readMetadata('prod/a+b');
  assert.deepEqual(
    versions.map(({ version }) => version),
    [1, 2],
  );
  const listed = await vault.credentials.list({ type: 'api_key', limit: 1 });
  assert.deepEqual([listed.data[0]?.path, listed.meta], ['prod/a+b', { total: 1, limit: 1, offset: 0 }]);
  assert.equal((await collect(vault.credentials.listAll())).length, 2);

  const policy = { principal: 'agent:ci', resources: ['ci/*'], actions: ['retrieve' as const], max_ttl: 30 };
  assert.equal((await vault.policies.create({ name: 'ci', ...policy })).max_ttl, 30);
  assert.equal((await vault.policies.put('ci', { ...policy, max_ttl: 40 })).max_ttl, 40);
  assert.equal((await vault.policies.read('ci')).max_ttl, 40);
  assert.deepEqual((await vault.policies.list({ limit: 1 })).meta, { total: 2, limit: 1, offset: 0 });
  assert.equal((await collect(vault.policies.listAll())).length, 2);
  const simulated = await vault.policies.simulate({ agent: 'ci', resource: 'ci/x', action: 'retrieve' });
  assert.deepEqual([simulated.allowed, simulated.policy_name, simulated.lease_ttl], [true, 'ci', 40]);
  await vault.policies.delete('ci');

  const services = await vault.services();
  const openai = services.find(({ name }) => name === 'openai') ?? assert.fail('openai is missing');
  assert.deepEqual([openai.targets[0]?.origin, openai.placement], ['https://api.openai.com', { kind: 'bearer' }]);
  assert.equal(services.find(({ name }) => name === 'jira')?.needs_host, true);

  assert.equal((await vault.agents.register({ name: 'ci', description: 'builds' })).name, 'ci');
  assert.equal((await vault.agents.read('ci')).description, 'builds');
  assert.equal((await vault.agents.list()).data.length, 2);
  assert.equal((await collect(vault.agents.listAll())).length, 2);
  assert.equal((await vault.agents.rotate('ci', { grace_seconds: 0 })).name, 'ci');
  await vault.agents.deregister('ci');

  const key = newOperatorKey();
  const added = await vault.operators.add({ name: 'ann', roles: ['editor', 'viewer'], public_key: key.publicKey });
  assert.deepEqual([added.name, added.roles], ['ann', ['viewer', 'editor']]);
  assert.equal((await vault.operators.read('ann')).public_key, key.publicKey);
  assert.equal((await vault.operators.list({ limit: 1 })).meta?.total, 1);
  assert.equal((await collect(vault.operators.listAll())).length, 1);
  assert.equal(
    (await vault.operators.replace('ann', { roles: ['viewer'], description: 'on call' })).description,
    'on call',
  );
  const rotated = await vault.operators.rotate('ann', { public_key: newOperatorKey().publicKey });
  assert.notEqual(rotated.public_key, key.publicKey);
  await vault.operators.rotate('ann', { public_key: key.publicKey });
  const ann = new Leasehold({
    address: between.address,
    agent: { name: 'operator:ann', sign: (nonce) => sign(null, nonce, key.privateKey) },
  });
  const session = await ann.logIn();
  assert.deepEqual([session.agent_name, session.roles], ['operator:ann', ['viewer']]);
  assert.ok((await ann.renewSession()).expires_at >= session.expires_at);
  assert.equal((await ann.signIn.openBrowser()).agent_name, 'operator:ann');
  const { code } = await ann.signIn.issueHandoff();
  assert.equal((await vault.signIn.redeemHandoff(code)).agent_name, 'operator:ann');
  await ann.logOut();
  assert.deepEqual(await vault.signIn.methods(), { passkey: false, oidc: null, setup: false });
  // Passkeys work at the server's own port, and this server has no provider: sign-in.test.ts has them.
  const invited = await vault.operators.invite('ann');
  const nowhere = withCode('INVALID_REQUEST', 400);
  await assert.rejects(vault.signIn.passkeyOptions(), nowhere);
  await assert.rejects(vault.signIn.registrationOptions({ code: invited.code }), nowhere);
  const made = { id: 'x', rawId: 'x', type: 'public-key', clientExtensionResults: {} } as const;
  const { challenge_id } = { challenge_id: '01234567-89ab-8def-8123-456789abcdef' };
  const response = { clientDataJSON: '', authenticatorData: '', signature: '', attestationObject: '' };
  await assert.rejects(vault.signIn.verifyPasskey({ challenge_id, response: { ...made, response } }), nowhere);
  const registered = { challenge_id, label: 'x', code: invited.code, response: { ...made, response } };
  await assert.rejects(vault.signIn.registerPasskey(registered), nowhere);
  await assert.rejects(vault.signIn.oidcOptions(), withCode('NOT_FOUND', 404));
  await assert.rejects(vault.signIn.verifyOidc({ code: 'x', state: 'x' }), withCode('NOT_FOUND', 404));
  await assert.rejects(vault.operators.removePasskey('ann', 'x'), withCode('NOT_FOUND', 404));
  await vault.operators.remove('ann');

  await demandApproval(service, AGENT, ['asked/*']);
  const approver = { name: 'ben', roles: ['approver' as const], public_key: key.publicKey };
  await vault.operators.add(approver);
  const answers = ['approve', 'deny'] as const;
  for (const how of answers) {
    await vault.credentials.store({ path: `asked/${how}`, value: 'v' });
    const token = await logIn(service.address, AGENT, readAgentKey(service.dataDir, AGENT));
    const { approval_id, nonce, abandon } = await askToRetrieve(service, token, `asked/${how}`);
    await abandon();
    const { request, status, covers } = await vault.approvals.read(approval_id);
    assert.deepEqual([request, status], [null, 'pending']);
    assert.match(covers, /^One retrieval of asked\//);
    const answered = await (how === 'approve'
      ? vault.approvals.approve(approval_id, nonce)
      : vault.approvals.deny(approval_id, { nonce, reason: 'not today' }));
    assert.deepEqual([answered.answered_by, answered.reason], ['admin', how === 'deny' ? 'not today' : null]);
    if (how === 'approve') await vault.approvals.withdraw(approval_id);
  }
  assert.equal((await vault.approvals.list({ status: 'denied', limit: 1 })).meta?.total, 1);
  assert.equal((await collect(vault.approvals.listAll({ agent: AGENT }))).length, 2);
  const refused = asAgent().credentials.retrieve('asked/deny');
  await assert.rejects(refused, { ...withCode('APPROVAL_DENIED', 403), message: /denied by admin: not today/ });
  await vault.policies.delete(`asks-${AGENT}`);

  assert.equal((await vault.keys.addSlot({ name: 'second', kind: 'file' })).kind, 'file');
  assert.equal((await vault.keys.slots()).length, 2);
  assert.deepEqual(await vault.keys.testSlot('second', null), { opens: true, problem: null });
  await vault.keys.removeSlot('second');
  assert.deepEqual(await vault.keys.rotate('data'), { key: 'data' });
  assert.deepEqual(await vault.keys.lock(), { status: 'locked' });
  await assert.rejects(vault.keys.slots(), withCode('VAULT_LOCKED', 503));
  assert.equal((await vault.keys.attendedSlots()).length, 1);
  const rootKey = readFileSync(join(service.dataDir, 'root.key'), 'utf8').trim();
  assert.equal((await vault.keys.unlock(new Secret(rootKey))).status, 'ok');

  const targets = [{ origin: 'https://127.0.0.1:1', allow_networks: ['127.0.0.0/8'] }];
  await vault.targets.put('prod/a+b', { targets, placement: { kind: 'bearer' } });
  assert.equal((await vault.targets.read('prod/a+b')).targets[0]?.origin, 'https://127.0.0.1:1');
  const use = { path: 'prod/a+b', method: 'GET', url: 'https://127.0.0.1:1/' };
  await assert.rejects(vault.use(use), withCode('UPSTREAM_FAILED', 502));
  const issuing = vault.useLeases.issue({ path: 'prod/a+b' });
  await assert.rejects(issuing, withCode('ACCESS_DENIED', 403));
  await vault.targets.delete('prod/a+b');

  const agent = asAgent();
  assert.equal((await agent.logIn()).agent_name, AGENT);
  assert.equal((await agent.readSession()).agent_name, AGENT);
  const own = await agent.credentials.retrieve('prod/db/password');
  assert.equal((await agent.leases.renew(own.lease_id)).status, 'active');
  await agent.logOut();

  assert.equal((await vault.leases.read(own.lease_id)).agent_name, AGENT);
  assert.equal((await vault.leases.list({ agent: AGENT, status: 'active' })).data.length, 1);
  assert.ok((await collect(vault.leases.listAll())).length >= 3);
  await vault.leases.revoke(own.lease_id);
  assert.deepEqual(await vault.leases.revokeAll({ path: 'prod/a+b' }), { revoked: 2 });
  const [exposed] = (await vault.exposure.read('prod/a+b')).versions;
  assert.deepEqual([exposed?.version, exposed?.seen_by[0]?.agent_name], [1, 'admin']);
  assert.equal((await vault.exposure.list({ agent: AGENT, limit: 1 })).data[0]?.path, 'prod/db/password');
  assert.equal((await collect(vault.exposure.listAll({ agent: 'admin' }))).length, 1);
  const counted = await vault.exposure.held({ agent: AGENT });
  const { rotate, used_only: _, ...ended } = await vault.exposure.panic({ agent: AGENT });
  assert.deepEqual(counted, ended);
  assert.deepEqual(rotate, [{ path: 'prod/db/password', version: 1, current: true }]);
  await vault.credentials.delete('prod/a+b');

  const newest = await vault.audit.list({ limit: 2 });
  assert.equal(newest.data[0]?.event_type, 'credential.delete');
  const [newestEntry] = newest.data;
  assert.equal((await vault.audit.list({ before: newestEntry?.seq ?? 0, limit: 1 })).data[0]?.seq, newest.data[1]?.seq);
  const matrix = await vault.overview.matrix({ agent_limit: 1, prefix: 'prod' });
  assert.deepEqual([matrix.agents, matrix.paths, matrix.cells.length], [[{ name: AGENT }], ['prod/db/password'], 1]);
  const { entries: level } = await vault.overview.tree({ prefix: 'prod' });
  assert.deepEqual(level, [{ name: 'db', kind: 'directory', path: 'prod/db', credentials: 1 }]);
  assert.equal((await vault.overview.search({ q: 'DB/', limit: 1 })).results[0]?.name, 'prod/db/password');
  assert.deepEqual(await vault.overview.attention(), []);
  const activity = await vault.overview.activity();
  assert.ok(activity.some(({ retrievals }) => retrievals > 0));
  assert.equal((await vault.overview.nodes())[0]?.is_self, true);

  const { head, entries } = await vault.audit.export();
  const all: AuditEntry[] = await collect(entries);
  assert.deepEqual([all.length, all.at(-1)?.seq], [Number(head?.split(' ')[0]), newest.meta.total]);
  assert.equal((await vault.audit.verify()).valid, true);
  await vault.audit.readProgress();
  assert.deepEqual(await vault.audit.readRollback(), { loss: null });
  assert.deepEqual(await vault.audit.acceptRollback(), { status: 'ok' });
  const { size } = await vault.audit.readCheckpoint();
  assert.equal((await vault.audit.proveEntry(1)).seq, 1);
  assert.equal((await vault.audit.proveConsistency({ from: 1 })).from_root.length, 44);
  assert.equal((await vault.audit.proveConsistency({ from: 1, to: size })).to, size);
  const backup = await new Response(await vault.backup()).text();
  assert.match(backup, /^\{"format":"leasehold-backup-v1".*\n(?:.+\n)+\{"end":.*\n$/);

  const called = new Set(between.seen.map(({ method, path }) => rowOf(method, path)));
  // A row of other content without a caller's token is for programs that have no client yet, and probes for monitoring.
  const isProbe = (id: string): boolean => id === 'readLiveness' || id === 'readReadiness';
  const forClients = ROUTES.filter(
    ({ id, permission, content }) => !isProbe(id) && (permission !== null || content === null),
  );
  const uncalled = forClients.map(({ method, path }) => `${method} ${path}`).filter((row) => !called.has(row));
  assert.deepEqual(uncalled, []);
});

test('an error has the server’s code, status and message, and the request id of the logs', async (t) => {
  const { asAdmin, asAgent, asNobody, between } = await throughProxy(t, shared);
  const [vault, agent] = [asAdmin(), asAgent()];
  await assert.rejects(vault.credentials.retrieve('prod/nothing'), withCode('NOT_FOUND', 404));
  await assert.rejects(agent.credentials.retrieve('elsewhere'), {
    ...withCode('ACCESS_DENIED', 403),
    message: /no policy grants/,
  });
  await assert.rejects(agent.audit.verify(), withCode('ACCESS_DENIED', 403));
  await assert.rejects(vault.agents.register({ name: AGENT }), withCode('ALREADY_EXISTS', 409));
  await assert.rejects(vault.credentials.store({ path: 'a//b', value: 'x' }), withCode('INVALID_REQUEST', 400));
  await assert.rejects(asNobody().policies.list(), withCode('UNAUTHENTICATED', 401));
  const there = { path: 'prod/db/password', value: 'another' };
  await assert.rejects(vault.credentials.store(there, { onlyIfNew: true }), withCode('ALREADY_EXISTS', 409));

  const denied = await agent.credentials.retrieve('elsewhere').catch((error: unknown) => error);
  const { data } = await vault.audit.list({ result: 'denied', limit: 1 });
  assert.ok(denied instanceof Error && 'requestId' in denied);
  assert.equal(denied.requestId, data[0]?.request_id);
  assert.equal(between.count('GET /api/v1/credentials/elsewhere'), 2, 'a rejection is not retried');
});

test('a name that would change the route is rejected before anything is sent', async (t) => {
  const { asAdmin, between } = await throughProxy(t, shared);
  const vault = asAdmin();
  const wrong = withCode('INVALID_REQUEST', null);
  for (const path of [
    '',
    '..',
    '../policies/reads',
    'prod/../../policies/reads',
    'prod/./x',
    '/prod',
    'a//b',
    '\ud800',
  ]) {
    await assert.rejects(vault.credentials.delete(path), wrong, path);
    await assert.rejects(vault.credentials.retrieve(path), wrong, path);
    await assert.rejects(vault.credentials.readMetadata(path), wrong, path);
  }
  for (const name of ['', '.', '..']) {
    await assert.rejects(vault.policies.delete(name), wrong);
    await assert.rejects(vault.agents.deregister(name), wrong);
    await assert.rejects(vault.leases.renew(name), wrong);
  }
  await assert.rejects(vault.policies.delete('../policies/reads'), withCode('INVALID_REQUEST', 400));
  await assert.rejects(vault.policies.delete('%2e%2e/policies/reads'), withCode('INVALID_REQUEST', 400));
  assert.equal(between.seen.length, 2);
  assert.equal((await vault.policies.list()).data.length, 1);
});
