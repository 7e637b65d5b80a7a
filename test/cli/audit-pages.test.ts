/** Lists and the log, page by page: complete from an honest service, and bounded from a malicious one. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Leasehold } from '../../src/client/leasehold.ts';
import { newHome } from '../kit/command.ts';
import type { Scope } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

test('a log of several pages is complete and newest first while it grows', async (t) => {
  const service = await startTestService(t);
  const vault = new Leasehold({ address: service.address, token: service.adminToken });
  const write = (): Promise<unknown> => vault.credentials.readMetadata('no/such').catch(() => undefined);
  for (let entries = 0; entries < 2200; entries += 50) await Promise.all(Array.from({ length: 50 }, write));
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  for (const [limit, expected] of [
    [1000, 1000],
    [1001, 1001],
    [2000, 2000],
    [100_000, null],
  ] as const) {
    const line = ['audit', 'list', '--limit', String(limit), '--field', 'seq'];
    const listing = home.leasehold(line);
    const isListed = listing.then(() => true);
    while (!(await Promise.race([isListed, write()])));
    const { code, stdout, stderr } = await listing;
    assert.deepEqual([code, stderr], [0, '']);
    const numbers = stdout.trimEnd().split('\n').map(Number);
    const [newest = 0] = numbers;
    assert.ok(newest > 2200);
    assert.deepEqual(
      numbers,
      Array.from({ length: expected ?? newest }, (_, at) => newest - at),
    );
  }
});

type Row = Record<string, unknown>;
const words = ['id', 'timestamp', 'event_type', 'agent_name', 'resource', 'action', 'result', 'hmac'];
const nulls = ['policy_name', 'lease_id', 'reason', 'request_id', 'remote_addr'];
const others = Object.fromEntries([...words.map((word) => [word, 'x']), ...nulls.map((word) => [word, null])]);
const CREDENTIAL = { path: 'a', type: 't', description: '', created_at: 'x', updated_at: 'x', access_count: 1 };

/** Endless pages of the requested length. */
async function answerForEver(scope: Scope, toRow: (at: number, limit: number, offset: number) => Row) {
  let pages = 0;
  const server = createServer((asked, answer) => {
    pages += 1;
    const query = new URL(asked.url ?? '', 'http://x').searchParams;
    const [limit, offset] = [Number(query.get('limit')), Number(query.get('offset'))];
    const data = Array.from({ length: limit }, (_, at) => toRow(at, limit, offset));
    answer.end(JSON.stringify({ data, meta: { total: 5, limit, offset } }));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  scope.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { home: newHome(scope, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: 'lha_x' }), pages: () => pages };
}

const falling = (at: number, limit: number): Row => ({ ...others, seq: limit - at });
const ENDLESS: readonly [line: string, toRow: Parameters<typeof answerForEver>[1], says: RegExp, most: number][] = [
  ['list', () => CREDENTIAL, /the list does not end/, 101],
  ['audit list --limit 100', () => others, /seq must be integer/, 1],
  ['audit list --limit 100', () => ({ ...others, seq: 1 }), /not in order/, 1],
  ['audit list --limit 5000', falling, /the audit log has no last page/, 2],
  ['audit tail', () => ({ ...others, seq: 7 }), /not in order/, 1],
  ['audit tail', (at, limit) => (limit === 10 ? falling(at, limit) : { ...others, seq: at + 1 }), /not in order/, 3],
];

for (const [line, toRow, says, most] of ENDLESS) {
  test(`an endless list of pages is rejected: leasehold ${line}: ${says.source}`, { timeout: 240_000 }, async (t) => {
    const { home, pages } = await answerForEver(t, toRow);
    const { code, stderr } = await home.leasehold(line.split(' '));
    assert.match(stderr, says);
    assert.equal(code, 2);
    assert.ok(pages() <= most, String(pages()));
  });
}
