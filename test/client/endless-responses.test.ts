/** Lists are bounded: a malicious service could send more rows than memory holds. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Leasehold, ListAllOptions } from '../../src/client/leasehold.ts';
import { scaled } from '../kit/scale.ts';
import { setScene, throughProxy, withCode } from './fixture.ts';

const shared = await setScene({ after });

/** Full pages, without an end: the service's first row, again and again. */
async function answerForEver(total: number, rowsOnPage = 1000) {
  const row = { path: 'a', type: 't', description: '', created_at: 'x', updated_at: 'x', access_count: 1 };
  const body = JSON.stringify({ data: Array(rowsOnPage).fill(row), meta: { total, limit: 1000, offset: 0 } });
  let pages = 0;
  const endless: typeof fetch = async () => {
    pages += 1;
    return new Response(body);
  };
  return { fetch: endless, pages: () => pages };
}

async function countAll(vault: Leasehold, options: ListAllOptions = {}): Promise<number> {
  let rows = 0;
  for await (const _ of vault.credentials.listAll({}, options)) rows += 1;
  return rows;
}

test('a list without an end is rejected when it reaches the maximum length, whatever its total', async (t) => {
  const { asAdmin } = await throughProxy(t, shared);
  const { fetch, pages } = await answerForEver(0);
  await assert.rejects(countAll(asAdmin({ fetch }), { maxBytes: 1_000_000 }), {
    ...withCode('INVALID_RESPONSE', null),
    message: 'the list is longer than the limit of 1000000 bytes',
  });
  assert.ok(pages() < 15);
});

const MANY = scaled(3000, 1_000_000);

test(`an honest list of ${MANY} is read to its end, page by page`, async (t) => {
  const { asAdmin } = await throughProxy(t, shared);
  let pages = 0;
  const honest: typeof fetch = async (input) => {
    pages += 1;
    const offset = Number(new URL(String(input)).searchParams.get('offset'));
    const length = Math.min(1000, MANY - offset);
    const data = Array.from({ length }, (_, at) => ({ path: `many/${offset + at}` }));
    return Response.json({ data, meta: { total: MANY, limit: 1000, offset } });
  };
  let next = 0;
  for await (const { path } of asAdmin({ fetch: honest }).credentials.listAll()) {
    if (path !== `many/${next++}`) assert.fail(`${path} is out of order`);
  }
  // The last page is full, so that only the next one shows the end.
  assert.deepEqual([next, pages], [MANY, MANY / 1000 + 1]);
});

test('a page with more rows than requested is rejected', async (t) => {
  const { asAdmin, between } = await throughProxy(t, shared);
  const { fetch } = await answerForEver(1e6, 1001);
  await assert.rejects(countAll(asAdmin({ fetch })), { ...withCode('INVALID_RESPONSE', null), message: /more rows/ });
  await assert.rejects(asAdmin({ fetch }).credentials.list({ limit: 1000 }), withCode('INVALID_RESPONSE', null));
  for (const meta of [null, {}, { total: 'x', limit: 1, offset: 0 }]) {
    between.next({ status: 200, body: JSON.stringify({ data: [], meta }) });
    await assert.rejects(asAdmin().credentials.list({ limit: 1 }), withCode('INVALID_RESPONSE', null));
  }
});
