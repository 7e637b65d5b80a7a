// A declared resource: requests, rows and replies follow from its fields, and each broken rule is named.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { list, record } from '../../src/engine/compounds.ts';
import { invalidRequest } from '../../src/engine/errors.ts';
import {
  byDefault,
  covers,
  entriesOf,
  internal,
  nullable,
  nullIfEmpty,
  optional,
  setByServer,
} from '../../src/engine/field.ts';
import { anyText, boolean, integer, oneOf, text, time } from '../../src/engine/kinds.ts';
import { resource, toColumn } from '../../src/engine/resource.ts';
import { Table } from '../../src/store/table.ts';
import { runs } from '../kit/property.ts';

const WORD = {
  pattern: /^[a-z]+$/,
  minLength: 1,
  maxLength: 9,
  noun: 'word',
  parse(given: string, field: string): string {
    if (!WORD.pattern.test(given) || given.length > 9) throw invalidRequest(field, 'must be a word');
    return given;
  },
};

const Thing = resource('thing', {
  table: 'things',
  key: 'name',
  fields: {
    name: text(WORD, { example: 'a' }),
    colours: list(oneOf(['red', 'blue'], { example: 'red' }), { min: 1 }, { example: ['red'] }),
    words: optional(list(text(WORD, { example: 'a' }), { min: 1, max: 3 }, { example: ['a'] })),
    maxSize: byDefault(5, integer({ min: 1, max: 9 }, { wire: 'max_size', example: 2 })),
    part: optional(
      record(
        {
          least: byDefault(1, integer({ min: 1, max: 9 }, { example: 1 })),
          most: optional(integer({ min: 1, max: 9, unit: 'seconds' }, { example: 1 })),
        },
        {
          title: 'Part',
          needsOne: true,
          check: ({ least, most }) => (most !== null && most < least ? 'most: must not be less than least' : null),
        },
        { example: { most: 3 } },
      ),
    ),
    endsAt: optional(time({ wire: 'ends_at', example: '2026-01-31T09:30:00.000Z' })),
    madeAt: setByServer(time({ wire: 'made_at', example: '2026-01-31T09:30:00.000Z' })),
  },
  check: ({ colours, part }) => (part !== null && colours.includes('blue') ? 'part: is only for red things' : null),
});

const WHOLE = {
  name: 'a',
  colours: ['red'],
  words: ['x', 'y'],
  max_size: 2,
  part: { most: 3 },
  ends_at: '2026-01-31T09:30:00Z',
};

const OPTIONAL_SIZE = byDefault(5, nullable(integer({ min: 1, max: 9 })));

const problemsOf = (given: unknown): readonly string[] => {
  const read = Thing.read(given);
  return 'problems' in read ? read.problems : [];
};

test('a request becomes a draft: defaults are filled in, what is not given is null, and equal items are one', () => {
  assert.deepEqual(Thing.parse({ ...WHOLE, colours: ['red', 'red'] }), {
    name: 'a',
    colours: ['red'],
    words: ['x', 'y'],
    maxSize: 2,
    part: { least: 1, most: 3 },
    endsAt: Date.UTC(2026, 0, 31, 9, 30),
  });
  assert.deepEqual(Thing.parse({ name: 'a', colours: ['blue'] }), {
    name: 'a',
    colours: ['blue'],
    words: null,
    maxSize: 5,
    part: null,
    endsAt: null,
  });
});

const things = fc
  .record(
    {
      name: fc.constantFrom('a', 'b', 'proto'),
      colours: fc.uniqueArray(fc.constantFrom('red' as const, 'blue' as const), { minLength: 1 }),
      words: fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { minLength: 1 }),
      max_size: fc.integer({ min: 1, max: 9 }),
      ends_at: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((at) => at.toISOString()),
    },
    { requiredKeys: ['name', 'colours'] },
  )
  .map((given) => Thing.parse(given));

test('a draft is read again from the request that makes it, and a row from its reply', () => {
  fc.assert(
    fc.property(things, fc.integer({ min: 0, max: 4e12 }), (draft, madeAt) => {
      assert.deepEqual(Thing.parse(JSON.parse(JSON.stringify(Thing.toInput(draft)))), draft);
      const row = { ...draft, madeAt };
      assert.deepEqual(Thing.toInput(row), Thing.toInput(draft));
      assert.deepEqual(Thing.fromReply(JSON.parse(JSON.stringify(Thing.toReply(row)))), row);
    }),
    runs(50, 1000),
  );
});

