// Tests the exports of password managers: every non-empty field, no deleted item, and malicious archives.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { strToU8, zipSync } from 'fflate';
import type { ImportSource, SourceFormat } from '../../src/cli/import/item.ts';
import { formatOf, readSource } from '../../src/cli/import/sources.ts';
import { UsageError } from '../../src/platform/errors.ts';

const read = (bytes: Uint8Array | string, name: string, wanted: SourceFormat | null = null): Promise<ImportSource> => {
  const all = typeof bytes === 'string' ? strToU8(bytes) : bytes;
  return readSource(all, name, formatOf(all, name, wanted));
};
const shown = ({ drafts }: ImportSource) =>
  drafts.map(({ names, value, type }) => `${names.join('/')} = ${value.reveal()} (${type})`);
const rejects = (reading: Promise<ImportSource>, rule: RegExp) =>
  assert.rejects(reading, (error) => error instanceof UsageError && rule.test(error.message));

const item = (title: string, details: object, state = 'active') => ({
  uuid: title,
  state,
  categoryUuid: '001',
  overview: { title, url: 'https://shop.example.org/login?key=hunter1' },
  details: { loginFields: [], notesPlain: '', sections: [], ...details },
});
const ITEMS = [
  item('Shop', {
    loginFields: [
      { value: 'ann', id: '', name: 'email', fieldType: 'T', designation: 'username' },
      { value: 'hunter2', id: '', name: 'pw', fieldType: 'P', designation: 'password' },
      { value: '', id: '', name: 'empty', fieldType: 'T' },
    ],
    notesPlain: 'a note',
    sections: [
      { title: 'Keys', name: 'k', fields: [{ title: 'api token', id: 'x', value: { concealed: 'tok' } }] },
      { title: '', fields: [{ title: 'one-time password', id: 'y', value: { totp: 'otpauth://totp/x' } }] },
      { title: '', fields: [{ title: 'mail', id: 'z', value: { email: { email_address: 'a@b.c', provider: null } } }] },
      { title: '', fields: [{ title: 'until', id: 'd', value: { monthYear: 202612 } }] },
    ],
  }),
  item('Key', {
    sections: [{ title: '', fields: [{ title: 'private key', value: { sshKey: { privateKey: 'PEM' } } }] }],
  }),
  item('Old', { password: 'old' }, 'archived'),
  item('Alone', { password: 'pass' }),
];
const pux = (items: readonly object[]) =>
  zipSync({
    'export.attributes': strToU8('{"version":3}'),
    'export.data': strToU8(JSON.stringify({ accounts: [{ attrs: {}, vaults: [{ attrs: { name: 'Team' }, items }] }] })),
    'files/x___scan.pdf': strToU8('pdf'),
  });

test('1Password: every non-empty field becomes VAULT/ITEM/FIELD', async () => {
  const source = await read(pux(ITEMS), 'export.1pux');
  assert.deepEqual(shown(source), [
    'Team/Shop/username = ann (null)',
    'Team/Shop/password = hunter2 (password)',
    'Team/Shop/notes = a note (note)',
    'Team/Shop/Keys/api token = tok (token)',
    'Team/Shop/one-time password = otpauth://totp/x (totp)',
    'Team/Shop/mail = a@b.c (null)',
    'Team/Shop/until = 202612 (null)',
    'Team/Key/private key = PEM (ssh_key)',
    'Team/Alone/password = pass (password)',
  ]);
  assert.deepEqual(source.skipped, [{ where: 'Team › Old', reason: 'it is archived', kind: 'rejected' }]);
  // Only the host of the address: a URL may contain a key, and descriptions are listed.
  assert.equal(source.drafts[0]?.description, 'shop.example.org');
});

test('1Password: a skipped attachment is reported', async () => {
  const { skipped } = await read(pux([item('Deed', { documentAttributes: { fileName: 'deed.pdf' } })]), 'a.1pux');
  assert.deepEqual(
    skipped.map(({ kind }) => kind),
    ['rejected'],
  );
});

