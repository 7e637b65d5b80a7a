// The schemas of the OpenAPI document and core's parsers have the same grammars: the server accepts every text that
// the schema of a field accepts, and rejects every other, naming the field. SOURCE: docs/decisions.md, "Requests" and
// "Names and paths".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/schema';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import { createClient } from '../kit/client.ts';
import { scaled } from '../kit/scale.ts';
import { startTestService } from '../kit/service.ts';
import { toLocalhost } from '../kit/sign-in.ts';
import { addressOf, bodyOf, queryOf } from './requests.ts';

const service = await startTestService({ after });
const segments = (count: number) => Array.from({ length: count }, () => 's').join('/');

const TEXTS: readonly string[] = [
  '',
  ' ',
  'a',
  'A.b_c-1',
  '-a',
  '.a',
  'a b',
  'a\n',
  '\n',
  'é',
  'a\u0000',
  '\u202e',
  '😀',
  'admin',
  'Admin',
  'SERVICE',
  'anonymous',
  'admin2',
  'xadmin',
  'toString',
  '__proto__',
  'a/b',
  'a//b',
  '/a',
  'a/',
  '.',
  '..',
  '...',
  'a/..',
  'a/../b',
  './a',
  'a/.b',
  'a@b:c+d=e~f',
  'a%b',
  'a\\b',
  '*',
  'a*',
  'a/*',
  '/*',
  '*/*',
  'a/*/b',
  'a/**',
  'agent:a',
  'agent:',
  'agent:*',
  'agent:a*',
  'agent:a*b',
  'agent:**',
  'agent:admin',
  'agent:ADMIN',
  'agent:admin*',
  'agent:-',
  'Agent:a',
  `agent:${'a'.repeat(63)}`,
  `agent:${'a'.repeat(64)}`,
  ...[63, 64, 65, 128, 129].map((length) => 'a'.repeat(length)),
  `agent:${'a'.repeat(63)}*`,
  segments(32),
  segments(33),
  `${segments(32)}/*`,
  ...[511, 512, 513].map((length) => 'a/'.repeat(256).slice(1, length) + 'b'.repeat(1)),
  `${'x'.repeat(128)}/`.repeat(3) + 'y'.repeat(125),
  `${'x'.repeat(128)}/`.repeat(3) + 'y'.repeat(126),
  '😀'.repeat(1024),
  '😀'.repeat(1025),
  'd'.repeat(1024),
  'd'.repeat(1025),
  '0190a000-0000-8000-8000-000000000000',
  '0190A000-0000-8000-8000-000000000000',
  '0190a000000080008000000000000000',
  'QQ==',
  'QR==',
  'QUI=',
  'QUJ=',
  'QUJD',
  'QQ',
  'QQ=',
  'Q===',
  'QU-_',
  'QUJD\n',
  ' QUJD',
  `${'A'.repeat(43)}=`,
  `${'A'.repeat(42)}B=`,
  '2026-01-31',
  '2026-13-01',
  '2026-00-10',
  '2026-01-32',
  '2026-01-31T09:30',
  '2026-01-31T24:00',
  '2026-01-31T09:30:60Z',
  '2026-01-31T09:30:00.250+02:00',
  '2026-01-31T09:30:00+2400',
  '2026-01-31T09:30:00.1234567890Z',
  '2026-01-31 09:30:00Z',
  '0',
  '1',
  '1000',
  '01',
  '-1',
  '1.0',
  '1e3',
  '0x1',
  '31536000',
  '31536001',
  '999999999999999',
  '1000000000000000',
  'active',
  'Active',
  'asc',
  'desc',
  'metadata',
  'retrieve',
  '💥',
];

const seen = new Set<string>();
/**
 * All texts for the first field with a schema. Another field with the same schema gets one that it accepts and one that
 * it rejects, because only the call of the parser can be missing. `npm test` takes every ninth text.
 */
function textsFor(schema: TSchema, validator: { Check(value: unknown): boolean }): readonly string[] {
  const key = JSON.stringify({ ...schema, description: '' });
  const step = scaled(9, 1);
  if (!seen.has(key) && seen.add(key)) return TEXTS.filter((_, index) => index % step === seen.size % step);
  const [rejected, accepted] = [false, true].map((isGood) => TEXTS.filter((text) => validator.Check(text) === isGood));
  return [...(rejected ?? []).slice(1, 2), ...(accepted ?? []).slice(0, 1)];
}

/**
 * Rules that JSON Schema cannot express: points off the curve or of small order, the grammar of URLs, the size of the
 * log, what a kind of key slot takes, and whether the vault is locked.
 */
const BEYOND_SCHEMA =
  /^(?:public_key: is not a usable|url: must|(?:from|to): must not be greater|key: is not allowed|step: must be longer|after: must be the next|No key slot|The vault is not locked)/;