test('a row is decoded from its columns, and its MAC covers those that have a value, by name', () => {
  const table = Table.withMac(Thing);
  assert.deepEqual(
    table.columns.map(({ name }) => name),
    ['name', 'colours', 'words', 'max_size', 'part', 'ends_at', 'made_at', 'mac'],
  );
  fc.assert(
    fc.property(things, (draft) => {
      const row = { ...draft, madeAt: 7, mac: 'm' };
      const cells = table.encode(row);
      const stored = Object.fromEntries(table.columns.map(({ name }, at) => [name, cells[at] ?? null]));
      const decoded = table.decode(stored);
      assert.deepEqual(decoded, row);
      const values = table.macValues(decoded);
      assert.equal(JSON.stringify(values), JSON.stringify(table.macValues(row)));
      assert.deepEqual(Object.keys(values), Object.keys(values).toSorted());
      assert.equal('mac' in values, false);
    }),
    runs(50, 1000),
  );
  assert.equal(toColumn('maxTtlSeconds'), 'max_ttl_seconds');
  // Texts that have the value of another one: `1e400` becomes null, and the last of two keys counts.
  for (const part of ['{"least":1e400}', '{ "least":1}', '{"least":1.0}', '{"least":2,"least":1}', '{"least":1', 'x']) {
    assert.equal(table.decode({ part }).part, null, part);
  }
});

test('every broken rule is a problem with the name of its field, and none repeats a value', () => {
  const secret = 'hunter2';
  const rows: readonly (readonly [unknown, readonly string[]])[] = [
    [null, ['body: must be a JSON object']],
    [[], ['body: must be a JSON object']],
    [{}, ['name: is required', 'colours: is required']],
    [{ ...WHOLE, made_at: '2026-01-31T09:30:00Z' }, [unknown('body', 'name, colours, words, max_size, part, ends_at')]],
    [{ ...WHOLE, name: 7 }, ['name: must be a string']],
    [{ ...WHOLE, name: null }, ['name: must be a string']],
    [{ ...WHOLE, name: secret }, ['name: must be a word']],
    [{ ...WHOLE, colours: [] }, ['colours: must be an array of 1 or more words']],
    [{ ...WHOLE, colours: secret }, ['colours: must be an array of 1 or more words']],
    [{ ...WHOLE, colours: ['red', secret, 1] }, [oneOfColours(1), oneOfColours(2)]],
    [{ ...WHOLE, words: ['a', 'b', 'c', 'd'] }, ['words: must be an array of 1 to 3 words']],
    [{ ...WHOLE, words: ['a', secret] }, ['words[1]: must be a word']],
    ...[0, 10, 1.5, '2', Number.NaN, null].map((size): [unknown, string[]] => [
      { ...WHOLE, max_size: size },
      ['max_size: must be a whole number, 1 to 9'],
    ]),
    [{ ...WHOLE, part: secret }, ['part: must be an object with one or more of least, most']],
    [{ ...WHOLE, part: null }, ['part: must be an object with one or more of least, most']],
    [{ ...WHOLE, part: { most: null } }, ['part.most: must be a whole number of seconds, 1 to 9']],
    [{ ...WHOLE, part: { least: null, most: 1 } }, ['part.least: must be a whole number, 1 to 9']],
    [{ ...WHOLE, part: {} }, ['part: must have one or more of least, most']],
    [{ ...WHOLE, part: { most: 1, [secret]: 1 } }, [unknown('part', 'least, most')]],
    [{ ...WHOLE, part: { most: 0 } }, ['part.most: must be a whole number of seconds, 1 to 9']],
    [{ ...WHOLE, part: { least: 3, most: 1 } }, ['part.most: must not be less than least']],
    [{ ...WHOLE, colours: ['blue'] }, ['part: is only for red things']],
    ...['', '2026-01-31', '2026-02-30T00:00:00Z', '2026-01-31T09:30:00+01:00', 5].map((at): [unknown, string[]] => [
      { ...WHOLE, ends_at: at },
      ['ends_at: must be a time in UTC such as 2026-01-31T09:30:00Z'],
    ]),
  ];
  for (const [given, problems] of rows) assert.deepEqual(problemsOf(given), problems, JSON.stringify(given));
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    const given = JSON.parse(`{"name":"a","colours":["red"],"${name}":{"max_size":9}}`);
    assert.deepEqual(problemsOf(given), [unknown('body', 'name, colours, words, max_size, part, ends_at')], name);
  }
});

const unknown = (where: string, names: string): string =>
  `${where}: has an unknown field; the allowed fields are ${names}`;
const oneOfColours = (at: number): string => `colours[${at}]: must be one of red, blue`;

test('a value covers another if it allows all that the other allows; an optional field that is not given allows all', () => {
  const covered = (property: string, outer: unknown, inner: unknown): boolean => {
    const found = entriesOf(Thing.fields).find((each) => each.property === property) ?? assert.fail(property);
    return covers(found.field, outer, inner);
  };
  const CASES: readonly (readonly [property: string, outer: unknown, inner: unknown, isCovered: boolean])[] = [
    ['name', 'a', 'a', true],
    ['name', 'a', 'b', false],
    ['colours', ['red', 'blue'], ['blue'], true],
    ['colours', ['red'], ['red', 'blue'], false],
    ['words', null, ['x'], true],
    ['words', ['x'], null, false],
    ['words', null, null, true],
    ['maxSize', 5, 5, true],
    ['maxSize', 5, 6, false],
    ['endsAt', 2, 1, true],
    ['endsAt', 1, null, false],
    ['part', { least: 1, most: null }, { least: 1, most: 3 }, true],
    ['part', { least: 1, most: 2 }, { least: 1, most: 3 }, false],
  ];
  for (const [property, outer, inner, isCovered] of CASES) {
    assert.equal(covered(property, outer, inner), isCovered, JSON.stringify([property, outer, inner]));
  }
});