test('a malicious archive is rejected', async (t) => {
  const bomb = zipSync({ 'export.data': new Uint8Array(80 * 1024 * 1024) });
  const honest = pux(ITEMS);
  const lying = zipSync({ 'export.data': new Uint8Array(80 * 1024 * 1024) });
  // Both headers declare an unpacked size of 100 bytes.
  for (const [signature, at] of [
    [0x04034b50, 22],
    [0x02014b50, 24],
  ] as const) {
    const view = new DataView(lying.buffer);
    for (let from = 0; from < lying.length - 4; from++) {
      if (view.getUint32(from, true) === signature) view.setUint32(from + at, 100, true);
    }
  }
  // Its ZIP64 end record declares four billion files.
  const end = Buffer.from(honest.slice(-22));
  const many = Buffer.concat([honest.slice(0, -22), Buffer.alloc(56), Buffer.alloc(20), end]);
  const [large, locator] = [honest.length - 22, honest.length + 34];
  many.writeUInt32LE(0x06064b50, large);
  many.writeUInt32LE(0xffffffff, large + 32);
  many.writeUInt32LE(0x07064b50, locator);
  many.writeUInt32LE(large, locator + 8);
  const other = Buffer.from(zipSync({ 'export.data': strToU8('{"accounts":[]}'), 'export.date': strToU8('x') }));
  const twice = Buffer.from(other.toString('latin1').replaceAll('export.date', 'export.data'), 'latin1');
  const cases: readonly [name: string, bytes: Uint8Array, rule: RegExp][] = [
    ['larger than the bound', bomb, /too large when unpacked/],
    ['with its data twice', twice, /contains export\.data twice/],
    ['with false sizes', lying, /not strict JSON|cannot be read/],
    ['without its data', zipSync({ other: strToU8('x') }), /does not contain export\.data/],
    ['truncated', honest.slice(0, honest.length - 30), /cannot be read/],
    ['with a false number of files', many, /contains more than 100000 files/],
    ['not an archive', strToU8('hello'), /is not a \.1pux file/],
    ['without JSON', zipSync({ 'export.data': strToU8('hunter2') }), /not strict JSON/],
    ['with other JSON', zipSync({ 'export.data': strToU8('{"a":1}') }), /no accounts list/],
  ];
  for (const [name, bytes, rule] of cases) await t.test(name, () => rejects(read(bytes, 'a.1pux'), rule));
});

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
    { type: 2, name: 'Note', notes: 'only a note', secureNote: { type: 0 } },
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

test('a .env file: quotes, comments, CRLF, a byte order mark, and skipped references', async () => {
  const text =
    '\ufeff# a comment\r\nexport DB_PASSWORD="hunter2"\r\nEMPTY=\r\nREF=leasehold://shop/key\r\nTOKEN=abc # no\r\n';
  const source = await read(text, '.env');
  assert.deepEqual(shown(source), ['DB_PASSWORD = hunter2 (password)', 'EMPTY =  (null)', 'TOKEN = abc (token)']);
  assert.deepEqual(
    source.drafts.map(({ where }) => where),
    ['.env:2', '.env:3', '.env:5'],
  );
  assert.deepEqual(
    source.skipped.map(({ where, kind }) => [where, kind]),
    [['.env:4', 'empty']],
  );
  await rejects(read('what is this', '.env'), /line 1/);
});

const GUESSES: readonly [text: string, name: string, format: string][] = [
  ['A=1', '.env', 'env'],
  ['{"a":1}', 'secrets', 'json'],
  ['\ufeff {"a":1}', 'x.txt', 'json'],
  ['{ "encrypted": false, "items": [] }', 'x.json', 'bitwarden'],
  ['PK\u0003\u0004', 'x', '1password'],
  ['a,b', 'X.CSV', 'csv'],
];

for (const [text, name, format] of GUESSES) {
  test(`${name} that begins with ${JSON.stringify(text)} is read as ${format}`, () =>
    assert.equal(formatOf(strToU8(text), name, null), format));
}

test('bytes that are not UTF-8 are rejected', () =>
  rejects(read(new Uint8Array([0x7b, 0xff, 0xfe]), 'a.json'), /is not text in UTF-8/));
