/** Contract: the rows that a transaction finds by its keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  aCredential,
  aLease,
  aSession,
  asChallenge,
  asPath,
  aVersion,
  commit,
  find,
  leased,
  stored,
  storedPut,
  T0,
  versioned,
} from './rows.ts';
import type { Subject } from './store.ts';

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
const plain = (encrypted: unknown): number[] => [...(encrypted as Uint8Array)];

export function turnContract({ name, newVault }: Subject): void {
  test(`${name}: a transaction without keys loads nothing`, async (t) => {
    const store = await newVault(t);
    await commit(store, { changes: [stored(aCredential('a')), leased(aLease(1))] });
    assert.deepEqual(await find(store, [{}]), {
      rows: { session: [], credential: [], targets: [], approval: [], reply: [] },
      versions: [],
      histories: [],
      leases: [],
      spentChallenges: [],
      states: new Map(),
      keySlots: [],
    });
  });

  test(`${name}: a transaction finds credentials by path, each once, and omits missing ones`, async (t) => {
    const store = await newVault(t);
    const [one, two] = [aCredential('a/b', { description: 'ü 🔑' }), aCredential('a/B', { version: 7 })];
    await commit(store, { changes: [stored(one), stored(two), stored(aCredential('a'))] });
    const keys = ['a/b', 'a/B', 'a/b', 'A/b', 'a/b/c'].map((path) => ({ credential: asPath(path) }));
    const { rows, versions, histories } = await find(store, keys);
    assert.deepEqual(
      rows.credential.toSorted((a, b) => a.version - b.version),
      [one, two],
    );
    assert.deepEqual([versions, histories], [[], []]);
  });

  test(`${name}: a transaction finds the newest version of a value, or the one with the number`, async (t) => {
    const store = await newVault(t);
    const credential = aCredential('a', { version: 3 });
    const encrypted = [bytes(1, 0, 255), bytes(2), bytes(3, 3)];
    const add = encrypted.map((content, index) => versioned(credential, index + 1, content));
    await commit(store, { changes: [stored(credential), stored(aCredential('b')), ...add] });
    const key = { credential: asPath('a') };
    for (const [version, number] of [
      ['newest', 3],
      [1, 1],
      [2, 2],
    ] as const) {
      const { versions } = await find(store, [{ ...key, version }]);
      assert.equal(versions.length, 1);
      const [only] = versions;
      assert.ok(only);
      const { content, ...rest } = only.version;
      assert.deepEqual([only.credentialId, rest], [credential.id, aVersion(number)]);
      assert.deepEqual(plain(content), plain(encrypted[number - 1]));
    }
    assert.deepEqual((await find(store, [{ ...key, version: 4 }])).versions, []);
    assert.deepEqual((await find(store, [{ credential: asPath('b'), version: 'newest' }])).versions, []);
    const all = await find(store, [
      { ...key, version: 'newest' },
      { ...key, version: 1 },
      { ...key, version: 3 },
    ]);
    assert.deepEqual(all.versions.map(({ version }) => version.version).sort(), [1, 3]);
  });

  test(`${name}: a value of 256 KiB is returned byte for byte`, async (t) => {
    const store = await newVault(t);
    const credential = aCredential('a');
    const encrypted = Uint8Array.from({ length: 262_144 + 33 }, (_, i) => (i * 31) & 0xff);
    await commit(store, { changes: [stored(credential), versioned(credential, 1, encrypted)] });
    const { versions } = await find(store, [{ credential: asPath('a'), version: 'newest' }]);
    assert.ok(Buffer.from(encrypted).equals(versions[0]?.version.content as Uint8Array));
  });

  test(`${name}: a transaction finds the times of all versions, oldest first`, async (t) => {
    const store = await newVault(t);
    const [one, two] = [aCredential('a', { version: 11 }), aCredential('b', { version: 2 })];
    const add = [11, 2, 10, 9].map((version) => versioned(one, version, bytes(version)));
    await commit(store, { changes: [stored(one), stored(two), ...add, versioned(two, 2, bytes(1))] });
    const { histories } = await find(store, [{ credential: one.path, history: true }]);
    const versions = [2, 9, 10, 11].map((version) => ({ version, createdAt: T0 + version }));
    assert.deepEqual(histories, [{ credentialId: one.id, versions }]);
  });

  test(`${name}: a transaction finds sessions, leases and spent challenges by their keys`, async (t) => {
    const store = await newVault(t);
    await commit(store, {
      changes: [
        ...[1, 2].map((n) => storedPut('session', aSession(n))),
        ...[1, 2].map((seq) => leased(aLease(seq))),
        ...[1, 2].map((n) => ({ kind: 'consumeChallenge' as const, id: asChallenge(n), expiresAt: T0 + n })),
      ],
    });
    const found = await find(store, [
      { session: aSession(2).tokenHash, lease: aLease(1).id, challenge: asChallenge(2) },
      { session: aSession(3).tokenHash, lease: aLease(3).id, challenge: asChallenge(3) },
      { session: aSession(2).tokenHash, lease: aLease(1).id },
    ]);
    assert.deepEqual(found.rows.session, [aSession(2)]);
    assert.deepEqual(found.leases, [aLease(1)]);
    assert.deepEqual(found.spentChallenges, [asChallenge(2)]);
  });
}
