// The secret parts of structured values: which are found, which are not, and that they are masked in output.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMasking } from '../../src/masking/masking.ts';
import { secretParts } from '../../src/masking/secret-parts.ts';
import { findSecrets } from '../../src/masking/secret-patterns.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { assertGrowth } from '../kit/growth.ts';
import { scaled } from '../kit/scale.ts';
import { maskText } from './mask-text.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const BODY = `${'MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF'}\nZm9vYmFyYmF6`;
const PEM = `-----BEGIN PRIVATE KEY-----\n${BODY}\n-----END PRIVATE KEY-----\n`;

const PARTS: readonly [what: string, value: string, parts: readonly string[]][] = [
  ['JSON', '{"user":"app-user","password":"hunter22","port":5432}', ['hunter22']],
  [
    'JSON in levels',
    '{"db":{"main":{"passwd":"hunter22"}},"apiKeys":["k1-abcdef","k2-abcdef"]}',
    ['hunter22', 'k1-abcdef', 'k2-abcdef'],
  ],
  ['JSON within JSON', JSON.stringify({ config: JSON.stringify({ client_secret: 'hunter22' }) }), ['hunter22']],
  ['JSON that is a string', JSON.stringify('{"token":"hunter22"}'), ['hunter22']],
  ['a number', '{"secret":12345678}', ['12345678']],
  [
    'a service account',
    JSON.stringify({ private_key_id: 'abcdef0123', private_key: PEM, token_uri: 'https://example.org/token' }),
    [PEM.trim(), BODY],
  ],
  [
    'an object below a secret name',
    '{"credentials":{"user":"app-user","user_id":"u-123456","phrase":"hunter22"}}',
    ['hunter22'],
  ],
  [
    'names with values',
    '[{"name":"DB_PASSWORD","value":"hunter22"},{"name":"REGION","value":"eu-west-1"}]',
    ['hunter22'],
  ],
  ['a JSON web key', '{"kty":"OKP","crv":"Ed25519","x":"public-part","d":"private-part"}', ['private-part']],
  [
    'a Kubernetes secret',
    JSON.stringify({ kind: 'Secret', data: { password: base64('hunter22') } }),
    [base64('hunter22'), 'hunter22'],
  ],
  [
    'a login as Docker keeps it',
    JSON.stringify({ auths: { r: { auth: base64('ann:hunter22') } } }),
    [base64('ann:hunter22'), 'hunter22'],
  ],
  ['JSON by the line', '{"token":"hunter22"}\n{"token":"hunter33"}', ['hunter22', 'hunter33']],
  ['a URL', 'postgres://app-user:hunter22@db.example.org:5432/shop?sslmode=require', ['hunter22']],
  ['a URL with several hosts', 'mongodb://app-user:hunter22@h1:27017,h2:27017/shop', ['hunter22']],
  ['a URL with an encoded password', 'redis://:hunt%40er22@cache:6379', ['hunt%40er22', 'hunt@er22']],
  ['a URL with a slash in the password', 'postgres://app-user:hun/ter22+=@db:5432/shop', ['hun/ter22+=']],
  [
    'a URL with a key in its query',
    'https://example.org/hook?user=app-user&access_token=hunter22&sig=ab%2Bcdefgh',
    ['hunter22', 'ab%2Bcdefgh', 'ab+cdefgh'],
  ],
  ['a JDBC address', 'jdbc:postgresql://db:5432/shop?user=app-user&password=hunter22', ['hunter22']],
  ['a connection string', 'Server=db;Database=shop;User Id=app-user;Password=hunter22;Encrypt=true', ['hunter22']],
  ['a quoted connection string', `Server=db;Pwd="hunter;22";Uid=app-user`, ['hunter;22']],
  ['a connection string of libpq', `host=db user=app-user password='hunter 22' dbname=shop`, ['hunter 22']],
  ['a connection string of Redis', 'cache:6380,password=hunter22,ssl=True', ['hunter22']],
  ['a form', 'grant_type=client_credentials&client_id=app-user&client_secret=hunter22', ['hunter22']],
  [
    'an env file',
    '# settings\nNODE_ENV=production\nexport DB_PASSWORD="hunter22"\nAPI_TOKEN=hunter33 # old\n',
    ['hunter22', 'hunter33'],
  ],
  ['YAML', 'database:\n  user: app-user\n  password: hunter22\nlist:\n  - token: hunter33\n', ['hunter22', 'hunter33']],
  [
    'a PEM bundle',
    `-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUc2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n${PEM}`,
    [BODY],
  ],
  ['a PEM bundle in one line', PEM.replaceAll('\n', String.raw`\n`), [BODY]],
  ['.netrc', 'machine example.org login app-user password hunter22', ['hunter22']],
  ['a header', `Authorization: Basic ${base64('ann:hunter22')}`, [base64('ann:hunter22'), 'hunter22']],
];

