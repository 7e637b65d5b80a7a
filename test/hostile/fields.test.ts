// Every body field and query parameter of the route table with invalid input. SOURCE: docs/decisions.md, "Requests".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { eventOf, PERMISSIONS } from '../../src/core/permissions.ts';
import type { Route } from '../../src/http/route.ts';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { exampleOf } from '../kit/examples.ts';
import { assertInvalid, assertRejected } from '../kit/responses.ts';
import { scaled } from '../kit/scale.ts';
import { queryOf } from '../spec/requests.ts';
import { share, startFixture, words } from './fixture.ts';

const fixture = await startFixture({ after });
const { admin, anonymous } = fixture.service;
const NO_LEASE = '01890000-0000-7000-8000-000000000000';

const IDENTITY = { subject: 'sub' };
const MADE = { id: 'aWQ', rawId: 'aWQ', type: 'public-key', clientExtensionResults: {} };
const REGISTERED = { ...MADE, response: { clientDataJSON: 'e30', attestationObject: 'oA' } };
const SIGNED = { ...MADE, response: { clientDataJSON: 'e30', authenticatorData: 'AA', signature: 'AA' } };
/** A body with every field for each route that takes one, so that each field can be made invalid. */
const GOOD: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'POST /api/v1/credentials': { path: 'open/fields', value: 'v', type: 'token', description: 'd' },
  'PUT /api/v1/targets/{path}': {
    service: 'openai',
    targets: [{ origin: 'https://api.example.com' }],
    placement: { kind: 'bearer' },
  },
  'POST /api/v1/use': {
    path: 'open/stored',
    method: 'GET',
    url: 'https://api.example.com/',
    headers: { accept: '*/*' },
    body: 'b',
    body_encoding: 'utf8',
    ttl: 1,
    purpose: 'p',
  },
  'POST /api/v1/policies': { ...exampleOf(Policy), name: 'fields' },
  'PUT /api/v1/policies/{name}': { ...exampleOf(Policy), name: 'insider' },
  'POST /api/v1/policies/simulate': {
    agent: 'insider',
    resource: 'open/stored',
    action: 'use',
    request: { method: 'GET', url: 'https://api.example.com/' },
  },
  'POST /api/v1/agents': { name: 'fields', description: 'd', public_key: Buffer.alloc(32, 9).toString('base64') },
  'POST /api/v1/agents/{name}/rotate': { public_key: Buffer.alloc(32, 9).toString('base64'), grace_seconds: 1 },
  'POST /api/v1/operators': {
    name: 'fields',
    public_key: Buffer.alloc(32, 9).toString('base64'),
    identity: IDENTITY,
    roles: ['viewer'],
    description: 'd',
  },
  'PUT /api/v1/operators/{name}': { roles: ['viewer'], description: 'd', identity: IDENTITY },
  'POST /api/v1/auth/passkey/verify': { challenge_id: NO_LEASE, response: SIGNED },
  'POST /api/v1/auth/passkey/register-options': { code: 'x' },
  'POST /api/v1/auth/passkey/register': { challenge_id: NO_LEASE, response: REGISTERED, label: 'l', code: 'x' },
  'POST /api/v1/auth/oidc/verify': { code: 'x', state: 'x' },
  'POST /api/v1/auth/handoff/redeem': { code: 'x' },
  'POST /api/v1/operators/{name}/rotate': { public_key: Buffer.alloc(32, 9).toString('base64') },
  'POST /api/v1/key/slots': {
    name: 'fields',
    kind: 'transit',
    public_key: Buffer.alloc(32, 9).toString('base64'),
    parameters: { salt: 's' },
    key: 'k',
  },
  'POST /api/v1/key/slots/{name}/test': { public_key: Buffer.alloc(32, 9).toString('base64') },
  'POST /api/v1/key/rotate': { key: 'data' },
  'POST /api/v1/unlock': { secret: 'a' },
  'POST /auth/challenge': { agent_name: 'insider' },
  'POST /auth/verify': { challenge_id: NO_LEASE, agent_name: 'insider', signature: 'AAAA' },
  'POST /api/v1/leases/use': { path: 'open/stored', ttl: 1, purpose: 'p' },
  'POST /api/v1/leases/revoke': { agent: 'insider', path: 'open/stored' },
  'POST /api/v1/leases/{lease_id}/renew': {},
  'POST /api/v1/panic': { agent: 'insider' },
  'POST /api/v1/approvals/{approval_id}/approve': { nonce: 'n' },
  'POST /api/v1/approvals/{approval_id}/deny': { nonce: 'n', reason: 'r' },
};

