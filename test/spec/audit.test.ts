// Reading the audit log. SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The audit log".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { USE_FIELDS } from '../../src/vault/audit/audit-entry.ts';
import { selectRows } from '../kit/direct-db.ts';
import { assertHeaders, assertInvalid, assertKeys, dataOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const AUDIT = '/api/v1/audit';
const ENTRY =
  'seq id timestamp event_type agent_name resource action result policy_name lease_id code reason request_id remote_addr hmac';
type Entry = Record<'timestamp' | 'resource' | 'agent_name' | 'action' | 'event_type' | 'result' | 'hmac', string> & {
  seq: number;
};

const service = await startTestService({ after });
const { admin } = service;
for (const path of ['prod/db/password', 'prod/api', 'dev/db', 'prod.db']) {
  await admin.post('/api/v1/credentials', { path, value: 'v' });
}
for (const name of ['ci', 'CI-2']) {
  const agent = await service.agent(name, { 'prod/*': ['retrieve', 'delete'] });
  for (const path of ['prod/db/password', 'prod/missing', 'dev/db']) await agent.get(`/api/v1/credentials/${path}`);
  await agent.delete('/api/v1/credentials/prod/missing');
}
// No request below is recorded, so the log does not grow.
const list = async (query: string): Promise<Entry[]> =>
  dataOf(await admin.get(`${AUDIT}?${query}`), 200, ENTRY, 'meta');
const all = await list('order=asc&limit=1000');
const seqs = (entries: readonly Entry[]) => entries.map(({ seq }) => seq);

/** Compares the entries that a filter should match, oldest first, with the response. */
async function assertFilter(query: string, isLeft: (entry: Entry) => boolean): Promise<void> {
  const expected = all.filter(isLeft);
  assert.deepEqual(await list(`${query}&order=asc`), expected, query);
  assert.deepEqual(seqs(await list(query)), seqs(expected).reverse(), query);
  const page = await admin.get(`${AUDIT}?${query}&limit=2&offset=1&order=asc`);
  assert.deepEqual(page.body, {
    data: expected.slice(1, 3),
    meta: { total: expected.length, limit: 2, offset: 1 },
  });
}

test('GET /audit returns entries and meta with total, limit and offset: newest first, by default the first 100', async () => {
  const answer = await admin.get(AUDIT);
  const entries = dataOf(answer, 200, ENTRY, 'meta');
  assertKeys(answer.body.meta, 'total limit offset');
  assert.deepEqual(answer.body.meta, { total: all.length, limit: 100, offset: 0 });
  assert.deepEqual(entries, [...all].reverse());
});

test('order=asc reverses the list, desc is the default, any other value is 400', async () => {
  assert.deepEqual(
    seqs(all),
    [...seqs(all)].sort((a, b) => a - b),
  );
  assert.deepEqual(await list('order=desc'), await list(''));
  for (const order of ['ASC', 'newest', '']) assertInvalid(await admin.get(`${AUDIT}?order=${order}`), 'order');
});

test('agent filters by agent name, including admin and service', async () => {
  for (const name of ['ci', 'CI-2', 'admin', 'service']) {
    await assertFilter(`agent=${name}`, ({ agent_name }) => agent_name === name);
  }
});

test('action, event_type and result match exactly', async () => {
  for (const field of ['action', 'event_type', 'result'] as const) {
    const values = new Set(all.map((entry) => entry[field]));
    assert.equal(values.size >= 3, true, field);
    for (const value of values) await assertFilter(`${field}=${value}`, (entry) => entry[field] === value);
  }
});

test('several filters must all match', async () => {
  await assertFilter(
    'agent=ci&action=retrieve&result=denied&resource=dev/*&event_type=credential.retrieve',
    ({ agent_name, event_type, result }) =>
      agent_name === 'ci' && event_type === 'credential.retrieve' && result === 'denied',
  );
});

const GLOBS: Readonly<Record<string, RegExp>> = {
  'prod/db/password': /^prod\/db\/password$/,
  'prod/*': /^prod\/.*$/,
  '*/db*': /^.*\/db.*$/,
  'prod?db*': /^prod.db.*$/,
  'prod/[ad]*': /^prod\/\[ad\].*$/,
  prod_db: /^prod_db$/,
};

test('resource is a glob: * matches any characters, ? matches one, everything else is literal', async () => {
  for (const [glob, expected] of Object.entries(GLOBS)) {
    await assertFilter(`resource=${encodeURIComponent(glob)}`, ({ resource }) => expected.test(resource));
  }
});

/** The instant in UTC, without a zone, and with an offset. */
function formsOf(at: Date): string[] {
  const iso = at.toISOString();
  const shifted = (minutes: number) => new Date(at.getTime() + minutes * 60_000).toISOString().slice(0, -1);
  return [iso, iso.slice(0, -1), `${shifted(-210)}-03:30`];
}

test('since and until are inclusive and accept Z, an offset, or neither (UTC)', async () => {
  const middle = all[Math.floor(all.length / 2)]?.timestamp ?? '';
  for (const form of formsOf(new Date(middle))) {
    const text = encodeURIComponent(form);
    await assertFilter(`since=${text}`, ({ timestamp }) => timestamp >= middle);
    await assertFilter(`until=${text}`, ({ timestamp }) => timestamp <= middle);
    await assertFilter(`since=${text}&until=${text}&action=*`, () => false);
    await assertFilter(`since=${text}&until=${text}`, ({ timestamp }) => timestamp === middle);
  }
});

test('limit and offset page through the log, and total counts the matches', async () => {
  const read: Entry[] = [];
  for (let offset = 0; offset < all.length; offset += 4) {
    const answer = await admin.get(`${AUDIT}?order=asc&limit=4&offset=${offset}`);
    assert.deepEqual(answer.body.meta, { total: all.length, limit: 4, offset });
    read.push(...answer.body.data);
  }
  assert.deepEqual(read, all);
  assert.deepEqual((await admin.get(`${AUDIT}?offset=${all.length}`)).body.data, []);
  for (const limit of ['0', '-1', '1.5', 'all', '']) assertInvalid(await admin.get(`${AUDIT}?limit=${limit}`), 'limit');
  for (const offset of ['-1', '1.5', '']) assertInvalid(await admin.get(`${AUDIT}?offset=${offset}`), 'offset');
});

test('GET /audit/export streams every entry as newline-delimited JSON, oldest first, with the head in a header', async () => {
  const answer = await admin.get(`${AUDIT}/export`);
  assert.equal(answer.status, 200);
  assertHeaders(answer);
  assert.equal(answer.headers.get('content-type'), 'application/x-ndjson');
  const lines = answer.text.split('\n');
  assert.equal(lines.pop(), '');
  const entries = lines.map((line) => JSON.parse(line));
  assert.deepEqual(
    entries.map(({ subject: _, state: __, ...entry }) => entry),
    all,
  );
  // Only the export shows which row an entry changed, and the row's new MAC.
  const stores = entries.filter(({ event_type, result }) => event_type === 'credential.store' && result === 'allowed');
  assert.ok(stores.length > 0);
  for (const entry of entries) assertKeys(entry, 'state' in entry ? `${ENTRY} subject state` : ENTRY);
  for (const { subject, state, resource } of stores) {
    assert.equal(subject, `credential:${resource}`);
    assert.equal(Buffer.from(state, 'base64').length, 32);
  }
  const [seq, hmac, mac] = answer.headers.get('leasehold-audit-head')?.split(' ') ?? [];
  assert.deepEqual([Number(seq), hmac], [all.length, all.at(-1)?.hmac]);
  assert.equal(Buffer.from(mac ?? '', 'base64').length, 32);
});

test('the log is the table audit_entries, ordered by seq, with the interface’s field names as columns', async () => {
  const rows = await selectRows(service.dataDir, 'SELECT * FROM audit_entries ORDER BY seq');
  // The columns of a use are null in other entries, which do not show them. The list shows no state.
  const shown = rows.map((row) =>
    Object.fromEntries(Object.entries(row).filter(([name]) => ENTRY.split(' ').includes(name))),
  );
  assert.deepEqual(JSON.parse(JSON.stringify(shown)), all);
  const others = Object.keys(rows[0] ?? {}).filter((name) => !ENTRY.split(' ').includes(name));
  assert.deepEqual(others, [...USE_FIELDS, 'subject', 'state']);
  assert.equal(
    rows.every((row) => USE_FIELDS.every((name) => row[name] === null)),
    true,
  );
});
