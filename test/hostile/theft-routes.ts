// An agent that may use a credential cannot get its value through the server's own routes, states and errors.

import assert from 'node:assert/strict';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import { assertUnreadable, attempt, PATHS, tokenOf, VALUE } from './theft-fixture.ts';

const bearer = { kind: 'bearer' };

attempt(
  'every route that the session may call, with the path and the lease in each place',
  async ({ thief, use }) => {
    const { lease_id: lease } = (await use()).body.data;
    const called = new Set<string>();
    for (const route of ROUTES.filter(({ method }) => method !== 'DELETE')) {
      for (const own of [PATHS.bearer, lease, 'thief']) {
        const path = route.path.replaceAll(/\{\w+\}/g, own);
        const query = { view: 'metadata', status: 'all', agent: 'thief', path: PATHS.bearer, version: '1' };
        const names = Object.keys(route.query.properties).filter((name) => name in query);
        const search = new URLSearchParams(names.map((name) => [name, query[name as keyof typeof query]]));
        // A route without parameters is the same for each, and the reader of responses takes long for the large ones.
        for (const target of new Set([path, names.length === 0 ? path : `${path}?${search}`])) {
          if (called.has(`${route.method} ${target}`)) continue;
          called.add(`${route.method} ${target}`);
          const body = route.method === 'GET' ? undefined : { path: PATHS.bearer, agent: 'thief', agent_name: 'thief' };
          assertUnreadable(await thief.call(route.method, target, body));
        }
      }
    }
  },
  ['one call'],
);
attempt('a retrieval, a lease for the value, and a renewal', async ({ thief, use }) => {
  const { lease_id: lease } = (await use()).body.data;
  for (const path of Object.values(PATHS)) {
    assert.equal((await thief.get(`/api/v1/credentials/${path}`)).status, 403);
    assertUnreadable(await thief.get(`/api/v1/credentials/${path}?view=metadata`));
  }
  assertUnreadable(await thief.post(`/api/v1/leases/${lease}/renew`, {}));
  assertUnreadable(await thief.get(`/api/v1/leases/${lease}`));
});
attempt(
  'simulations and explanations',
  async ({ thief }) => {
    for (const action of ['use', 'retrieve']) {
      const answer = await thief.post('/api/v1/policies/simulate', { agent: 'thief', resource: PATHS.bearer, action });
      assertUnreadable(answer);
    }
  },
  ['one call'],
);
attempt('the audit log, its export and its verification', async ({ admin, origin, setResponse, thief, use }) => {
  setResponse((response, request) => response.end(tokenOf(request)));
  await use({ path: PATHS.query, url: `${origin}/v1/echo?a=1`, purpose: 'theft' });
  for (const path of ['/api/v1/audit?limit=1000', '/api/v1/audit/export', '/api/v1/audit/verify']) {
    assert.equal((await thief.get(path)).status, 403);
    assertUnreadable(await admin.get(path));
  }
});
attempt(
  'health, metrics, the interface’s description, and paths that do not exist',
  async ({ thief }) => {
    for (const path of [
      '/',
      '/health',
      '/metrics',
      '/api/v1/health',
      '/api/v1/metrics',
      '/openapi.json',
      '/use',
      '/debug',
    ])
      assertUnreadable(await thief.get(path));
  },
  ['one call'],
);
attempt(
  'targets and a placement of the thief, in the request or on the credential',
  async ({ assertRefused, ownServer, thief }) => {
    const own = [{ origin: `http://127.0.0.1:${ownServer.port}`, allow_networks: ['127.0.0.0/8'] }];
    await assertRefused(
      ['targets', 'target', 'placement', 'origin', 'value', 'ca_pem', 'allow_networks', 'redact', 'linkPrefix'].map(
        (name) => ({ [name]: name === 'targets' ? own : bearer }),
      ),
    );
    for (const path of Object.values(PATHS)) {
      assert.equal((await thief.put(`/api/v1/targets/${path}`, { targets: own, placement: bearer })).status, 403);
      assert.equal((await thief.delete(`/api/v1/targets/${path}`)).status, 403);
      assertUnreadable(await thief.get(`/api/v1/targets/${path}`));
    }
  },
  ['one call'],
);
attempt(
  'a credential that was deleted and created again has no targets',
  async ({ admin, named, statuses, targets }) => {
    const path = named('theft/again');
    for (const value of ['of-the-first-one', VALUE]) {
      assert.equal((await admin.post('/api/v1/credentials', { path, value })).status, 201);
      if (value !== VALUE) await admin.put(`/api/v1/targets/${path}`, { targets, placement: bearer });
      if (value !== VALUE) assert.equal((await admin.delete(`/api/v1/credentials/${path}`)).status, 204);
    }
    assert.deepEqual(await statuses([{ path }]), [403]);
  },
);
attempt('targets that change while a use is running cut it, and get nothing of it', async (fixture) => {
  const { admin, allowed, endpoint, named, ownServer, setResponse, statuses, targets, use } = fixture;
  const path = named('theft/changed');
  await admin.post('/api/v1/credentials', { path, value: VALUE });
  await admin.put(`/api/v1/targets/${path}`, { targets, placement: bearer });
  const arrived = Promise.withResolvers<void>();
  setResponse((response, request) => {
    response.write(`${tokenOf(request)}\n`);
    arrived.resolve();
  });
  const running = use({ path });
  await arrived.promise;
  const other = [{ origin: `https://127.0.0.1:${ownServer.port}`, ...allowed }];
  await admin.put(`/api/v1/targets/${path}`, { targets: other, placement: bearer });
  assert.equal((await running).status, 502);
  assert.equal(ownServer.requests.length, 0);
  // A base URL leads to the new target, which is reached without TLS only.
  assert.deepEqual(await statuses([{ path }]), [endpoint === 'one call' ? 403 : 502]);
});
attempt('the lease and the credential of another agent', async (fixture) => {
  const { admin, endpoint, named, service, setResponse, statuses, targets, thief, use } = fixture;
  setResponse((response) => response.end('ok'));
  const other = await service.agent(named('other'), { 'others/*': ['use', 'retrieve'] });
  const path = named('others/key');
  await admin.post('/api/v1/credentials', { path, value: VALUE });
  await admin.put(`/api/v1/targets/${path}`, { targets, placement: bearer });
  const { lease_id: lease } = (await use({ path }, other.token)).body.data;
  assert.deepEqual(await statuses([{ path }]), [403]);
  if (endpoint === 'one call') assert.deepEqual(await statuses([{ path, lease_id: lease }]), [400]);
  assert.notEqual((await thief.get(`/api/v1/leases/${lease}`)).status, 200);
  assert.equal((await use({}, lease)).status, 401);
});
attempt(
  'bodies that are giant, malformed or announced otherwise',
  async ({ assertRefused, upstream, use }) => {
    const before = upstream.requests.length;
    assert.equal((await use({ method: 'POST', body: 'x'.repeat(3 * 1024 * 1024) })).status, 413);
    await assertRefused([
      { body: '====', body_encoding: 'base64', method: 'POST' },
      { body: 'YQ', body_encoding: 'base64', method: 'POST' },
      { body: 'x', body_encoding: 'utf-16', method: 'POST' },
      { body: { $ref: PATHS.bearer }, method: 'POST' },
    ]);
    assert.equal(upstream.requests.length, before);
  },
  ['one call'],
);
attempt('error messages for every failure that an upstream can cause', async ({ setResponse, use }) => {
  for (const head of [
    'HTTP/1.1 200 OK\r\nX: a\0',
    'SSH-2.0-a',
    'HTTP/1.1 999999 x',
    'HTTP/1.1 200 OK\r\nContent-Length: x',
  ]) {
    setResponse((_, request) => request.socket.end(`${head}\r\nY: ${tokenOf(request)}\r\n\r\n${tokenOf(request)}`));
    assert.deepEqual(Object.keys((await use()).body.error), ['code', 'message']);
  }
});
attempt(
  'the same request again under an idempotency key',
  async ({ origin, setResponse, thief }) => {
    setResponse((response, request) => response.end(tokenOf(request)));
    for (const path of [PATHS.bearer, PATHS.bearer, PATHS.query]) {
      const call = { path, method: 'GET', url: `${origin}/v1/echo` };
      assertUnreadable(await thief.call('POST', '/api/v1/use', call, { 'idempotency-key': 'theft' }));
    }
  },
  ['one call'],
);
attempt(
  'values that the redaction cannot find in every form are not sent',
  async ({ admin, assertRefused, named, setResponse, targets }) => {
    setResponse((response, request) => response.end(tokenOf(request)));
    for (const [index, value] of ['abc', '  abc ', 'x'.repeat(40_000)].entries()) {
      const path = named(`theft/odd-${index}`);
      await admin.post('/api/v1/credentials', { path, value });
      await admin.put(`/api/v1/targets/${path}`, { targets, placement: bearer });
      await assertRefused([{ path }]);
    }
  },
);
