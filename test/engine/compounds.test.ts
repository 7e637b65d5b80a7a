// Records of several kinds, maps and bytes, and how a table stores them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matching } from '../../src/core/grammars.ts';
import { kinds, map, record } from '../../src/engine/compounds.ts';
import { byDefault, internal, nullable } from '../../src/engine/field.ts';
import { bytes, integer, text } from '../../src/engine/kinds.ts';
import { shape, stored } from '../../src/engine/resource.ts';
import { Table } from '../../src/store/table.ts';

const WORD = matching(/^[a-z]+$/, [1, 9], 'must be a word');

const Held = {
  id: internal(text(WORD)),
  place: kinds(
    {
      shelf: { row: integer({ min: 1, max: 9 }) },
      box: { label: byDefault('none', text(WORD)), row: text(WORD) },
      lost: {},
    },
    { title: 'Place' },
  ),
  facts: byDefault({}, map({ name: /^[a-z]{1,4}$/, max: 2, maxTextLength: 3, maxInteger: 9, title: 'Facts' })),
  seal: nullable(text(WORD)),
  key: byDefault(null, nullable(record({ tooth: integer({ min: 1, max: 9 }) }, { title: 'Key' }))),
};
const Box = shape('Box', Held);

test('a record of several kinds has the fields of its kind, and a map has few names and short values', () => {
  const read = (given: object): unknown => Box.parse({ place: { kind: 'lost' }, seal: null, ...given });
  const plain = { place: { kind: 'lost' }, facts: {}, seal: null, key: null };
  assert.deepEqual(read({}), plain);
  assert.deepEqual(read({ place: { kind: 'shelf', row: 3 } }), { ...plain, place: { kind: 'shelf', row: 3 } });
  assert.deepEqual(read({ place: { kind: 'box', row: 'a' } }), {
    ...plain,
    place: { kind: 'box', label: 'none', row: 'a' },
  });
  assert.deepEqual(read({ facts: { a: 'abc', b: 9 }, seal: 'x' }), { ...plain, facts: { a: 'abc', b: 9 }, seal: 'x' });
  const broken: readonly (readonly [given: object, problem: string])[] = [
    [{ place: null }, 'place: must be an object with kind'],
    [{ place: {} }, 'place.kind: is required'],
    [{ place: { kind: 'toString' } }, 'place.kind: must be one of shelf, box, lost'],
    [{ place: { kind: 'lost', row: 1 } }, 'place.row: is only for shelf and box'],
    [{ place: { kind: 'shelf', row: 1, secret: 1 } }, 'place: has an unknown field; the allowed fields are kind, row'],
    [{ place: { kind: 'shelf' } }, 'place.row: is required'],
    [{ place: { kind: 'shelf', row: 10 } }, 'place.row: must be a whole number, 1 to 9'],
    [{ facts: [] }, 'facts: must be an object with at most 2 fields'],
    [{ facts: { a: 1, b: 1, c: 1 } }, 'facts: must be an object with at most 2 fields'],
    [{ facts: { secret: 1 } }, 'facts: has an invalid name'],
    [
      { facts: { a: -1 } },
      'facts: must have values that are well-formed texts of at most 3 characters, or whole numbers up to 9',
    ],
    [
      { facts: { a: null } },
      'facts: must have values that are well-formed texts of at most 3 characters, or whole numbers up to 9',
    ],
    [{ seal: 'A' }, 'seal: must be a word, or null'],
    [{ key: 'A' }, 'key: must be an object with tooth, or null'],
    [{ key: { tooth: 0 } }, 'key.tooth: must be a whole number, 1 to 9'],
    [{ id: 'a' }, 'body: has an unknown field; the allowed fields are place, facts, seal, key'],
  ];
  for (const [given, message] of broken) assert.throws(() => read(given), { message });
});

test('a text that matches a pattern has at least the given number of characters', () => {
  const grammar = matching(/^[a-z]*$/, [2, 3], 'must be 2 or 3 letters');
  assert.equal(grammar.parse('ab', 'name'), 'ab');
  for (const bad of ['', 'a', 'abcd']) assert.throws(() => grammar.parse(bad, 'name'), /^ApiError: name: must be 2/);
});

test('a row stores them as JSON, and bytes as bytes; a restore applies the rules of values in memory', () => {
  const table = Table.of(stored({ table: 'boxes', key: ['id'], fields: { ...Held, lid: bytes({ min: 2, max: 2 }) } }));
  assert.deepEqual(
    table.columns.map(({ name, type, isNullable }) => [name, type, isNullable]),
    [
      ['id', 'text', false],
      ['place', 'json', false],
      ['facts', 'json', false],
      ['seal', 'text', true],
      ['key', 'json', true],
      ['lid', 'bytes', false],
    ],
  );
  const good = { id: 'a', place: '{"kind":"box","label":"none","row":"a"}', facts: '{"a":1}', seal: null, lid: 'AAA=' };
  const bad: readonly (readonly [column: string, value: unknown])[] = [
    ['place', '{"kind":"box","row":"a"}'],
    ['place', '{"kind":"constructor"}'],
    ['place', '{"kind":"lost","row":"a"}'],
    ['facts', '{"a":[]}'],
    ['facts', '{"__proto__":1}'],
    ['lid', 'AAAA'],
    ['lid', null],
  ];
  const ruleOf = (name: string) => table.columns.find((column) => column.name === name)?.rule ?? assert.fail(name);
  for (const [name, value] of Object.entries(good)) assert.equal(ruleOf(name)(value), null, name);
  for (const [name, value] of bad) assert.equal(typeof ruleOf(name)(value), 'string', `${name} ${value}`);
});
