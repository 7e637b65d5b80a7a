// Leases through the narrow interface that the client library satisfies: all or nothing, once each, with bounded
// concurrency, and revoked.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { LeaseholdError } from '../../src/client/errors.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import {
  acquireLeases,
  type EnvBinding,
  LeaseAcquisitionError,
  type LeaseClient,
  releaseLeases,
} from '../../src/run/leases.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';

const want = (name: string, path: string, version: number | null = null): EnvBinding => ({
  name,
  path: path as CredentialPath,
  version,
});

interface Book extends LeaseClient {
  readonly lent: string[];
  readonly revoked: string[];
  readonly most: { atOnce: number };
}

/** A lease client with delays, which rejects certain paths. */
function openBook(refusals: Readonly<Record<string, string>> = {}, onLent: () => void = () => undefined): Book {
  const [lent, revoked, most]: [string[], string[], { atOnce: number }] = [[], [], { atOnce: 0 }];
  let atOnce = 0;
  return {
    lent,
    revoked,
    most,
    async retrieve(path, { version, signal }) {
      most.atOnce = Math.max(most.atOnce, ++atOnce);
      await sleep(5, null, { signal }).finally(() => atOnce--);
      const code = refusals[path];
      if (code !== undefined) throw new LeaseholdError(code, `refused: ${code}`, { status: 400 });
      const lease_id = `${path}#${version ?? ''}`;
      lent.push(lease_id);
      onLent();
      return { lease_id, value: new Secret(`value of ${lease_id}`) };
    },
    async revoke(leaseId, { signal }) {
      if (leaseId.startsWith('stuck')) await sleep(60_000, null, { signal });
      if (leaseId.startsWith('ended')) throw new LeaseholdError('LEASE_ENDED', 'over', { status: 409 });
      revoked.push(leaseId);
    },
  };
}

const options = (signal = new AbortController().signal) => ({ ttlSeconds: null, signal });

test('each version of each path is leased once, eight at a time, whatever the names', async () => {
  const book = openBook();
  const many = Array.from({ length: 30 }, (_, at) => want(`V${at}`, `p${at % 20}`, at < 20 ? null : 2));
  const { values, leaseIds } = await acquireLeases(book, [...many, want('AGAIN', 'p0')], options());
  assert.equal(values.size, 31);
  assert.equal(values.get('AGAIN')?.reveal(), 'value of p0#');
  assert.equal(values.get('V20')?.reveal(), 'value of p0#2');
  assert.equal(new Set(leaseIds).size, 30);
  assert.equal(book.lent.length, 30);
  assert.equal(book.most.atOnce, 8);
});

test('if paths are rejected all rejections are reported, in order, and the other leases are revoked', async () => {
  const book = openBook({ b: 'ACCESS_DENIED', d: 'NOT_FOUND' });
  const wanted = ['a', 'b', 'c', 'd'].map((path) => want(path.toUpperCase(), path));
  await assert.rejects(acquireLeases(book, wanted, options()), (error) => {
    assert.equal(error instanceof LeaseAcquisitionError, true);
    assert.deepEqual(
      (error as LeaseAcquisitionError).failures.map(({ wanted }) => wanted.name),
      ['B', 'D'],
    );
    return true;
  });
  assert.deepEqual(book.revoked.toSorted(), ['a#', 'c#']);
});

test('an unreachable server is not called for the rest', async () => {
  const book = openBook({ p0: 'UNREACHABLE' });
  const wanted = Array.from({ length: 40 }, (_, at) => want(`V${at}`, `p${at}`));
  await assert.rejects(acquireLeases(book, wanted, options()), LeaseAcquisitionError);
  assert.equal(book.lent.length < 10, true);
});

test('an interrupt revokes the leases issued so far', async () => {
  const interruption = new AbortController();
  const book = openBook({}, () => interruption.abort());
  const wanted = Array.from({ length: 40 }, (_, at) => want(`V${at}`, `p${at}`));
  await assert.rejects(acquireLeases(book, wanted, options(interruption.signal)), { name: 'AbortError' });
  assert.deepEqual(book.revoked.toSorted(), book.lent.toSorted());
  assert.equal(book.lent.length <= 8, true);
});

test('leases that have ended are not a failure, and those that cannot be revoked delay the exit by 5 seconds at most', async () => {
  const book = openBook();
  assert.equal(await releaseLeases(book, ['a', 'ended']), null);
  assert.equal(
    await releaseLeases(book, ['b', 'stuck1', 'stuck2']),
    '2 of 3 leases were not revoked and will expire: the server did not answer in time',
  );
  assert.deepEqual(book.revoked, ['a', 'b']);
});

test('requests in flight at an interrupt or a rejection are awaited and their leases revoked', async () => {
  const wanted = Array.from({ length: 40 }, (_, at) => want(`V${at}`, `p${at}`));
  for (const failing of [null, 'p3']) {
    const book = openBook();
    const interruption = new AbortController();
    const { promise: answer, resolve: letGo } = Promise.withResolvers<void>();
    let asked = 0;
    // Leases are issued after the end of the call, as by a server whose response is in flight.
    const slow: LeaseClient = {
      ...book,
      async retrieve(path) {
        if (++asked === 8) {
          setImmediate(letGo);
          if (failing === null) interruption.abort();
        }
        if (path === failing) throw new LeaseholdError('INTERNAL', 'refused', { status: 503 });
        await answer;
        book.lent.push(path);
        return { lease_id: path, value: new Secret('x') };
      },
    };
    const error = failing === null ? { name: 'AbortError' } : LeaseAcquisitionError;
    await assert.rejects(acquireLeases(slow, wanted, options(interruption.signal)), error);
    assert.equal(book.lent.length, failing === null ? 8 : 7);
    assert.deepEqual(book.revoked.toSorted(), book.lent.toSorted());
  }
});

test('a missing response delays an interrupt by five seconds at most', async () => {
  const stuck: LeaseClient = {
    ...openBook(),
    retrieve: (_path, { signal }) => sleep(60_000, null, { signal }).then(() => assert.fail()),
  };
  await assert.rejects(acquireLeases(stuck, [want('A', 'a')], options(AbortSignal.timeout(50))), {
    name: 'TimeoutError',
  });
});
