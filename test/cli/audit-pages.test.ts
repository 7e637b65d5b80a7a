/** Lists and the audit log, page by page: complete while it grows, and bounded from a malicious server. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { newHome } from '../kit/command.ts';
import type { Scope } from '../kit/directory.ts';

type Row = Record<string, unknown>;
const words = ['id', 'timestamp', 'event_type', 'agent_name', 'resource', 'action', 'result', 'hmac'];
const nulls = ['policy_name', 'lease_id', 'reason', 'request_id', 'remote_addr'];
const others = Object.fromEntries([...words.map((word) => [word, 'x']), ...nulls.map((word) => [word, null])]);

interface Query {
  readonly limit: number;
  readonly offset: number;
  readonly until: string | null;
}

/** A server whose lists are the pages that the function makes. */
async function answer(scope: Scope, toPage: (query: Query) => { data: readonly Row[]; total: number }) {
  let pages = 0;
  const server = createServer((asked, response) => {
    pages += 1;
    const query = new URL(asked.url ?? '', 'http://x').searchParams;
    const [limit, offset] = [Number(query.get('limit')), Number(query.get('offset'))];
    const { data, total } = toPage({ limit, offset, until: query.get('until') });
    response.end(JSON.stringify({ data, meta: { total, limit, offset } }));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  scope.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { home: newHome(scope, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: 'lha_x' }), pages: () => pages };
}

test('a log of several pages is complete and newest first while it grows', async (t) => {
  let newest = 2200;
  const toEntry = (seq: number): Row => ({ ...others, seq, timestamp: new Date(seq * 1000).toISOString() });
  const { home } = await answer(t, ({ limit, offset, until }) => {
    newest += 7;
    const last = until === null ? newest : Date.parse(until) / 1000;
    const length = Math.max(0, Math.min(limit, last - offset));
    return { total: last, data: Array.from({ length }, (_, at) => toEntry(last - offset - at)) };
  });
  for (const limit of [1001, 100_000]) {
    const { code, stdout, stderr } = await home.leasehold(`audit list --limit ${limit} --field seq`.split(' '));
    assert.deepEqual([code, stderr], [0, '']);
    const numbers = stdout.trimEnd().split('\n').map(Number);
    const [first = 0] = numbers;
    assert.ok(first > 2200);
    assert.deepEqual(
      numbers,
      Array.from({ length: Math.min(limit, first) }, (_, at) => first - at),
    );
  }
});

const falling = (at: number, limit: number): Row => ({ ...others, seq: limit - at });
const ENDLESS: readonly [line: string, toRow: (at: number, limit: number) => Row, says: RegExp, most: number][] = [
  ['audit list --limit 100', () => ({ ...others, seq: 1 }), /not in order/, 1],
  ['audit list --limit 5000', falling, /the audit log has no last page/, 2],
  ['audit tail', () => ({ ...others, seq: 7 }), /not in order/, 1],
  ['audit tail', (at, limit) => (limit === 10 ? falling(at, limit) : { ...others, seq: at + 1 }), /not in order/, 3],
];

test('an endless list of pages is rejected', async (t) => {
  for (const [line, toRow, says, most] of ENDLESS) {
    const { home, pages } = await answer(t, ({ limit }) => ({
      total: 5,
      data: Array.from({ length: limit }, (_, at) => toRow(at, limit)),
    }));
    const { code, stderr } = await home.leasehold(line.split(' '));
    assert.match(stderr, says);
    assert.deepEqual([code, pages() <= most], [2, true], `${line}: ${pages()} pages`);
  }
});