/** Asserts that the server rejects the field exactly where its schema does. */
async function assertAgrees(
  field: string,
  accepts: boolean,
  text: string,
  call: () => Promise<{ status: number; body: unknown }>,
) {
  const { status, body } = await call();
  const message = (body as { error?: { message: string } } | undefined)?.error?.message ?? '';
  if (BEYOND_SCHEMA.test(message)) return;
  const isNamed = status === 400 && new RegExp(`^${field}(?:\\[0\\])?: `).test(message);
  assert.equal(isNamed, !accepts, `${field}: ${JSON.stringify(text.slice(0, 80))}: ${status} ${message}`);
}

/** Passkeys work at this address. */
const admin = createClient(toLocalhost(service.address), service.adminToken);
for (const row of ROUTES) {
  const { method, path, query, body } = row;
  const target = addressOf(path);
  for (const [field, schema] of Object.entries(body?.properties ?? {})) {
    if (field === 'max_ttl' || field === 'value' || field === 'action') continue;
    test(`${method} ${path}: the server accepts the body's ${field} exactly where its schema does`, async () => {
      const validator = Compile(schema);
      const texts = textsFor(schema, validator);
      const isArray = 'items' in schema;
      for (const text of texts) {
        const value = isArray ? [text] : text;
        // A name in the body must equal the one in the path.
        if (path.includes('{name}') && field === 'name' && validator.Check(value)) continue;
        await assertAgrees(field, validator.Check(value), text, () =>
          admin.call(method, target, { ...bodyOf(row), [field]: value }),
        );
      }
    });
  }
  for (const [field, schema] of Object.entries(query.properties)) {
    test(`${method} ${path}: the server accepts the parameter ${field} exactly where its schema does`, async () => {
      const validator = Compile(schema);
      const texts = textsFor(schema, validator);
      const isWhole = 'type' in schema && schema.type === 'integer';
      for (const text of texts.filter((one) => encodeURIComponent(one).length < 4096)) {
        const accepts = validator.Check(isWhole && /^\d+$/.test(text) ? Number(text) : text);
        await assertAgrees(field, accepts, text, () =>
          admin.call(method, `${target}?${queryOf(row, field)}${field}=${encodeURIComponent(text)}`),
        );
      }
    });
  }
}

test('an error for a schema violation names the rule', async () => {
  const policy = { name: 'p', principal: 'agent:a', resources: ['a'], actions: ['retrieve'] };
  const rows: readonly (readonly [fields: object, message: string])[] = [
    [{ resources: 'a' }, 'resources: must be an array of 1 to 256 patterns'],
    [{ resources: [] }, 'resources: must be an array of 1 to 256 patterns'],
    [{ resources: ['a', 'b', 5] }, 'resources[2]: must be a string'],
    [{ resources: ['a', 'b', 'c*'] }, 'resources[2]: * is allowed only as the whole pattern, or at the end after /'],
    [{ actions: [] }, 'actions: must be an array of 1 or more actions'],
    [{ actions: ['list', 'read'] }, 'actions[1]: must be one of retrieve, use, list, store, delete'],
    [{ max_ttl: '60' }, 'max_ttl: must be a whole number of seconds, 1 to 31536000'],
    [{ max_ttl: 1.5 }, 'max_ttl: must be a whole number of seconds, 1 to 31536000'],
    [{ max_ttl: 0 }, 'max_ttl: must be a whole number of seconds, 1 to 31536000'],
    [{ principal: null }, 'principal: must be a string'],
  ];
  for (const [fields, message] of rows) {
    const { status, body } = await admin.post('/api/v1/policies', { ...policy, ...fields });
    assert.deepEqual([status, body.error.message], [400, message]);
  }
  const neither = await admin.post('/api/v1/leases/revoke', {});
  assert.deepEqual([neither.status, neither.body.error.message], [400, 'agent: is required, or path, or both']);
  const queries: readonly (readonly [query: string, message: string])[] = [
    ['audit?limit=0', 'limit: must be a whole number, 1 to 999999999999999'],
    ['audit?limit=x', 'limit: must be a whole number, 1 to 999999999999999'],
    ['audit?limit=1&limit=2', 'limit: must be given once'],
    ['audit?order=up', 'order: must be one of asc, desc'],
    ['leases?status=gone', 'status: must be one of active, expired, revoked'],
    ['credentials/a?ttl=0', 'ttl: must be a whole number of seconds, 1 to 31536000'],
  ];
  for (const [query, message] of queries) {
    const { status, body } = await admin.get(`/api/v1/${query}`);
    assert.deepEqual([status, body.error.message], [400, message]);
  }
});
