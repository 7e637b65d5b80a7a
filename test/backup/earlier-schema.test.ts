// A backup that was written before a migration added columns: it restores, and the columns are empty.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TABLES } from '../../src/store/schema.ts';
import { type Content, readContent, writeContent } from './content.ts';
import { KINDS, newBackup, newPlace, restoreTo, restoreWith, startAt, wordsFor } from './fixture.ts';

/** The content without the columns that were added after the schema. */
function asOf(schema: number, { header, tables, agentKeys }: Content): Content {
  const columns = Object.entries(header.tables).map(([name, all]) => {
    const added = TABLES.find((table) => table.name === name)?.columns.filter(({ since }) => since > schema) ?? [];
    const positions = all.flatMap((column, at) => (added.some((each) => each.name === column) ? [] : [at]));
    const rows = (tables.get(name) ?? []).map((row) => positions.map((at) => row[at] ?? null));
    return { name, rows, left: positions.map((at) => all[at] ?? '') };
  });
  return {
    header: { ...header, tables: Object.fromEntries(columns.map(({ name, left }) => [name, left])) },
    tables: new Map(columns.map(({ name, rows }) => [name, rows])),
    agentKeys,
  };
}

test('a backup of the first schema restores into either store; with a later schema it is refused', async (t) => {
  const { source, file } = await newBackup(t);
  const content = asOf(1, await readContent(file));
  const earlier = await writeContent(t, { ...content, header: { ...content.header, schema: 1 } });
  for (const kind of KINDS) {
    const place = await newPlace(t, kind, source.dataDir);
    await restoreTo(t, earlier, place);
    const service = await startAt(t, place);
    const { data } = (await service.admin.get('/api/v1/policies')).body;
    assert.equal(data.length, 1);
    assert.equal((await service.admin.get('/api/v1/audit/verify?state=true')).body.data.valid, true);
  }
  const place = await newPlace(t, 'sqlite', source.dataDir);
  const { code, told } = await restoreWith(wordsFor(t, await writeContent(t, content), place));
  assert.equal(code, 1);
  assert.match(told.at(-1) ?? '', /tables policies must name each known column once/);
});