const label = ({ method, path }: Route) => `${method} ${path}`;
const fill = ({ path }: Route, credential: string, name: string) =>
  path
    .replace('{path}', credential)
    .replace('{name}', name)
    .replace('{id}', 'aWQ')
    .replace('{lease_id}', NO_LEASE)
    .replace('{approval_id}', NO_LEASE);
const targetOf = (route: Route) => fill(route, 'open/stored', 'insider');
const propertiesOf = (route: Route): Readonly<Record<string, { type?: string | string[] }>> =>
  route.body?.properties ?? {};

const NO_STRING: readonly unknown[] = [
  0,
  1,
  true,
  false,
  null,
  [],
  ['a'],
  [['a']],
  {},
  { a: 'b' },
  { length: 1 },
  { toString: 'a' },
];
const NO_LIST: readonly unknown[] = [
  '',
  'a',
  'retrieve',
  0,
  1,
  true,
  null,
  {},
  { 0: 'a', length: 1 },
  [],
  [1],
  [null],
  [true],
  [['a']],
  [{}],
  ['a', 1],
];
const NO_SECONDS: readonly unknown[] = [
  '',
  '1',
  '300',
  true,
  null,
  [],
  [300],
  {},
  0,
  -1,
  0.5,
  1.0000001,
  31_536_001,
  2 ** 53,
  1e308,
];
const NO_OBJECT: readonly unknown[] = ['', 'a', '{}', 0, 1, true, false, null, [], [{}], {}, { extra: 1 }];
const WRONG: Readonly<Record<string, readonly unknown[]>> = {
  string: NO_STRING,
  array: NO_LIST,
  integer: NO_SECONDS,
  object: NO_OBJECT,
};

const UNKNOWN = [
  ...words`
    extra Path NAME value[] id created_at access_count version lease_ttl ttl admin role token password $ref $where
    toString valueOf length 0 n\u00e1me
  `,
  'path ',
  ' value',
  '',
  '\u0000',
];

const UNKNOWN_PARAMETERS = [
  'extra=1',
  'extra',
  '=1',
  '=',
  'Limit=1',
  'limit%20=1',
  'limit[]=1',
  'limit[0]=1',
  'limit.a=1',
  '__proto__=1',
  '__proto__[a]=1',
  'constructor=1',
  'constructor.prototype=1',
  'toString=1',
  '%00=1',
  'access_token=a',
  'method=DELETE',
  '_method=DELETE',
  'callback=a',
  'extra=1&extra=2',
  `${'a'.repeat(4000)}=1`,
];
const NO_SUCH_FIELD = /^body: has an unknown field; (?:no fields are allowed|the allowed fields are \w)/;
const NO_SUCH_PARAMETER =
  /^query: has an unknown parameter; (?:no parameters are allowed|the allowed parameters are \w)/;

