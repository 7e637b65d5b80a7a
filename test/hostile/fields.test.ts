// Every body field and query parameter of the route table with invalid input. SOURCE: docs/decisions.md, "Requests".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { eventOf, PERMISSIONS } from '../../src/core/permissions.ts';
import type { Route } from '../../src/http/route.ts';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import { assertInvalid, assertRejected } from '../kit/responses.ts';
import { scaled } from '../kit/scale.ts';
import { addressOf, bodyOf, queryOf } from '../spec/requests.ts';
import { share, startFixture, words } from './fixture.ts';

const fixture = await startFixture({ after });
const { admin, anonymous } = fixture.service;
const label = ({ method, path }: Route) => `${method} ${path}`;
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

test('a field of the wrong type is 400 and named', () =>
  fixture.assertUnchangedBy(async () => {
    let index = 0;
    for (const route of withBody) {
      const good = bodyOf(route);
      for (const [field, { type = '' }] of Object.entries(propertiesOf(route))) {
        const wrongs = WRONG[[type].flat()[0] ?? ''] ?? assert.fail(`${label(route)} ${field}: ${type}`);
        // Each field with a few values, and each value at many fields.
        for (const wrong of share(wrongs, index++, scaled(5, 1)).filter((one) => !isAllowed(field, one)))
          assertInvalid(await admin.call(route.method, addressOf(route.path), { ...good, [field]: wrong }), field);
      }
    }
  }));

test('an unknown field is 400, and its name is not repeated', () =>
  fixture.assertUnchangedBy(async () => {
    for (const [index, route] of withBody.entries()) {
      const good = bodyOf(route);
      // Every route with a few names, and every name at a few routes.
      for (const field of share(UNKNOWN, index, 8).filter((name) => !(name in good))) {
        const answer = await admin.call(route.method, addressOf(route.path), { ...good, [field]: 'a' });
        assert.match(assertRejected(answer, 'INVALID_REQUEST'), NO_SUCH_FIELD, `${label(route)} ${field}`);
      }
    }
  }));

test('a body that is not an object is 400, including null', () =>
  fixture.assertUnchangedBy(async () => {
    for (const [index, route] of ROUTES.filter(({ method }) => method !== 'GET').entries()) {
      for (const body of share([[], [bodyOf(route)], 'a', 1, true, null], index, 3)) {
        assertInvalid(await admin.call(route.method, addressOf(route.path), body), 'body');
      }
    }
  }));

test('an unknown query parameter is 400, and its name is not repeated', () =>
  fixture.assertUnchangedBy(async () => {
    for (const [index, route] of ROUTES.entries()) {
      for (const query of share(UNKNOWN_PARAMETERS, index, 8)) {
        const target = `${addressOf(route.path)}?${queryOf(route)}${query}`;
        const answer = await admin.call(route.method, target, route.body === null ? undefined : bodyOf(route));
        assert.match(assertRejected(answer, 'INVALID_REQUEST'), NO_SUCH_PARAMETER, `${label(route)} ${query}`);
      }
    }
  }));

test('without a token every such request is 401 and unrecorded', () =>
  fixture.assertUnchangedBy(async () => {
    for (const route of ROUTES.filter(({ permission }) => permission !== null)) {
      const body = route.method === 'GET' ? undefined : { extra: 1 };
      assertRejected(await anonymous.call(route.method, `${addressOf(route.path)}?extra=1`, body), 'UNAUTHENTICATED');
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
        assertRejected(
          await fixture.agent.call(route.method, `${addressOf(route.path)}?extra=1`, body),
          'ACCESS_DENIED',
        );
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
