// The sources of an import: the values read from each format, strict JSON, names that become paths, and the plan.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatOf, readSource } from '../../src/cli/commands/import.ts';
import { makePlan, type PlanOptions, toPath } from '../../src/cli/import/import-plan.ts';
import { parseJson, readJsonFile } from '../../src/cli/import/json.ts';
import type { Draft, ImportSource } from '../../src/cli/import/source.ts';
import { pathViolation } from '../../src/core/path.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { anyText, runs } from '../kit/property.ts';

const read = (content: Uint8Array | string, name: string, readsAll = false): Promise<ImportSource> => {
  const bytes = Buffer.from(content);
  return readSource({ bytes, name, format: formatOf(bytes, name), readsAll });
};
const shown = ({ drafts }: ImportSource) =>
  drafts.map(({ names, value, type }) => `${names.join('/')} = ${value.reveal()} (${type})`);
const rejects = (reading: Promise<ImportSource>, rule: RegExp) =>
  assert.rejects(reading, (error) => error instanceof UsageError && rule.test(error.message));

const BITWARDEN = {
  encrypted: false,
  folders: [{ id: 'f1', name: 'Work/Shop' }],
  items: [
    {
      folderId: 'f1',
      type: 1,
      name: 'Login',
      notes: 'a note',
      fields: [
        { name: 'API key', value: 'k', type: 1 },
        { name: 'linked', value: null, type: 3, linkedId: 100 },
      ],
      login: { uris: [{ uri: 'shop.example.org' }], username: 'ann', password: 'hunter2', totp: 'JBSW' },
    },
    { type: 2, name: 'Note', notes: 'only a note', collectionIds: [{ toString: 1, valueOf: 1 }] },
    { type: 3, name: 'Card', notes: null, card: { number: '4242', code: '123', brand: '', constructor: 'c' } },
    { type: 5, name: 'Key', sshKey: { privateKey: 'PEM', publicKey: 'pub' } },
    { type: 1, name: 'Gone', deletedDate: '2026-01-01T00:00:00Z', login: { password: 'gone' } },
    { type: 1, name: 'Passkey', login: { password: null, fido2Credentials: [{ credentialId: 'x' }] } },
  ],
};

test('Bitwarden: every non-empty field becomes FOLDER/ITEM/FIELD', async () => {
  const source = await read(JSON.stringify(BITWARDEN), 'export.json');
  assert.deepEqual(shown(source), [
    'Work/Shop/Login/username = ann (null)',
    'Work/Shop/Login/password = hunter2 (password)',
    'Work/Shop/Login/totp = JBSW (totp)',
    'Work/Shop/Login/notes = a note (note)',
    'Work/Shop/Login/API key = k (null)',
    'Note/notes = only a note (note)',
    'Card/number = 4242 (null)',
    'Card/code = 123 (null)',
    'Card/constructor = c (null)',
    'Key/privateKey = PEM (ssh_key)',
    'Key/publicKey = pub (null)',
  ]);
  assert.deepEqual(
    source.skipped.map(({ where, kind }) => [where, kind]),
    [
      ['Gone', 'rejected'],
      ['Passkey', 'rejected'],
    ],
  );
});

test('Bitwarden: an encrypted export is rejected with a hint how to export again', async () => {
  for (const passwordProtected of [true, false]) {
    const text = JSON.stringify({ encrypted: true, passwordProtected, data: '2.a|b|c', items: [] });
    await assert.rejects(
      read(text, 'export.json'),
      (error) =>
        error instanceof UsageError && /is an encrypted export/.test(error.message) && /\.json/.test(error.hint ?? ''),
    );
  }
});

test('CSV of 1Password: rows with quotes, commas and line breaks', async () => {
  const source = await read(
    '\ufeffTitle,Url,Username,Password,OTPAuth,Favorite,Archived,Tags,Notes\r\n' +
      'Shop,https://shop.example.org,ann,"a,""b""\nc",,false,false,,\r\n' +
      'Old,,,gone,,false,true,,\r\n' +
      'Next,,,d,otpauth://x,false,false,,n\r\n',
    'export.csv',
  );
  assert.deepEqual(shown(source), [
    'Shop/username = ann (null)',
    'Shop/password = a,"b"\nc (password)',
    'Next/password = d (password)',
    'Next/one-time password = otpauth://x (totp)',
    'Next/notes = n (note)',
  ]);
  assert.equal(source.drafts[0]?.where, 'export.csv › Shop › username');
  assert.deepEqual(
    source.skipped.map(({ where }) => where),
    ['export.csv › Old'],
  );
});

