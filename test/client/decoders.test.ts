/** Every response is validated by its fields: a missing field is rejected, and an unknown one is accepted. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Leasehold } from '../../src/client/leasehold.ts';
import { startUpstream } from '../broker/upstream.ts';
import { AGENT, collect, setScene, withCode } from './fixture.ts';

const path = 'prod/db/password';
const policy = { principal: 'agent:ci', resources: ['ci/*'], actions: ['retrieve' as const] };
let made = 0;
const upstream = await startUpstream({ after }, (_request, response) => response.end('{}'));
const origin = `https://127.0.0.1:${upstream.port}`;
const TARGETS = {
  targets: [{ origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }],
  placement: { kind: 'bearer' as const },
};

/** Calls whose responses have data; each can be repeated. */
const CALLS: Readonly<Record<string, (vault: Leasehold, leaseId: string) => Promise<unknown>>> = {
  health: (vault) => vault.health(),
  'credentials.retrieve': (vault) => vault.credentials.retrieve(path),
  'credentials.store': (vault) => vault.credentials.store({ path: 'prod/other', value: 'x' }),
  'credentials.readMetadata': (vault) => vault.credentials.readMetadata(path),
  'credentials.list': (vault) => vault.credentials.list({ limit: 5 }),
  'credentials.listAll': (vault) => collect(vault.credentials.listAll()),
  'policies.list': (vault) => vault.policies.list(),
  'policies.listAll': (vault) => collect(vault.policies.listAll()),
  'policies.read': (vault) => vault.policies.read('reads'),
  'policies.create': (vault) => vault.policies.create({ name: `made-${made++}`, ...policy }),
  'policies.put': (vault) => vault.policies.put('put', policy),
  'policies.simulate': (vault) => vault.policies.simulate({ agent: AGENT, resource: path, action: 'retrieve' }),
  'agents.list': (vault) => vault.agents.list(),
  'agents.listAll': (vault) => collect(vault.agents.listAll()),
  'agents.read': (vault) => vault.agents.read(AGENT),
  'agents.register': (vault) => vault.agents.register({ name: `made-${made++}` }),
  'leases.list': (vault) => vault.leases.list(),
  'leases.listAll': (vault) => collect(vault.leases.listAll()),
  'leases.read': (vault, leaseId) => vault.leases.read(leaseId),
  'leases.renew': (vault, leaseId) => vault.leases.renew(leaseId),
  'leases.revokeAll': (vault) => vault.leases.revokeAll({ agent: 'nobody-yet' }),
  'targets.put': (vault) => vault.targets.put(path, TARGETS),
  'targets.read': (vault) => vault.targets.read(path),
  use: (vault) => vault.use({ path, method: 'GET', url: `${origin}/` }),
  'useLeases.issue': (vault) => vault.useLeases.issue({ path }),
  'exposure.read': (vault) => vault.exposure.read(path),
  'exposure.list': (vault) => vault.exposure.list({ agent: AGENT }),
  'exposure.listAll': (vault) => collect(vault.exposure.listAll({ agent: AGENT })),
  'exposure.held': (vault) => vault.exposure.held(),
  'exposure.panic': (vault) => vault.exposure.panic({ agent: AGENT }),
  'audit.list': (vault) => vault.audit.list({ limit: 3 }),
  'audit.verify': (vault) => vault.audit.verify(),
  'audit.readProgress': (vault) => vault.audit.readProgress(),
};

type Fields = Record<string, unknown>;
type Change = (answer: { data: Fields; row: Fields; meta: Fields | undefined }) => void;

/** The service's response, modified in transit. */
function changing(change: Change, token: string): Leasehold {
  const changed: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    const body = JSON.parse(await answer.text());
    change({ data: body.data, row: Array.isArray(body.data) ? body.data[0] : body.data, meta: body.meta });
    return new Response(JSON.stringify(body), { status: answer.status, headers: answer.headers });
  };
  return new Leasehold({ address: scene.service.address, token, fetch: changed, retries: 0 });
}

const scene = await setScene({ after });
await scene.admin.targets.put(path, TARGETS);
await scene.admin.policies.create({
  name: 'uses',
  principal: `agent:${AGENT}`,
  resources: ['prod/*'],
  actions: ['use'],
});
/** Fields whose decoders name a field of theirs. */
const NESTED: ReadonlySet<string> = new Set(['versions', 'targets', 'placement', 'rotate', 'used_only']);