test('the secret parts of structured values are found, and other parts are not', () => {
  const output =
    'app-user db.example.org db:5432 shop eu-west-1 production true client_credentials public-part u-123456 abcdef0123';
  for (const [what, value, parts] of PARTS) {
    const found = secretParts(value);
    for (const part of parts) assert.equal(found.includes(part), true, `${what}: ${part} of ${JSON.stringify(found)}`);
    const masking = createMasking([['V', new Secret(value)]]);
    assert.equal(maskText(masking, output), output, what);
    for (const part of parts) assert.equal(maskText(masking, `<${part}>`), '<[secret]>', what);
    assert.equal(maskText(masking, `<${value}>`).includes('hunter'), false, what);
  }
});

test('parts that are short, common or small numbers are masked only with the whole value', () => {
  for (const value of [
    '{"password":"admin"}',
    '{"password":"Password"}',
    '{"token":1234567,"pin_token":"2024"}',
    'postgres://postgres:postgres@localhost/x',
    '{"token_type":"Bearer-v2","token_expires_in":"3600-seconds","key":"a-name","value":"a-value"}',
    'hunter2-correct-horse',
    'PWD=/srv/app\nA=1',
    'a sentence: with = signs; and, commas & more',
    '',
  ])
    assert.deepEqual(secretParts(value), [], value);
});

test('a part is masked in every encoding', () => {
  const masking = createMasking([['V', new Secret('{"password":"p@ss/w0rd+"}')]]);
  for (const text of [
    encodeURIComponent('p@ss/w0rd+'),
    base64('p@ss/w0rd+'),
    Buffer.from('p@ss/w0rd+').toString('hex'),
  ]) {
    assert.equal(maskText(masking, `<${text}>`), '<[secret]>');
  }
});

test('the parts of a value are bounded, however it is nested', () => {
  const many = JSON.stringify(
    Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`token${at}`, `value-${at}`])),
  );
  assert.equal(secretParts(many).length, 256);
  let nested = '{"token":"hunter22"}';
  for (let level = 0; level < 5; level++) nested = JSON.stringify({ inner: nested });
  assert.deepEqual(secretParts(nested), ['hunter22']);
  const size = scaled(16, 64) * 1024;
  const hostile = [
    '[',
    '{"a":',
    'token=',
    'token=a;token=b,token=c&token=d token=e:',
    'a://b:c@',
    'password: "',
    'a',
    '{"token":"a"}\n',
    "pwd='",
    '"\n',
  ];
  for (const piece of hostile) {
    const value = piece.repeat(Math.ceil(size / piece.length));
    const parse = (length: number) => secretParts(value.slice(0, length));
    assertGrowth(parse, { small: size / 8, times: 8, limit: 30, what: piece });
  }
});

test('a comment after a long gap, and a key with many headers, are parsed in linear time', () => {
  assert.deepEqual(secretParts('token=hunter22   # a comment'), ['hunter22   # a comment', 'hunter22']);
  const gap = (length: number) => secretParts(`token=a${' '.repeat(length)}b #c`);
  assertGrowth(gap, { small: 4 * 1024, times: 8, limit: 30, what: 'a gap' });
  const headings = (length: number) =>
    secretParts(`-----BEGIN PRIVATE KEY-----\n${'a: ,,,,,,,, '.repeat(length)}`.repeat(2));
  assertGrowth(headings, { small: 3, times: 8, limit: 30, what: 'headings' });
});

test('the body of an encrypted key is found after its headers, on separate lines, escaped, or on one line', () => {
  const body = 'MIIEpAIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt';
  const key = ['-----BEGIN RSA PRIVATE KEY-----', 'Proc-Type: 4,ENCRYPTED', 'DEK-Info: AES-128-CBC,3F17F5316E2BAC89'];
  for (const separator of ['\n', '\r\n', String.raw`\n`, ' ', '",\n"', '\n\n']) {
    const found = [...findSecrets([...key, body].join(separator))];
    assert.deepEqual(found, [body], JSON.stringify(separator));
  }
  const comment = `-----BEGIN PGP PRIVATE KEY BLOCK-----\nComment: a key of mine\n\n${body}`;
  assert.equal([...findSecrets(comment)][0], body);
});
