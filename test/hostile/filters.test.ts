// Filters and pages: no input reaches SQL as text, matches too much, or costs too much.
// SOURCE: docs/decisions.md, "The audit log" and "Requests"; SECURITY.md, P8.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertInvalid } from '../kit/responses.ts';
import { scaled } from '../kit/scale.ts';
import { share, startFixture, words } from './fixture.ts';

const fixture = await startFixture({ after });
const { admin } = fixture.service;
const LONG = [...Array<string>(3).fill('a'.repeat(128)), 'a'.repeat(125)].join('/');
const BOMBED = 50;

// Rows that no filter may match: denials of an agent on a path of maximal length.
const denials = Array.from({ length: BOMBED }, () => fixture.agent.get(`/api/v1/credentials/${LONG}`));
for (const { status } of await Promise.all(denials)) assert.equal(status, 403);

/** The number of rows that the query matches; 0 for an `INVALID_REQUEST` that names the parameter. */
async function found(address: string, name: string, value: string): Promise<number | 'refused'> {
  const answer = await fixture.ask({ target: `${address}?${name}=${encodeURIComponent(value)}&limit=1` });
  if (answer.status === 400) {
    assertInvalid(answer, name);
    return 'refused';
  }
  assert.equal(answer.status, 200, `${name}=${value} ${answer.text}`);
  return answer.body.meta.total;
}

const INJECTIONS = [
  ...words`
    ' '' " \\ ; -- /* % _ %% [ [a-z] [^x] {a,b} (a|b) .* ^ $ admin'-- NULL null undefined NaN true 0 {"$ne":1} $(id)
    {{1+1}} %00 \u00e9 \u{1f511} \u202e ALLOWED Allowed
  `,
  '`',
  "\\'",
  "' OR '1'='1",
  "' OR 1=1 --",
  "x' UNION SELECT value FROM credentials --",
  "'; DROP TABLE audit_entries; --",
  '" OR ""="',
  '1 OR 1=1',
  '[object Object]',
  '\u0000',
  'allowed\u0000',
  '\ufeff',
  ' allowed',
  'allowed ',
  'allowe_',
  'allow%',
  'allo[w]ed',
  '*',
  '?',
  'a*',
  '../..',
  'a'.repeat(640),
];

const FILTERS: readonly (readonly [address: string, name: string])[] = [
  ...['agent', 'action', 'event_type', 'result'].map((name) => ['/api/v1/audit', name] as const),
  ...['agent', 'path', 'status'].map((name) => ['/api/v1/leases', name] as const),
  ['/api/v1/credentials', 'type'],
];

test('a filter matches exactly, and an injection matches nothing', async () => {
  for (const [index, [address, name]] of FILTERS.entries()) {
    for (const value of share(INJECTIONS, index, scaled(4, 1))) {
      const count = await found(address, name, value);
      assert.equal(count === 0 || count === 'refused', true, `${address}?${name}=${value}: ${count}`);
    }
  }
});

test('only * and ? are special in the resource filter', async () => {
  const isSpecial = (value: string) => /[*?]/.test(value);
  for (const value of INJECTIONS.filter((text) => !isSpecial(text))) {
    const count = await found('/api/v1/audit', 'resource', value);
    assert.equal(count === 0 || count === 'refused', true, `${value}: ${count}`);
  }
  const all = await found('/api/v1/audit', 'resource', '*');
  assert.equal(all === 'refused' ? 0 : all >= BOMBED, true, `${all}`);
  assert.equal(await found('/api/v1/audit', 'resource', LONG), BOMBED);
  assert.equal(await found('/api/v1/audit', 'resource', LONG.replaceAll('a', '?')), BOMBED);
  assert.equal(await found('/api/v1/audit', 'resource', `${LONG}?`), 0);
  assert.equal(await found('/api/v1/audit', 'resource', 'open_stored'), 0);
  assert.equal(await found('/api/v1/audit', 'resource', 'open?stored'), 1);
});

test('matching a glob costs at most its length times the text’s length', async () => {
  const bombs = [
    '*a'.repeat(319).concat('*b'),
    '*'.repeat(639).concat('b'),
    `${'a*'.repeat(319)}b`,
    '?*'.repeat(319).concat('b'),
    '*?'.repeat(320),
    `${'*a?'.repeat(213)}b`,
    '*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'.repeat(12),
  ];
  for (const bomb of bombs) {
    assert.equal(typeof (await found('/api/v1/audit', 'resource', bomb)), 'number');
  }
});