test('CSV of Bitwarden: folders and custom fields', async () => {
  const heading = 'folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp';
  const source = await read(
    `${heading}\nWork/A,1,login,Shop,,"PIN: 1234\nkey: a: b\nmore",0,shop.example.org,ann,pw,\n`,
    'b.csv',
  );
  assert.deepEqual(shown(source), [
    'Work/A/Shop/username = ann (null)',
    'Work/A/Shop/password = pw (password)',
    'Work/A/Shop/PIN = 1234 (null)',
    'Work/A/Shop/key = a: b\nmore (null)',
  ]);
});

test("1Password's zip is refused with a hint at its CSV, by its name and by its bytes", () => {
  for (const [name, bytes] of Object.entries({ data: 'PK\u0003\u0004', 'x.1PUX': '' })) {
    const refused = { name: 'UsageError', message: `${name}: zip files, such as the .1pux of 1Password, are not read` };
    assert.throws(() => formatOf(Buffer.from(bytes), name), refused);
  }
});

test('invalid CSV is rejected and never quoted', async () => {
  const cases: readonly [text: string, rule: RegExp][] = [
    ['a,b\n1,2\n', /unknown columns/],
    ['', /unknown columns/],
    ['Title,Password,Password\nx,hunter2,hunter2\n', /same name/],
    ['Title,Password\nx,"hunter2\n', /is not valid CSV .*QUOTE_NOT_CLOSED/],
    ['Title,Password\nx,hunter2"y"\n', /is not valid CSV/],
    ['Title,Password\nx,hunter2,z\n', /is not valid CSV/],
  ];
  for (const [text, rule] of cases) {
    await assert.rejects(
      read(text, 'a.csv'),
      (error) => error instanceof UsageError && rule.test(error.message) && !error.message.includes('hunter2'),
    );
  }
});

const SETTINGS = [
  '\ufeff# a comment',
  'export DB_PASSWORD="hunter2"',
  'EMPTY=',
  'REF=leasehold://shop/key',
  'TOKEN=abc # no',
  'PIN_PASSWORD=1234',
  'PORT=5432',
  'MAX_TOKENS=4096',
  'TOKEN_URL=https://example.org/token',
  'API_KEY=/run/secrets/key',
  'SECRET=true',
  'DATABASE_URL=postgres://shop:hunter2@db/shop',
  `GITHUB=ghp_${'aZ3kQ9xB7m'.repeat(4)}`,
].join('\r\n');

test('of a .env file the secrets are read, by name or form, and with --all every value that is no reference', async () => {
  const source = await read(SETTINGS, '.env');
  assert.deepEqual(
    source.drafts.map(({ names: [name], type, where }) => `${name} ${type} ${where}`),
    [
      'DB_PASSWORD password .env:2',
      'EMPTY null .env:3',
      'TOKEN token .env:5',
      'PIN_PASSWORD password .env:6',
      'DATABASE_URL null .env:12',
      'GITHUB null .env:13',
    ],
  );
  assert.deepEqual(
    source.skipped.map(({ where, kind }) => `${where} ${kind}`),
    ['.env:4', '.env:7', '.env:8', '.env:9', '.env:10', '.env:11'].map((where) => `${where} empty`),
  );
  const all = await read(SETTINGS, '.env', true);
  assert.deepEqual([all.drafts.length, all.skipped.length], [11, 1]);
  await rejects(read('what is this', '.env'), /line 1/);
});

const jsonDrafts = (text: string) =>
  readJsonFile(text, 'a.json').drafts.map(({ names, value, where }) => [names.join('/'), value.reveal(), where]);

