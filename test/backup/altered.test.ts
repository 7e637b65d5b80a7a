// Backups that authenticate, but were modified by another author: anyone with the recipient's public key can make one.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import type { Cell } from '../../src/backup/records.ts';
import type { VaultMetadata } from '../../src/store/transfer.ts';
import { type Content, readContent, writeContent } from './content.ts';
import { countRows, newBackup, newPlace, restoreTo, restoreWith, wordsFor } from './fixture.ts';

const scope = { after };
const { source, file } = await newBackup(scope, [
  ['prod/1', 'value 1'],
  ['prod/2', 'value 2'],
  ['prod/3', 'value 3'],
  ['prod/1', 'newer'],
]);

/** The backup with another content, whose totals and digest are right. */
async function alteredBackup(alter: (content: Content) => void): Promise<string> {
  const content = await readContent(file);
  alter(content);
  return writeContent(scope, content);
}

const urlOf = (flags: readonly string[]): string => readFileSync(flags[1] ?? '', 'utf8').trim();

const inVault = (record: object) => (content: Content) => {
  content.header = { ...content.header, vault: { ...(content.header.vault as VaultMetadata), ...record } };
};

/** Drops the rows for which the column has one of these values. */
function drop({ header, tables }: Content, table: string, column: string, values: readonly Cell[]): void {
  const at = header.tables[table]?.indexOf(column) ?? -1;
  assert.ok(at >= 0);
  tables.set(table, tables.get(table)?.filter((row) => !values.includes(row[at] ?? null)) ?? []);
}

/** The values of a column. */
function valuesOf({ header, tables }: Content, table: string, column: string): Cell[] {
  const at = header.tables[table]?.indexOf(column) ?? -1;
  return (tables.get(table) ?? []).map((row) => row[at] ?? null);
}

/** Replaces the checkpoints of the backup, in the order of its tables. */
function addCheckpoint({ header, tables }: Content, row: readonly Cell[]): void {
  assert.deepEqual(header.tables['checkpoints'], ['generation', 'size', 'signed_at', 'note']);
  tables.set('checkpoints', [row]);
  const order = Object.keys(header.tables);
  const sorted = [...tables].sort(([one], [other]) => order.indexOf(one) - order.indexOf(other));
  tables.clear();
  for (const [table, rows] of sorted) tables.set(table, rows);
}

const REFUSED: Readonly<Record<string, readonly [(content: Content) => void, RegExp]>> = {
  'a key slot was dropped': [(content) => content.tables.set('key_slots', []), /its keyset or its key slots differ/],
  'the keyset was altered': [
    ({ header, tables }) => {
      const at = header.tables['keyset']?.indexOf('version') ?? -1;
      tables.set('keyset', tables.get('keyset')?.map((row) => row.with(at, 77)) ?? []);
    },
    /its keyset or its key slots differ/,
  ],
  'the vault has another id': [
    inVault({ vaultId: 'A'.repeat(22) }),
    /the record of the vault does not belong to its keys/,
  ],
  'the head record is a text': [inVault({ head: 'x' }), /record 1 \(the header\): vault head must be an object/],
  'the record names a later entry': [
    inVault({ highestSeq: Number.MAX_SAFE_INTEGER }),
    /the log ends at entry \d+, and the record of the vault names entry 9007199254740991/,
  ],
  'a credential was dropped with all that belongs to it': [
    (content) => {
      const [id = null] = valuesOf(content, 'credentials', 'id');
      drop(content, 'credentials', 'id', [id]);
      for (const table of ['credential_versions', 'access_counts']) drop(content, table, 'credential_id', [id]);
    },
    /the state differs from the log in 1 places \("credential:prod\/1" missing\)/,
  ],
  'an agent was dropped': [
    (content) => drop(content, 'agents', 'name', ['worker']),
    /the state differs from the log in 1 places \("agent:worker" missing\)/,
  ],
  'a newest version was dropped': [
    (content) => drop(content, 'credential_versions', 'version', [2]),
    /the newest versions of 1 credentials are missing/,
  ],
  'a checkpoint of a later signing key was added': [
    (content) => addCheckpoint(content, [2, 1, 0, 'a note']),
    /the vault has not signed 1 of its checkpoints/,
  ],
  'a checkpoint is not signed': [
    (content) => addCheckpoint(content, [1, 1, 0, 'a note']),
    /the vault has not signed 1 of its checkpoints/,
  ],
};

const refusing = await newPlace(scope, 'sqlite', source.dataDir);

for (const [what, [alter, reason]] of Object.entries(REFUSED)) {
  test(`a restore refuses a backup in which ${what}`, async () => {
    const { code, told } = await restoreWith(wordsFor(scope, await alteredBackup(alter), refusing));
    assert.match(told.at(-1) ?? '', reason);
    assert.equal(code, 1);
  });
}

test('a database in which the state does not verify is empty afterwards', async (t) => {
  const [alter = assert.fail()] = REFUSED['an agent was dropped'] ?? [];
  const place = await newPlace(t, 'postgres', source.dataDir);
  assert.equal((await restoreWith(wordsFor(t, await alteredBackup(alter), place))).code, 1);
  const url = urlOf(place.flags);
  for (const table of ['vault', 'audit_head', 'audit_entries', 'credentials']) {
    assert.equal(await countRows(url, table), 0, table);
  }
  await restoreTo(t, file, place);
});
