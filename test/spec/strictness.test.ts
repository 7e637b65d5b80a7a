// Every route rejects repeated parameters, missing fields and other methods. test/hostile/fields.test.ts has unknown
// fields and wrong types. SOURCE: docs/decisions.md, "Requests".

import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { after, test } from 'node:test';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import type { TestResponse } from '../kit/client.ts';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { assertInvalid, assertKeys, assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { addressOf, bodyOf, FIELDS, queryOf } from './requests.ts';

const service = await startTestService({ after });
const { admin, address } = service;

const addresses = ROUTES.flatMap((row) => [row.path, ...row.aliases].map((path) => ({ row, path })));

test('a query parameter that is given twice, or a missing field, is 400 and named, and nothing is recorded', async () => {
  const entries = await auditEntriesOf(service, async () => {
    for (const row of ROUTES) {
      const { method, path, query, body } = row;
      const target = addressOf(path);
      const sent = method === 'GET' ? undefined : bodyOf(row);
      for (const name of Object.keys(query.properties)) {
        const twice = `${queryOf(row, name)}${name}=1&${name}=1`;
        assertInvalid(await admin.call(method, `${target}?${twice}`, sent), name);
      }
      const required: readonly string[] = body?.['required'] ?? [];
      for (const name of required) {
        const lacking = Object.entries(sent ?? {}).filter(([key]) => key !== name);
        assertInvalid(await admin.call(method, target, Object.fromEntries(lacking)), name);
      }
      // A body whose fields are all optional may be left out.
      if (required.length > 0) assertRejected(await admin.call(method, target), 'INVALID_REQUEST');
    }
  });
  assert.deepEqual(entries, []);
});

test('an unknown parameter or field is rejected with a list of those that are allowed', async () => {
  for (const row of ROUTES) {
    const { method, path, query, body } = row;
    const sent = method === 'GET' ? undefined : bodyOf(row);
    const ofQuery = await admin.call(method, `${addressOf(path)}?${queryOf(row)}unknown=1`, sent);
    const message = assertRejected(ofQuery, 'INVALID_REQUEST');
    assert.match(message, /^query: /);
    for (const name of Object.keys(query.properties)) assert.match(message, new RegExp(`\\b${name}\\b`));
    if (method === 'GET') continue;
    const ofBody = assertRejected(
      await admin.call(method, addressOf(path), { ...sent, unknown: 1 }),
      'INVALID_REQUEST',
    );
    assert.match(ofBody, /^body: /);
    for (const name of Object.keys(body?.properties ?? {})) assert.match(ofBody, new RegExp(`\\b${name}\\b`));
  }
});

/** Whether the route matches the path, also where its parameter matches a fixed segment of the other route. */
function serves(pattern: string, path: string): boolean {
  const segments = pattern.split('/').map((segment) => (segment.startsWith('{') ? '[^/]+' : segment));
  return new RegExp(`^${segments.join('/')}$`).test(path);
}

const COMMON = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'];
// CONNECT asks for a tunnel and has no path: see test/hostile/targets.test.ts.
const UNCOMMON = METHODS.filter((method) => ![...COMMON, 'CONNECT'].includes(method));

test('every other method is 405 with Allow, and those of WebDAV too', async () => {
  const paths = [...new Set(addresses.map((one) => one.path))];
  const auth = `Authorization: Bearer ${service.adminToken}`;
  const empty = ['Content-Type: application/json', 'Content-Length: 0'];
  for (const [index, path] of paths.entries()) {
    const served = addresses.filter((one) => serves(one.path, path)).map(({ row }) => row.method as string);
    const allowed = [...new Set(served)].sort();
    const uncommon = UNCOMMON.filter((_, at) => at % paths.length === index);
    for (const method of [...COMMON, ...uncommon].filter((name) => !allowed.includes(name))) {
      const head = [`${method} ${addressOf(path)} HTTP/1.1`, 'Host: localhost', auth, ...empty];
      const answer = await sendRaw(address, rawRequest(head));
      assert.equal(answer.status, 405, `${method} ${path}`);
      const told = /^allow: (.*)$/im.exec(answer.head)?.[1]?.split(', ').sort();
      assert.deepEqual(told, allowed, `${method} ${path}`);
    }
  }
});

test('the bodies of this file have only fields of the table', () => {
  const known = new Set(ROUTES.flatMap(({ body }) => Object.keys(body?.properties ?? {})));
  assertKeys(FIELDS, [...known].join(' '));
});

test('an error names the location of the field, and no key of a map', async () => {
  const put = (body: object) => admin.put('/api/v1/targets/some/path', body);
  const use = (headers: object) =>
    admin.post('/api/v1/use', { path: 'some/path', method: 'GET', url: 'https://api.example.com/', headers });
  const target = { origin: 'https://api.example.com' };
  const placement = { kind: 'bearer' };
  const cases: readonly (readonly [answer: Promise<TestResponse>, message: string])[] = [
    [put({ targets: [target, {}], placement }), 'targets[1].origin: is required'],
    [
      put({ targets: [{ ...target, paths: 'x' }], placement }),
      'targets[0].paths: must be an array of 1 to 64 patterns',
    ],
    [put({ targets: [{ ...target, ca_pem: 1 }], placement }), 'targets[0].ca_pem: must be a string, or null'],
    [put({ targets: [target], placement: {} }), 'placement.kind: is required'],
    [put({ targets: 1, placement }), 'targets: must be an array of 1 to 16 targets'],
    [put({ targets: [], placement }), 'targets: must be an array of 1 to 16 targets'],
    [
      put({ targets: ['x'], placement }),
      'targets[0]: must be an object with origin, and optionally paths, methods, allow_networks, ca_pem',
    ],
    [
      put({ targets: [target], placement: { ...placement, secret: 1 } }),
      'placement: has an unknown field; the allowed fields are kind',
    ],
    [use({ secret: 1 }), 'headers: must have strings as values'],
    [use({ 'secret name': 'x' }), 'headers: has an invalid name'],
    [
      use({ a: 'secret\n' }),
      'headers: must have values of at most 16384 Latin-1 characters without control characters',
    ],
    [
      admin.put('/api/v1/operators/some', { roles: ['viewer'], identity: false }),
      'identity: must be an object with optional fields: subject, email, or null',
    ],
    [admin.get('/api/v1/audit/entries/007/proof'), 'seq: must be a whole number, 1 to 999999999999999'],
  ];
  for (const [answer, message] of cases) assert.equal(assertRejected(await answer, 'INVALID_REQUEST'), message);
});