for (const [name, call] of Object.entries(CALLS)) {
  test(`${name}: each missing field is rejected, and an additional one is accepted`, async () => {
    const agent = scene.asAgent();
    const leaseId = (await agent.credentials.retrieve(path)).lease_id;
    // Only an agent can have a use lease.
    const isForAgents = name === 'useLeases.issue';
    const token = isForAgents ? (await agent.logIn()).session_id.reveal() : scene.service.adminToken;
    const fields: string[] = [];
    const more: Change = ({ row }) => {
      fields.push(...Object.keys(row));
      row['added_later'] = { by: 'a newer service' };
    };
    await call(changing(more, token), leaseId);
    assert.ok(fields.length > 0);
    for (const field of fields) {
      // An upstream may send no headers, and a service may have no variables.
      const isMap = field === 'headers' || field === 'env';
      for (const wrong of [undefined, isMap ? { name: 5 } : {}, [{}], [null]]) {
        const change: Change = ({ row }) => {
          row[field] = wrong; // undefined is left out on the wire
        };
        const message = NESTED.has(field) ? /list|object|version|kind|origin|path/ : new RegExp(`: ${field} must be `);
        const error = { ...withCode('INVALID_RESPONSE', null), message };
        await assert.rejects(call(changing(change, token), leaseId), error, `${field} ${JSON.stringify(wrong)}`);
      }
    }
    for (const data of [null, [null], [{}], {}, 5, 'text', [[]]]) {
      scene.between.next({ status: 200, body: JSON.stringify({ data }) });
      await assert.rejects(call(scene.asAdmin(), leaseId), { code: 'INVALID_RESPONSE' }, JSON.stringify(data));
    }
    scene.between.next({ status: 204 });
    await assert.rejects(call(scene.asAdmin(), leaseId), withCode('INVALID_RESPONSE', 204));
  });
}

test('a deletion succeeds with 204 only', async (t) => {
  const { asAdmin, between } = await setScene(t);
  const vault = asAdmin();
  const calls = [
    () => vault.credentials.delete(path),
    () => vault.policies.delete('reads'),
    () => vault.targets.delete(path),
    () => vault.agents.deregister(AGENT),
    () => vault.leases.revoke('00000000-0000-4000-8000-000000000000'),
    () => vault.logOut(),
  ];
  for (const call of calls) {
    for (const status of [200, 201, 202, 205, 206]) {
      const body = status === 205 ? {} : { body: '{"data":{}}' };
      between.next({ status, ...body });
      await assert.rejects(call(), withCode('INVALID_RESPONSE', status));
    }
  }
  await vault.credentials.delete(path);
});

test('an invalid challenge or session response does not start a login', async (t) => {
  const { asAgent, between } = await setScene(t);
  const challenge = { challenge_id: 'x', nonce: 'AAAA', expires_at: 'x' };
  for (const data of [{}, [], { ...challenge, nonce: 5 }, { ...challenge, nonce: '%' }]) {
    between.next({ status: 200, body: JSON.stringify({ data }) });
    await assert.rejects(asAgent().logIn(), withCode('INVALID_RESPONSE', null));
  }
  for (const data of [{}, [], { session_id: 5, agent_name: AGENT, expires_at: 'x' }]) {
    between.next({ status: 200, body: JSON.stringify({ data }) }, (seen) => seen.path === '/auth/verify');
    await assert.rejects(asAgent().logIn(), withCode('INVALID_RESPONSE', null));
  }
});

test('a broken chain is reported with its location, and rejected without one', async (t) => {
  const { asAdmin, between } = await setScene(t);
  const broken = { valid: false, break_at_entry: 3, break_at_timestamp: null, message: 'm' };
  between.next({ status: 200, body: JSON.stringify({ data: broken }) });
  assert.deepEqual(await asAdmin().audit.verify(), broken);
  between.next({ status: 200, body: JSON.stringify({ data: { valid: false } }) });
  await assert.rejects(asAdmin().audit.verify(), withCode('INVALID_RESPONSE', null));
});

test('an export consists of lines of entries, and anything else is rejected', async (t) => {
  const { asAdmin, between } = await setScene(t);
  const type = 'application/x-ndjson';
  between.next({ status: 200, body: '{"data":{}}\n', headers: { 'content-type': 'application/json' } });
  await assert.rejects(asAdmin().audit.export(), withCode('INVALID_RESPONSE', null));
  for (const line of ['null', '{}', '{"seq":1}']) {
    between.next({ status: 200, body: `${line}\n`, headers: { 'content-type': type } });
    const { entries } = await asAdmin().audit.export();
    await assert.rejects(collect(entries), withCode('INVALID_RESPONSE', null), line);
  }
});