const NAME = {
  ...WORD,
  parse: (given: string, field: string) => `member:${WORD.parse(given, field)}`,
  format: (name: string) => name.slice('member:'.length),
};

const Member = resource('member', {
  table: 'members',
  id: 'id',
  key: 'name',
  fields: {
    id: internal(text(WORD)),
    name: text(NAME, { example: 'a' }),
    roles: list(oneOf(['low', 'high']), { min: 1, isSorted: true }, { example: ['low'] }),
    keys: setByServer(
      nullIfEmpty(
        list(record({ label: anyText(), secret: internal(anyText()), isNew: boolean() }, { title: 'Key' }), { min: 0 }),
      ),
    ),
    seenAt: setByServer(nullable(time({ wire: 'seen_at' }))),
    note: internal(nullable(anyText())),
  },
});

test('a request gives neither what the server sets nor what is internal, and words are in their order', () => {
  const read = Member.read({ name: 'a', roles: ['high', 'low', 'high'] });
  assert.deepEqual(read, { draft: { name: 'member:a', roles: ['low', 'high'] } });
  for (const name of ['id', 'note', 'seen_at']) {
    const found = Member.read({ name: 'a', roles: ['low'], [name]: 'x' });
    assert.deepEqual('problems' in found && found.problems, [
      'body: has an unknown field; the allowed fields are name, roles',
    ]);
  }
  assert.equal(Member.parseKey('a'), 'member:a');
  assert.equal(Member.formatKey('member:a'), 'a');
});

test('a reply shows nothing internal, null where the value is null, and an empty list as one', () => {
  const row = { id: 'i', name: 'member:a', roles: ['low' as const], keys: null, seenAt: null, note: null };
  assert.deepEqual(Member.toReply(row), { name: 'a', roles: ['low'], keys: [], seen_at: null });
  const keys = [{ label: 'l', secret: 's', isNew: true }];
  assert.deepEqual(Member.toReply({ ...row, keys, seenAt: 0 }), {
    name: 'a',
    roles: ['low'],
    keys: [{ label: 'l', isNew: true }],
    seen_at: '1970-01-01T00:00:00.000Z',
  });
});

test('what a reply shows is restored', () => {
  const row = {
    name: 'member:a',
    roles: ['low' as const],
    keys: [{ label: 'l', secret: 's', isNew: true }],
    seenAt: 7,
  };
  const reply = Member.toReply({ ...row });
  assert.deepEqual(Member.fromReply(reply), { ...row, keys: [{ label: 'l', isNew: true }] });
  assert.deepEqual(Member.fromReply({ ...reply, keys: [], seen_at: null }), { ...row, keys: null, seenAt: null });
});

test('a table has a column for each field, and its rules are those of values in memory', () => {
  const { columns, key, unique } = Table.withMac(Member);
  assert.deepEqual(
    columns.map(({ name, type, isNullable }) => [name, type, isNullable]),
    [
      ['id', 'text', false],
      ['name', 'text', false],
      ['roles', 'list', false],
      ['keys', 'json', true],
      ['seen_at', 'number', true],
      ['note', 'text', true],
      ['mac', 'text', false],
    ],
  );
  assert.deepEqual([key, unique], [['id'], { column: 'name', isCaseless: false }]);
  const brokenIn = (name: string, value: unknown) => columns.find((each) => each.name === name)?.rule(value) ?? null;
  for (const [name, value] of [
    ['name', 'member:a'],
    ['keys', 'null'],
    ['keys', '[{"label":"l","secret":"s","isNew":false}]'],
    ['seen_at', null],
    ['note', 'any text'],
  ] as const)
    assert.equal(brokenIn(name, value), null, name);
  for (const [name, value] of [
    ['name', 'a!'],
    ['name', 'memberXa'],
    ['name', 'MEMBER:a'],
    ['keys', '[]'],
    ['keys', '[{"label":"l","isNew":false}]'],
    ['keys', '[{"label":"l","secret":"s","isNew":1}]'],
    ['id', null],
  ] as const)
    assert.notEqual(brokenIn(name, value), null, name);
});

test('a reply of an older server lacks fields: those with a default have it, and the others are null', () => {
  const { max_size: _, ...older } = Thing.toReply(
    Object.assign(Thing.parse({ name: 'a', colours: ['red'] }), { madeAt: 0 }),
  );
  const restored = Thing.fromReply(older as never);
  assert.deepEqual([restored.maxSize, restored.words], [5, null]);
  const Lid = resource('lid', { table: 'lids', key: 'name', fields: { name: text(WORD), size: OPTIONAL_SIZE } });
  assert.deepEqual(
    [Lid.fromReply({ name: 'a' } as never).size, Lid.fromReply({ name: 'a', size: null }).size],
    [5, null],
  );
});
