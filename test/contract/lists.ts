/** Contract: the list of credentials, range by range and page by page. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { CredentialType } from '../../src/core/names.ts';
import { ALL_PATHS, matches, type Pattern, toRanges } from '../../src/core/pattern.ts';
import * as credentials from '../../src/store/credential-lists.ts';
import { type CredentialCursor, type CredentialListQuery, FIRST_CREDENTIAL } from '../../src/store/credential-lists.ts';
import type { CountStep } from '../../src/store/statement.ts';
import { runs } from '../kit/property.ts';
import { aCredential, commit, stored } from './rows.ts';
import { countCredentials, listCredentials, rowsFrom } from './scan.ts';
import type { Subject } from './store.ts';

// Neighbours in every order that a collation might choose otherwise: case, punctuation, prefixes of each other.
const PATHS = [
  'a',
  'A',
  'B',
  'a/b',
  'a/B',
  'a/b/c',
  'a/b/c/d',
  'a/bc',
  'a/b-c',
  'a/b.c',
  'a-b',
  'a.b',
  'a+b',
  'a0',
  'a@b',
  'a:b',
  'a=b',
  'a~b',
  'a_b',
  'aa',
  'ab',
  'b',
  'b/a',
  'b/a/a',
  'prod',
  'prod/key',
  'prod/key/sub',
  'prod0',
  'prod-1',
  '~',
  '+',
  '0',
  '00',
  'z/z/z',
  'Z',
  '_',
  'a/~',
  'a/+',
  'a/0',
];
const TYPES = ['generic', 'token', 'Token'] as CredentialType[];
const CREDENTIALS = [...new Set(PATHS)].map((path, index) =>
  aCredential(path, { type: TYPES[index % TYPES.length] ?? TYPES[0] ?? ('generic' as CredentialType) }),
);
/** The rows as a list returns them: without their MACs. */
const inOrder = CREDENTIALS.toSorted((a, b) => (a.path < b.path ? -1 : 1)).map(
  ({ id, path, type, description, createdAt, updatedAt, version }) => {
    const listed = { id, path, type, description, createdAt, updatedAt, version };
    return { ...listed, accessCount: 0 };
  },
);

const pattern = fc.oneof(
  fc.constantFrom(...PATHS),
  fc.constantFrom(...PATHS).map((path) => `${path}/*`),
  fc.constantFrom('a/*', 'b/*', 'a/b/*', 'prod/*'),
) as fc.Arbitrary<Pattern>;
const patterns = fc.oneof(
  { weight: 5, arbitrary: fc.array(pattern, { maxLength: 6 }) },
  { weight: 1, arbitrary: fc.constant(['*' as Pattern]) },
);
const type = fc.option(fc.constantFrom(...TYPES, 'none' as CredentialType));

export function listContract({ name, newVault }: Subject): void {
  test(`${name}: credentials are listed by path in code-point order, within the ranges, in pages`, async (t) => {
    const store = await newVault(t);
    await commit(store, { changes: CREDENTIALS.map(stored) });
    await fc.assert(
      fc.asyncProperty(
        patterns,
        type,
        fc.nat(12),
        fc.integer({ min: 1, max: 12 }),
        async (granted, only, offset, limit) => {
          const query: CredentialListQuery = { ranges: toRanges(granted), type: only };
          const fitting = inOrder.filter(
            (credential) =>
              granted.some((each) => matches(each, credential.path)) && (only === null || credential.type === only),
          );
          assert.deepEqual(await countCredentials(store, query), { count: fitting.length, next: null });
          assert.equal((await countCredentials(store, query, limit)).count, Math.min(limit, fitting.length));
          const expected = fitting.slice(offset, offset + limit);
          assert.deepEqual(await listCredentials(store, query, offset, limit), expected);
        },
      ),
      runs(100, 300),
    );
  });

  test(`${name}: empty ranges are skipped together, in a list and in its count`, async (t) => {
    const store = await newVault(t);
    const rare = [0, 1500, 2999].map((index) => aCredential(`team/${1000 + index}/key`));
    await commit(store, { changes: [...CREDENTIALS, ...rare].map(stored) });
    const granted = Array.from({ length: 3000 }, (_, index) => `team/${1000 + index}/*` as Pattern);
    const query = { ranges: toRanges(granted), type: null };
    let steps = 0;
    const step = (from: CredentialCursor, most: number) => {
      steps += 1;
      return store.run(credentials.listCredentials(store.dialect, query, from, most));
    };
    const rows = await rowsFrom(FIRST_CREDENTIAL, step);
    assert.deepEqual(
      rows.map(({ path }) => path),
      rare.map(({ path }) => path),
    );
    assert.ok(steps <= 10, `${steps} steps`);
    let place: CredentialCursor | null = FIRST_CREDENTIAL;
    let count = 0;
    for (steps = 0; place !== null; steps++) {
      const counted: CountStep<CredentialCursor> = await store.run(
        credentials.countCredentials(store.dialect, query, place, 1_000_000),
      );
      count += counted.count;
      place = counted.next;
    }
    assert.equal(count, 3);
    assert.ok(steps <= 10, `${steps} steps`);
  });

  test(`${name}: pages follow each other without gap or overlap, and without ranges nothing is listed`, async (t) => {
    const store = await newVault(t);
    await commit(store, { changes: CREDENTIALS.map(stored) });
    const query = { ranges: ALL_PATHS, type: null };
    const byOffset = [];
    for (let offset = 0; offset < CREDENTIALS.length; offset += 7) {
      byOffset.push(...(await listCredentials(store, query, offset, 7)));
    }
    assert.deepEqual(byOffset, inOrder);
    const step = (from: CredentialCursor, most: number) =>
      store.run(credentials.listCredentials(store.dialect, query, from, most));
    assert.deepEqual(await rowsFrom(FIRST_CREDENTIAL, step, { stepRows: 7 }), inOrder);
    assert.deepEqual(await listCredentials(store, { ranges: [], type: null }), []);
    assert.equal((await countCredentials(store, { ranges: [], type: null })).count, 0);
  });
}
