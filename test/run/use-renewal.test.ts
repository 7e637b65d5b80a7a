// Renewals of the use leases of a program that runs.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { LeaseholdError } from '../../src/client/errors.ts';
import { Secret } from '../../src/core/credential.ts';
import { parseBindings } from '../../src/run/env-bindings.ts';
import { run } from '../../src/run/run.ts';
import { parseUses } from '../../src/run/use-bindings.ts';
import type { UseLeaseClient } from '../../src/run/use-leases.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';

/** Use leases of 200 ms. The one on `bad` is renewed once. */
function openBook() {
  const renewals = new Map<string, number>();
  const revoked: string[] = [];
  const times = async () => ({ issued_at: new Date(0).toISOString(), expires_at: new Date(200).toISOString() });
  const client: UseLeaseClient = {
    issueUse: async (path) => ({ lease_id: path, token: new Secret('lhu_token'), base_url: 'http://x', env: {} }),
    baseUrl: (path) => `http://127.0.0.1:1/use/${path}/-`,
    retrieve: () => assert.fail(),
    read: times,
    renew: async (leaseId) => {
      const renewed = (renewals.get(leaseId) ?? 0) + 1;
      renewals.set(leaseId, renewed);
      if (leaseId === 'bad' && renewed > 1) throw new LeaseholdError('ACCESS_DENIED', 'Access denied', { status: 403 });
      return times();
    },
    revoke: async (leaseId) => void revoked.push(leaseId),
  };
  return { client, renewals, revoked };
}

test('use leases are renewed while the program runs, a rejection is reported, and a fixed time is not exceeded', async (t) => {
  const { client, renewals, revoked } = openBook();
  const end = join(temporaryDirectory(t), 'end');
  const said: string[] = [];
  const start = async (uses: readonly string[], ttlSeconds: number | null) =>
    run(
      {
        ...(await parseBindings({ mapping: [], envFiles: [], env: [] })),
        uses: parseUses(uses, '--use'),
        command: ['sh', '-c', 'while [ ! -e "$0" ]; do sleep 0.05; done', end],
        keep: [],
        hasFiles: false,
        isMasked: true,
        ttlSeconds,
      },
      client,
      {
        streams: { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() },
        environment: { PATH: process.env['PATH'] },
        umask: null,
        ignored: [],
        say: (line) => void said.push(line),
      },
    );
  const running = [start(['A=good', 'B=bad'], null), start(['C=fixed'], 1)];
  await until(() => (renewals.get('good') ?? 0) >= 3 && said.length > 0);
  writeFileSync(end, '');
  assert.deepEqual(await Promise.all(running), [{ code: 0 }, { code: 0 }]);
  assert.deepEqual(said, ['bad: the use lease was not renewed: Access denied']);
  assert.deepEqual([renewals.get('bad'), renewals.get('fixed')], [2, undefined]);
  assert.deepEqual(revoked.toSorted(), ['bad', 'fixed', 'good']);
});