test('members of objects become names, and numbers and booleans are kept as written, also in arrays', () => {
  const text = `{
    "db": { "password": "p\\u0061ss", "port": 5432 },
    "big": 12345678901234567890,
    "exact": 1.10,
    "on": true,
    "hosts": [ "a", {"b": 1.0} ]
  }`;
  assert.deepEqual(jsonDrafts(text), [
    ['db/password', 'pass', 'a.json › db › password'],
    ['db/port', '5432', 'a.json › db › port'],
    ['big', '12345678901234567890', 'a.json › big'],
    ['exact', '1.10', 'a.json › exact'],
    ['on', 'true', 'a.json › on'],
    ['hosts', '["a",{"b":1.0}]', 'a.json › hosts'],
  ]);
});

test('keys such as __proto__ are ordinary keys', () => {
  const text = '{"__proto__":{"polluted":"1"},"constructor":"2","toString":"3"}';
  assert.deepEqual(
    jsonDrafts(text).map(([names]) => names),
    ['__proto__/polluted', 'constructor', 'toString'],
  );
  assert.equal('polluted' in {}, false);
});

const INVALID: readonly [text: string, rule: RegExp][] = [
  ['{"a":1,"a":2}', /same key twice/],
  ['{"a":1,\n"\\u0061":2}', /same key twice/],
  ['{"a":{"b":1,"c":"\\"x\\":"},"d":1,"a":{"b":1}}', /same key twice/],
  ['[{"a":1,"a": 1}]', /same key twice/],
  ['[1]', /must be an object/],
  ['1', /must be an object/],
  ['"a"', /must be an object/],
  ['', /not strict JSON/],
  ['{"a":1} x', /not strict JSON/],
  ['{"a":1,\n}', /a\.json:2: is not strict JSON/],
  ["{'a':1}", /not strict JSON/],
  ['{"a":NaN}', /not strict JSON/],
  ['{"a":"x', /not strict JSON/],
  ['{"a":"x\ny"}', /a\.json:1: is not strict JSON/],
  ['{"a":1} // no', /not strict JSON/],
];

test('invalid JSON is rejected with its rule', () => {
  for (const [text, rule] of INVALID) {
    assert.throws(
      () => readJsonFile(text, 'a.json'),
      (error) => error instanceof UsageError && rule.test(error.message),
      text,
    );
  }
});

test('an error never repeats content of the file', () => {
  for (const text of ['{"a":hunter2}', '{"a":"hunter2\\q"}', '{"hunter2":1,"hunter2":2}', '{"a":"hunter2"hunter2}']) {
    assert.throws(
      () => readJsonFile(text, 'a.json'),
      (error) => error instanceof UsageError && !`${error.message}${error.hint}`.includes('hunter2'),
    );
  }
});

test('deep nesting is an error or a value without a path, and no crash', () => {
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  assert.throws(() => parseJson(deep(500_000), 'a.json'), /a\.json: is nested deeper than 1000 levels/);
  const [[names, value] = []] = jsonDrafts(deep(100));
  assert.deepEqual([names, value], ['a/'.repeat(64).slice(0, -1), deep(36)]);
});

test('a file with more values than a vault has is refused before it is parsed', () => {
  const list = (count: number, value: string) => `{"a":[${`${value},`.repeat(count)}${value}]}`;
  for (const value of ['1', '[]']) {
    assert.throws(() => parseJson(list(1_000_000, value), 'a.json'), /a\.json: has more than 1000000 values; import/);
  }
  // Keeping the digits of every number takes far longer for each value.
  assert.throws(() => parseJson(list(100_000, '1.0'), 'a.json'), /has more than 100000 values and a number of another/);
});

test('any JSON is parsed as JSON.parse parses it', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(0, 1, '\t'), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      assert.equal(JSON.stringify(parseJson(text, 'a.json')), JSON.stringify(JSON.parse(text)));
    }),
    runs(50, 500),
  );
});

const draft = (names: readonly string[], text: string, where = names.join('.')): Draft => ({
  names,
  value: new Secret(text),
  type: null,
  description: '',
  where,
});

function plan(drafts: readonly Draft[], options: Partial<PlanOptions> = {}) {
  return makePlan(
    { drafts, skipped: [] },
    { prefix: [], existing: new Set(), seesAll: true, onlyNew: false, ...options },
  );
}

