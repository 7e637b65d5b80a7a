// The client address that the audit log records behind a proxy. SOURCE: docs/decisions.md, "Agents and sessions".

import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { test } from 'node:test';
import { withScope } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

/** The address that the log records for a request with these values of X-Forwarded-For. */
const recordedFor = (flags: readonly string[], values: readonly string[]): Promise<(string | null)[]> =>
  withScope(async (scope) => {
    const { admin } = await startTestService(scope, flags);
    for (const value of values) await admin.call('GET', '/api/v1/credentials', undefined, { 'x-forwarded-for': value });
    const { data } = (await admin.get('/api/v1/audit?event_type=credential.list&order=asc')).body;
    return data.map(({ remote_addr }: { remote_addr: string | null }) => remote_addr);
  });

test('the address comes from X-Forwarded-For only behind a trusted proxy, and is the last one that is not a trusted proxy', async () => {
  const chains = [
    '203.0.113.9',
    '198.51.100.1, 203.0.113.9',
    '2001:db8::1',
    '203.0.113.9, 10.1.2.3',
    '::ffff:203.0.113.9',
  ];
  assert.deepEqual(
    await recordedFor(['--trusted-proxy', '192.0.2.1'], chains),
    chains.map(() => '127.0.0.1'),
  );
  assert.deepEqual(await recordedFor(['--trusted-proxy', '127.0.0.1,10.0.0.0/8'], chains), [
    '203.0.113.9',
    '203.0.113.9',
    '2001:db8::1',
    '203.0.113.9',
    '203.0.113.9',
  ]);
});

test('a malformed header is never recorded as an address, even behind a trusted proxy', async () => {
  const nonsense = [
    'unknown',
    '_hidden',
    'localhost',
    "'; DROP TABLE audit_entries; --",
    '<script>',
    'a'.repeat(4000),
    '1.2.3.4:80',
    ',,,',
    '[::1]',
  ];
  const recorded = await recordedFor(['--trusted-proxy', '127.0.0.1'], nonsense);
  assert.equal(recorded.length, nonsense.length);
  for (const [index, address] of recorded.entries())
    assert.notEqual(isIP(address ?? ''), 0, `${nonsense[index]}: ${address}`);
});
