/** Values and tokens are shown only by `reveal()`, and never by printing or by errors. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { format, inspect } from 'node:util';
import { Leasehold, Secret } from '../../src/client/leasehold.ts';
import { AGENT, setScene, throughProxy } from './fixture.ts';

const shared = await setScene({ after });

const VALUE = 'correct horse';
const path = 'prod/db/password';
const inDepth = { depth: Number.POSITIVE_INFINITY, showHidden: true, getters: true };

/** All that a program does to see what something is. */
function everyWayToPrint(thing: unknown): string {
  const parts = [`${thing}`, String(thing), format('%s %o %O %j', thing, thing, thing, thing), inspect(thing, inDepth)];
  const copies = [JSON.stringify({ thing }), JSON.stringify({ ...(thing as object) })];
  const cause = thing instanceof Error ? [thing.stack, thing.message, everyWayToPrint(thing.cause)] : [];
  return [...parts, ...copies, ...cause, JSON.stringify(Object.entries(thing ?? {}))].join('\n');
}

test('a Secret prints as [secret] in every form, and only reveal() returns the value', () => {
  const secret = new Secret(VALUE);
  assert.deepEqual([`${secret}`, String(secret), ['', secret].join('')], ['[secret]', '[secret]', '[secret]']);
  assert.equal(JSON.stringify({ secret, list: [secret] }), '{"secret":"[secret]","list":["[secret]"]}');
  assert.equal(inspect({ a: { b: [secret] } }, inDepth), '{ a: { b: [ [secret], [length]: 1 ] } }');
  assert.equal(everyWayToPrint(secret).includes(VALUE), false);
  assert.deepEqual(Object.getOwnPropertyNames(secret), []);
  assert.throws(() => structuredClone({ ...secret, reveal: secret.reveal }));
  assert.equal(secret.reveal(), VALUE);
});

test('a retrieval, a session and the client itself print no value and no token', async (t) => {
  const { asAdmin, asAgent, service } = await throughProxy(t, shared);
  const [admin, agent] = [asAdmin({ cache: 5 }), asAgent({ cache: 5 })];
  const session = await agent.logIn();
  const things = [await admin.credentials.retrieve(path), await agent.credentials.retrieve(path), session];
  const printed = [...things, await agent.readSession(), admin, agent, admin.credentials, agent.leases]
    .map(everyWayToPrint)
    .join('\n');
  assert.match(printed, /\[secret\]/);
  for (const hidden of [VALUE, service.adminToken, session.session_id.reveal()]) {
    assert.equal(printed.includes(hidden), false);
  }
});

test('a use lease prints neither its token nor the variables that contain it', async (t) => {
  const { admin, asAgent } = await throughProxy(t, shared);
  await admin.targets.put(path, { service: 'openai' });
  await admin.policies.create({ name: 'uses', principal: `agent:${AGENT}`, resources: [path], actions: ['use'] });
  const lease = await asAgent().useLeases.issue({ path });
  assert.match(lease.token.reveal(), /lhu_[\w-]{43}$/);
  assert.equal(lease.env['OPENAI_API_KEY']?.reveal(), lease.token.reveal());
  assert.equal(lease.env['OPENAI_BASE_URL']?.reveal(), `${lease.base_url}/v1`);
  assert.equal(everyWayToPrint(lease).includes(lease.token.reveal()), false);
});

test('the error of a failed call contains neither the value, nor the token, nor the key', async (t) => {
  const { asAdmin, asAgent, between, service } = await throughProxy(t, shared);
  const value = 'the value that was sent';
  const [vault, agent] = [asAdmin({ retries: 0 }), asAgent({ retries: 0 })];
  const { session_id } = await agent.logIn();
  const failing = async (act: Parameters<typeof between.next>[0] | null, call: () => Promise<unknown>) => {
    if (act !== null) between.next(act);
    return everyWayToPrint(
      await call().then(
        () => assert.fail('it worked'),
        (error: unknown) => error,
      ),
    );
  };
  const store = (by = vault) => by.credentials.store({ path, value });
  // WHY another proxy: a request that timed out may arrive later, and take the fault of another.
  const silent = await throughProxy(t, shared);
  silent.between.next('silence');
  const echo = { status: 500, body: `{"error":{"said":"${value} ${service.adminToken}"}}` };
  const printed = [
    await failing('cut before', store),
    await failing(null, () => store(silent.asAdmin({ retries: 0, timeoutMs: 300 }))),
    await failing(echo, store),
    await failing({ status: 200, body: value }, store),
    await failing(null, () => vault.credentials.store({ path: '', value })),
    await failing(null, () => vault.credentials.store({ path, value: new Secret(`${value}\0`.repeat(20_000)) })),
    await failing({ bytes: 20 }, () => vault.credentials.retrieve(path)),
    await failing(null, () => agent.credentials.retrieve('elsewhere')),
    await failing('cut before', () => agent.credentials.retrieve(path)),
  ];
  assert.equal(printed.length, 9);
  for (const hidden of [value, VALUE, service.adminToken, session_id.reveal()]) {
    assert.equal(printed.join('\n').includes(hidden), false, hidden);
  }
});

test('a value is stored and returned unchanged, given as text or as a Secret', async (t) => {
  const { asAdmin, asAgent } = await throughProxy(t, shared);
  const value = 'ünï"\\\n\t\u0000𝄞 \u2028';
  for (const given of [value, new Secret(value)]) {
    await asAdmin().credentials.store({ path: 'prod/text', value: given });
    const { value: got } = await asAgent().credentials.retrieve('prod/text');
    assert.equal(got.reveal(), value);
  }
  assert.ok(new Leasehold({ address: 'http://[::1]:1', token: new Secret('lha_x') }));
});