test('each row is new, a new version, or exists', () => {
  const existing = new Set(['shop/a']);
  const drafts = [draft(['a'], '1'), draft(['b'], '2')];
  const states = (options: Partial<PlanOptions>) =>
    plan(drafts, { prefix: ['shop'], existing, ...options }).rows.map(({ path, state }) => `${path} ${state}`);
  assert.deepEqual(states({}), ['shop/a new version', 'shop/b new']);
  assert.deepEqual(states({ onlyNew: true }), ['shop/a exists', 'shop/b new']);
  assert.deepEqual(states({ seesAll: false }), ['shop/a new version', 'shop/b new?']);
});

test('two values for one path are both skipped, and each names another', () => {
  const { rows, skipped } = plan([draft(['a b'], '1', 'x:1'), draft(['a-b'], '2', 'x:9'), draft(['c'], '3')]);
  assert.deepEqual(
    rows.map(({ path }) => path),
    ['c'],
  );
  assert.deepEqual(
    skipped.map(({ where, kind }) => [where, kind]),
    [
      ['x:1', 'rejected'],
      ['x:9', 'rejected'],
    ],
  );
  assert.match(skipped[0]?.reason ?? '', /^its path a-b is also the path of another value \(x:9\); rename/);
  assert.match(skipped[1]?.reason ?? '', /\(x:1\)/);
});

test('the same value twice is one credential with the first location', () => {
  const { rows, skipped } = plan([draft(['a'], '1', 'x:1'), draft(['a'], '1', 'x:9')]);
  assert.deepEqual(
    rows.map(({ path, from }) => [path, from]),
    [['a', 'x:1 and 1 more']],
  );
  assert.deepEqual(skipped, []);
});

test('a value that the vault would reject is skipped before any request', () => {
  const { rows, skipped } = plan([
    draft(['empty'], ''),
    draft(['large'], 'é'.repeat(131_073)),
    draft(['largest'], 'é'.repeat(131_072)),
    draft(['half'], 'a\ud800'),
    draft(['..'], 'x'),
  ]);
  assert.deepEqual(
    rows.map(({ path }) => path),
    ['largest'],
  );
  assert.deepEqual(
    skipped.map(({ where, kind }) => [where, kind]),
    [
      ['empty', 'empty'],
      ['large', 'rejected'],
      ['half', 'rejected'],
      ['..', 'rejected'],
    ],
  );
  assert.match(skipped[1]?.reason ?? '', /^its value must be 1 to 262144 bytes/);
});

const SEGMENTS: readonly [name: string, segment: string][] = [
  ['DB_PASSWORD', 'DB_PASSWORD'],
  ['Personal Gmail', 'Personal-Gmail'],
  ['  a   b  ', 'a-b'],
  ['Zürich Café', 'Zurich-Cafe'],
  ['a/b', 'a-b'],
  ['a\\b', 'a-b'],
  ['a-b', 'a-b'],
  ['a - b', 'a---b'],
  ['user@example.com', 'user@example.com'],
  ['..', ''],
  ['.', ''],
  ['...', '...'],
  ['../../etc', '..-..-etc'],
  ['日本語', ''],
  ['\u001b[31mred\u001b[0m', '31mred-0m'],
  ['a\u0000b', 'a-b'],
  ['__proto__', '__proto__'],
  ['👍 ok', 'ok'],
  ['', ''],
];

test('a name becomes a segment of a path', () => {
  for (const [name, segment] of SEGMENTS) {
    const named = toPath([], [name]);
    assert.equal('path' in named ? named.path : '', segment, name);
  }
});

test('any names become a valid path, or the broken rule is returned', () => {
  fc.assert(
    fc.property(fc.array(anyText(40), { maxLength: 40 }), (names) => {
      const named = toPath(['shop'], names);
      if ('path' in named) assert.equal(pathViolation(named.path), null);
      else assert.notEqual(named.rejected, '');
    }),
    runs(50, 500),
  );
});

test('names are not truncated: a name that is too long is rejected', () => {
  assert.ok('path' in toPath([], ['a'.repeat(128)]));
  for (const length of [129, 1024, 100_000]) assert.ok('rejected' in toPath([], ['a'.repeat(length)]), String(length));
  assert.ok(
    'rejected' in
      toPath(
        [],
        Array.from({ length: 33 }, () => 'a'),
      ),
  );
});