const PAGED = [
  '/api/v1/credentials',
  '/api/v1/policies',
  '/api/v1/agents',
  '/api/v1/operators',
  '/api/v1/leases',
  '/api/v1/approvals',
  '/api/v1/audit',
];
const NO_NUMBERS = [
  ...words`
    -1 +1 1.0 1.5 1e3 0x10 0b1 1_000 1,000 01x NaN Infinity null 9999999999999999 99999999999999999999999999 \u0661
    \uff11 1;2 1' [1]
  `,
  '',
  ' ',
  ' 1',
  '1 ',
  '1\u0000',
];

test('limit and offset must be integers in plain digits, of any size', () =>
  fixture.assertUnchangedBy(
    async () => {
      for (const [index, address] of PAGED.entries()) {
        for (const name of ['limit', 'offset']) {
          for (const value of share(NO_NUMBERS, index, 4)) {
            assertInvalid(await admin.get(`${address}?${name}=${encodeURIComponent(value)}`), name);
          }
        }
        assertInvalid(await admin.get(`${address}?limit=0`), 'limit');
        for (const huge of ['1001', '999999999999999']) {
          const { meta } = (await admin.get(`${address}?limit=${huge}&offset=0`)).body;
          assert.deepEqual([meta.limit, meta.offset], [1000, 0], huge);
          const beyond = await admin.get(`${address}?limit=${huge}&offset=999999999999999`);
          assert.deepEqual([beyond.body.data, beyond.body.meta.limit], [[], 1000], huge);
        }
      }
    },
    // Listing credentials is recorded: two pages per number.
    Array<string>(4).fill('credential.list allowed'),
  ));

test('times must be ISO 8601', () =>
  fixture.assertUnchangedBy(async () => {
    const noTimes = [
      ...words`
        now 0 1700000000 1700000000000 2026 2026-1-1 2026-13-01 2026-02-30 2026-00-10 26-01-01 2026-01-01T
        2026-01-01T24:00:00Z 2026-01-01T23:60Z 2026-01-01T23:59:60Z 2026-01-01T10Z 2026-01-01T10:00:00.Z
        2026-01-01T10:00:00.1234567890Z 2026-01-01T10:00:00z 2026-01-01T10:00:00+24:00 2026-01-01T10:00:00+1
        2026-01-01T10:00:00Z+01:00 +002026-01-01 -000001-01-01 2026-W01-1 2026-001 2026-01-01'
        \u0662\u0660\u0662\u0666-01-01
      `,
      '',
      '2026-01-01 10:00',
      'Thu, 01 Jan 2026 00:00:00 GMT',
      '2026-01-01T10:00:00Z ',
      ' 2026-01-01',
      '2026-01-01\u0000',
    ];
    for (const name of ['since', 'until']) {
      for (const value of noTimes) {
        assertInvalid(await admin.get(`/api/v1/audit?${name}=${encodeURIComponent(value)}`), name);
      }
    }
  }));

test('the first and last representable times are accepted', async () => {
  const total = async (query: string): Promise<number> => (await admin.get(`/api/v1/audit?${query}`)).body.meta.total;
  const all = await total('');
  const [first, last] = [encodeURIComponent('0001-01-01T00:00:00Z'), encodeURIComponent('9999-12-31T23:59:59.999Z')];
  assert.equal(await total(`since=${first}`), all);
  assert.equal(await total(`until=${last}`), all);
  assert.equal(await total(`since=${first}&until=${last}`), all);
  assert.equal(await total(`until=${first}`), 0);
  assert.equal(await total(`since=${last}`), 0);
});

test('enumerated filter values must match exactly', () =>
  fixture.assertUnchangedBy(async () => {
    for (const word of ['', 'ASC', 'asc ', 'random', 'desc,asc', 'desc; DROP TABLE leases', 'asc\u0000']) {
      assertInvalid(await admin.get(`/api/v1/audit?order=${encodeURIComponent(word)}`), 'order');
    }
    for (const word of ['', 'Metadata', 'value', 'metadata,value']) {
      assertInvalid(await admin.get(`/api/v1/credentials/open/stored?view=${encodeURIComponent(word)}`), 'view');
    }
    for (const name of ['version', 'ttl']) {
      for (const value of [...NO_NUMBERS, '0', '00']) {
        const target = `/api/v1/credentials/open/stored?${name}=${encodeURIComponent(value)}`;
        assertInvalid(await admin.get(target), name);
      }
    }
  }));