/** A request may have no headers, parameters any names, and a rotation no grace time. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  headers: ['{}'],
  parameters: ['{}', '{"extra":1}'],
  grace_seconds: ['0'],
  // Null removes it.
  identity: ['null'],
};
const isAllowed = (field: string, value: unknown) => ALLOWED[field]?.includes(JSON.stringify(value)) === true;

const withBody = ROUTES.filter(({ body }) => body !== null);

test('every route with a body has a row here', () => {
  assert.deepEqual(withBody.map(label).sort(), Object.keys(GOOD).sort());
  for (const route of withBody)
    assert.deepEqual(Object.keys(propertiesOf(route)), Object.keys(GOOD[label(route)] ?? {}));
});

test('a field of the wrong type is 400 and named', () =>
  fixture.assertUnchangedBy(async () => {
    let index = 0;
    for (const route of withBody) {
      const good = GOOD[label(route)] ?? {};
      for (const [field, { type = '' }] of Object.entries(propertiesOf(route))) {
        const wrongs = WRONG[[type].flat()[0] ?? ''] ?? assert.fail(`${label(route)} ${field}: ${type}`);
        // Each field with a few values, and each value at many fields.
        for (const wrong of share(wrongs, index++, scaled(5, 1)).filter((one) => !isAllowed(field, one)))
          assertInvalid(await admin.call(route.method, targetOf(route), { ...good, [field]: wrong }), field);
      }
    }
  }));

test('an unknown field is 400, and its name is not repeated', () =>
  fixture.assertUnchangedBy(async () => {
    for (const [index, route] of withBody.entries()) {
      const good = GOOD[label(route)] ?? {};
      // Every route with a few names, and every name at a few routes.
      for (const field of share(UNKNOWN, index, 8).filter((name) => !(name in good))) {
        const answer = await admin.call(route.method, targetOf(route), { ...good, [field]: 'a' });
        assert.match(assertRejected(answer, 'INVALID_REQUEST'), NO_SUCH_FIELD, `${label(route)} ${field}`);
      }
    }
  }));

test('a body that is not an object is 400, including null', () =>
  fixture.assertUnchangedBy(async () => {
    for (const [index, route] of ROUTES.filter(({ method }) => method !== 'GET').entries()) {
      for (const body of share([[], [GOOD[label(route)] ?? {}], 'a', 1, true, null], index, 3)) {
        assertInvalid(await admin.call(route.method, fill(route, 'open/none', 'nobody'), body), 'body');
      }
    }
  }));

test('an unknown query parameter is 400, and its name is not repeated', () =>
  fixture.assertUnchangedBy(async () => {
    for (const [index, route] of ROUTES.entries()) {
      for (const query of share(UNKNOWN_PARAMETERS, index, 8)) {
        const target = `${targetOf(route)}?${queryOf(route)}${query}`;
        const answer = await admin.call(route.method, target, GOOD[label(route)]);
        assert.match(assertRejected(answer, 'INVALID_REQUEST'), NO_SUCH_PARAMETER, `${label(route)} ${query}`);
      }
    }
  }));

test('without a token every such request is 401 and unrecorded', () =>
  fixture.assertUnchangedBy(async () => {
    for (const route of ROUTES.filter(({ permission }) => permission !== null)) {
      const body = route.method === 'GET' ? undefined : { extra: 1 };
      assertRejected(await anonymous.call(route.method, `${targetOf(route)}?extra=1`, body), 'UNAUTHENTICATED');
    }
  }));

const adminRoutes = ROUTES.flatMap((route) =>
  route.permission === null || PERMISSIONS[route.permission].agents ? [] : [route],
);
test('an agent’s malformed request to an administrator route is 403 before it is validated', () =>
  fixture.assertUnchangedBy(
    async () => {
      for (const route of adminRoutes) {
        const body = route.body === null ? undefined : { extra: 1 };
        assertRejected(await fixture.agent.call(route.method, `${targetOf(route)}?extra=1`, body), 'ACCESS_DENIED');
      }
    },
    adminRoutes.map(({ permission }) => `${eventOf(permission)} denied`),
  ));

test('max_ttl must be a finite number in any notation', () =>
  fixture.assertUnchangedBy(async () => {
    for (const text of [
      '1e999',
      '-1e999',
      '1e-999',
      '0.1e1000',
      '-0',
      '31536001',
      `1${'0'.repeat(400)}`,
      '0x10',
      '+1',
      '01',
      '.5',
      '1.',
    ]) {
      const body = `{"name":"ttl","principal":"agent:a","resources":["a"],"actions":["list"],"max_ttl":${text}}`;
      assert.equal(await fixture.codeOf({ method: 'POST', target: '/api/v1/policies', body }), 'INVALID_REQUEST', text);
    }
  }));
