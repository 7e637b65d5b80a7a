// Every route and what it rejects: unknown and repeated parameters, unknown and missing fields, wrong types,
// other methods. SOURCE: docs/decisions.md, "Requests".

import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { after, suite, test } from 'node:test';
import { ROUTES } from '../../src/http/routes/table.ts';
import type { TestResponse } from '../kit/client.ts';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { assertInvalid, assertKeys, assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { addressOf, bodyOf, FIELDS, queryOf } from './requests.ts';

const service = await startTestService({ after });
const { admin, address } = service;
const WRONG: readonly unknown[] = [null, true, 5, { a: 1 }, ['x', 5]];

const addresses = ROUTES.flatMap((row) => [row.path, ...row.aliases].map((path) => ({ row, path })));

/** The service records in the background that a data key, which another test has replaced, is used no more. */
const isOfCaller = ({ event_type }: { readonly event_type: string }): boolean => event_type !== 'key.retire';

/** The parameters of a key slot may have any names. */
const isPlainObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

for (const { row, path } of addresses) {
  const { method, query, body } = row;
  suite(`${method} ${path}`, () => {
    const target = addressOf(path);
    const sent = method === 'GET' ? undefined : bodyOf(row);
    const parameters = Object.keys(query.properties);
    const fields = Object.keys(body?.properties ?? {});

    test(`${method} ${path} rejects unknown query parameters and lists the known ones`, async () => {
      const entries = await auditEntriesOf(service, async () => {
        for (const name of ['unknown', 'Limit', 'toString', '__proto__', '']) {
          const message = assertRejected(
            await admin.call(method, `${target}?${queryOf(row)}${name}=1`, sent),
            'INVALID_REQUEST',
          );
          assert.match(message, /^query: /);
          for (const parameter of parameters) assert.match(message, new RegExp(`\\b${parameter}\\b`));
        }
      });
      assert.deepEqual(entries.filter(isOfCaller), []);
    });

    if (parameters.length > 0) {
      test(`${method} ${path} rejects each query parameter given twice, naming it`, async () => {
        for (const name of parameters) {
          const twice = `${queryOf(row, name)}${name}=1&${name}=1`;
          assertInvalid(await admin.call(method, `${target}?${twice}`, sent), name);
        }
      });
    }

    if (method !== 'GET') {
      test(`${method} ${path} rejects unknown body fields and lists the known ones`, async () => {
        const entries = await auditEntriesOf(service, async () => {
          for (const name of ['unknown', 'Name', 'toString']) {
            const message = assertRejected(await admin.call(method, target, { ...sent, [name]: 1 }), 'INVALID_REQUEST');
            assert.match(message, /^body: /);
            for (const field of fields) assert.match(message, new RegExp(`\\b${field}\\b`));
          }
        });
        assert.deepEqual(entries.filter(isOfCaller), []);
      });
    }

    if (method !== 'GET') {
      test(`${method} ${path} rejects a body that is not an object`, async () => {
        for (const value of [null, [], 'text', 5, true]) {
          assertRejected(await admin.call(method, target, value), 'INVALID_REQUEST');
        }
      });
    }

    if (fields.length > 0) {
      test(`${method} ${path} rejects wrong types, naming the field`, async () => {
        for (const name of fields) {
          const isList = Array.isArray(FIELDS[name]);
          const isNumber = typeof FIELDS[name] === 'number';
          const isNullable = JSON.stringify(body?.properties[name]).includes('"type":["object","null"]');
          const wrong = [
            ...WRONG.filter(
              (value) => !(isNumber && value === 5) && !(name === 'parameters' && isPlainObject(value)),
            ).filter((value) => !(isNullable && value === null)),
            isList || isNumber ? 'text' : ['text'],
          ];
          for (const value of wrong) assertInvalid(await admin.call(method, target, { ...sent, [name]: value }), name);
        }
      });

      test(`${method} ${path} names a missing required field, also without a body`, async () => {
        for (const name of body?.['required'] ?? []) {
          const lacking = Object.entries(sent ?? {}).filter(([key]) => key !== name);
          assertInvalid(await admin.call(method, target, Object.fromEntries(lacking)), name);
        }
        // A body whose fields are all optional may be left out.
        if ((body?.['required'] ?? []).length > 0) assertRejected(await admin.call(method, target), 'INVALID_REQUEST');
      });
    }
  });
}

/** Whether the route matches the path, also where its parameter matches a fixed segment of the other route. */
function serves(pattern: string, path: string): boolean {
  const segments = pattern.split('/').map((segment) => (segment.startsWith('{') ? '[^/]+' : segment));
  return new RegExp(`^${segments.join('/')}$`).test(path);
}

const COMMON = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'];
// CONNECT asks for a tunnel and has no path: see test/hostile/targets.test.ts.
const UNCOMMON = METHODS.filter((method) => ![...COMMON, 'CONNECT'].includes(method));

const callRaw = (method: string, path: string) => {
  const auth = `Authorization: Bearer ${service.adminToken}`;
  const empty = ['Content-Type: application/json', 'Content-Length: 0'];
  return sendRaw(address, rawRequest([`${method} ${addressOf(path)} HTTP/1.1`, 'Host: localhost', auth, ...empty]));
};

for (const path of new Set(addresses.map((one) => one.path))) {
  const served = addresses.filter((one) => serves(one.path, path)).map(({ row }) => row.method as string);
  const allowed = [...new Set(served)].sort();
  test(`${path} is 405 with Allow for every method but ${allowed.join(' and ')}`, async () => {
    for (const method of COMMON.filter((name) => !allowed.includes(name))) {
      const { status, head } = await callRaw(method, path);
      assert.equal(status, 405, method);
      assert.deepEqual(/^allow: (.*)$/im.exec(head)?.[1]?.split(', ').sort(), allowed, method);
    }
  });
}

test('WebDAV and other unknown methods are 405 too', async () => {
  for (const path of ['/api/v1/credentials', '/api/v1/agents/{name}', '/api/v1/health']) {
    const answers = await Promise.all(
      UNCOMMON.map(async (method) => `${method} ${(await callRaw(method, path)).status}`),
    );
    assert.deepEqual(
      answers,
      UNCOMMON.map((method) => `${method} 405`),
      path,
    );
  }
});

test('the bodies of this file have only fields of the table', () => {
  const known = new Set(ROUTES.flatMap(({ body }) => Object.keys(body?.properties ?? {})));
  assertKeys(FIELDS, [...known].join(' '));
});

test('an error inside a field names its location, and no key of a map', async () => {
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
    [put({ targets: [{ ...target, ca_pem: 1 }], placement }), 'targets[0].ca_pem: must be a string or null'],
    [put({ targets: [target], placement: {} }), 'placement.kind: is required'],
    [put({ targets: 1, placement }), 'targets: must be an array of 1 to 16 targets'],
    [put({ targets: ['x'], placement }), 'targets[0]: must be an object'],
    [
      put({ targets: [target], placement: { ...placement, secret: 1 } }),
      'placement: has an unknown field; the allowed fields are kind, name, template, username',
    ],
    [use({ secret: 1 }), 'headers: must have strings as values'],
    [use({ 'secret name': 'x' }), 'headers: has an invalid name'],
    [
      use({ a: 'secret\n' }),
      'headers: must have values of at most 16384 Latin-1 characters without control characters',
    ],
  ];
  for (const [answer, message] of cases) assert.equal(assertRejected(await answer, 'INVALID_REQUEST'), message);
});
