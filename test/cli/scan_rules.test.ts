// Key-shaped strings: what each rule takes, what it leaves alone, and that no text makes it slow. Examples are put together here, so
// that this file holds none.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findInEnvFile, isEnvFile } from '../../src/cli/scan/envfile.ts';
import { ALLOWANCE } from '../../src/cli/scan/finding.ts';
import { RULES } from '../../src/cli/scan/rules.ts';
import { findInText } from '../../src/cli/scan/text.ts';
import { assertGrowth } from '../kit/growth.ts';

/** Letters and digits that look random, the same each time. */
const random = (length: number, alphabet = 'aZ3kQ9xB7mN2pL5vR8tW4yC6'): string =>
  Array.from({ length }, (_, at) => alphabet[(at * 7 + (at >> 3) * 5) % alphabet.length]).join('');
const hex = (length: number): string => random(length, '0123456789abcdef');
const upper = (length: number): string => random(length, 'ABCDEFGH234567');

const TRUE: Readonly<Record<string, readonly string[]>> = {
  'leasehold-token': [`lha_${random(43)}`, `lhs_${random(43)}`],
  'aws-access-key': [`AKIA${upper(16)}`, `aws_access_key_id = ASIA${upper(16)}`],
  'github-token': [...'oprsu'].map((kind) => `gh${kind}_${random(36)}`),
  'github-fine-grained-token': [`github_pat_${random(22)}_${random(59)}`],
  'gitlab-token': [`glpat-${random(20)}`, `glrt-${random(20)}`],
  'slack-token': [`xoxb-1234567890-${random(24)}`],
  'slack-app-token': [`xapp-1-A0B1C2D3E4F-${random(20)}`],
  'slack-webhook': [`https://hooks.slack.com/services/T${upper(8)}/B${upper(8)}/${random(24)}`],
  'stripe-key': [`sk_live_${random(24)}`, `rk_test_${random(24)}`],
  'stripe-webhook-secret': [`whsec_${random(32)}`],
  'anthropic-key': [`sk-ant-api03-${random(93)}AA`],
  'openrouter-key': [`sk-or-v1-${hex(64)}`],
  'openai-key': [`sk-proj-${random(60)}`, `sk-${random(48)}`],
  'groq-key': [`gsk_${random(52)}`],
  'xai-key': [`xai-${random(80)}`],
  'hugging-face-token': [`hf_${random(34)}`],
  'replicate-token': [`r8_${random(37)}`],
  'google-api-key': [`AIza${random(35)}`],
  'google-oauth-secret': [`GOCSPX-${random(28)}`],
  'google-access-token': [`ya29.${random(60)}`],
  'npm-token': [`//registry.npmjs.org/:_authToken=npm_${random(36)}`],
  'pypi-token': [`pypi-AgEIcHlwaS5vcmc${random(60)}`],
  'rubygems-key': [`rubygems_${hex(48)}`],
  'docker-token': [`dckr_pat_${random(27)}`],
  'digitalocean-token': [`dop_v1_${hex(64)}`],
  'vault-token': [`hvs.${random(90)}`],
  'doppler-token': [`dp.pt.${random(43)}`],
  '1password-token': [`ops_eyJ${random(80)}`],
  'sendgrid-key': [`SG.${random(22)}.${random(43)}`],
  'shopify-token': [`shpat_${hex(32)}`],
  'linear-key': [`lin_api_${random(40)}`],
  'tailscale-key': [`tskey-auth-${random(17)}-${random(32)}`],
  'databricks-token': [`dapi${hex(32)}`],
  'telegram-token': [`1234567890:AA${random(33)}`],
  'azure-storage-key': [`AccountName=x;AccountKey=${random(86)}==`],
  'age-key': [`AGE-SECRET-KEY-1${upper(58)}`],
  'private-key': ['', 'RSA ', 'EC ', 'OPENSSH ', 'ENCRYPTED '].flatMap((kind) => [
    `-----BEGIN ${kind}PRIVATE KEY-----\n${random(64)}\n`,
    `"key": "-----BEGIN ${kind}PRIVATE KEY-----\\n${random(64)}\\n"`,
  ]),
  jwt: [`eyJ${random(30)}.eyJ${random(60)}.${random(43)}`],
  'url-with-password': [
    `postgres://shop:${random(12)}@db.example.org:5432/shop`,
    `redis://:${random(12)}@10.0.0.1:6379`,
    `mongodb+srv://ann:${random(9)}@cluster.mongodb.net`,
  ],
  'secret-assigned': [
    `const apiKey = '${random(24)}';`,
    `"client_secret": "${random(24)}",`,
    `DB_PASSWORD => "${random(16)}"`,
    `password: \`${random(16)}\``,
  ],
};

for (const [rule, examples] of Object.entries(TRUE)) {
  test(`${rule} is found, and never shown`, () => {
    for (const example of examples) {
      const text = `one\n${example}\nthree`;
      const found = findInText(text, 'a.ts');
      assert.deepEqual(
        found.map((finding) => [finding.rule, finding.line]),
        [[rule, 2]],
        example,
      );
      const [{ hint } = { hint: '' }] = found;
      assert.match(hint, /^.{0,4}…$/);
      assert.ok(example.includes(hint.slice(0, -1)));
      assert.ok(!JSON.stringify(found).includes(random(9)) && !JSON.stringify(found).includes(hex(9)), example);
    }
  });
}

test('every rule of the table has an example, and a name of its own', () => {
  const names = RULES.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.deepEqual(
    names.filter((name) => TRUE[name] === undefined),
    [],
  );
});

const FALSE: readonly string[] = [
  'AKIAIOSFODNN7EXAMPLE',
  `XAKIA${upper(16)}`,
  `AKIA${upper(17)}`,
  `xghp_${random(36)}`,
  'ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
  `sk-${random(20)}`,
  'task-list-of-things-that-are-to-be-done-by-somebody',
  `npm_${random(20)}`,
  'hf_transformers_are_not_tokens',
  `eyJ${random(30)}.${random(20)}`,
  '-----BEGIN PRIVATE KEY-----',
  '/^-----BEGIN PRIVATE KEY-----\\s+([A-Za-z0-9+/=\\s]+?)/',
  `-----BEGIN PUBLIC KEY-----\n${random(64)}`,
  `-----BEGIN CERTIFICATE-----\n${random(64)}`,
  'postgres://localhost:5432/shop',
  'postgres://user:password@localhost/shop',
  // A template, in quotes here.
  'postgres://shop:$' + '{PASSWORD}@db/shop',
  'https://<user>:<password>@example.org',
  'https://user:xxxx@example.org',
  'https://example.org:8080/@scope/package',
  `password = getPassword('${random(20)}')`,
  "const password = process.env['DB_PASSWORD'];",
  'password: "Please enter your password"',
  'password = "changeme12345678"',
  'apiKey: "your-api-key-goes-here-1"',
  "secretName: 'shop-database-secret-1'",
  "tokenFile = 'config/tokens-2.json'",
  'token: "leasehold://shop/token-1a2b3c4d"',
  `tokenHash: '${hex(64)}'`,
  `publicKey: '${random(43)}='`,
  `"integrity": "sha512-${random(86)}=="`,
  `const password = ${random(20)};`,
  `const commit = '${hex(40)}';`,
];

for (const text of FALSE) {
  test(`left alone: ${text.slice(0, 50).replaceAll('\n', ' ')}`, () => assert.deepEqual(findInText(text, 'a.ts'), []));
}

test('in a file of settings a value needs no quotes', () => {
  const text = `api_token: ${random(24)}\nclient_secret = ${random(24)}\n`;
  assert.deepEqual(
    findInText(text, 'a.yaml').map(({ name }) => name),
    ['api_token', 'client_secret'],
  );
  assert.deepEqual(findInText(text, 'a.ts'), []);
});

test('a line that allows it is passed over, and no other', () => {
  const key = `ghp_${random(36)}`;
  const text = `a ${key} # ${ALLOWANCE}\nb ${key}\n// ${ALLOWANCE}\nc ${key}`;
  assert.deepEqual(
    findInText(text, 'a.ts').map(({ line }) => line),
    [2, 4],
  );
});

test('a secret that two rules take is told once, by the one that begins first', () => {
  const url = `postgres://shop:${random(12)}@db.example.org/shop`;
  const found = findInText(`const dbPassword = '${url}';\nconst githubToken = "ghp_${random(36)}";`, 'a.ts');
  assert.deepEqual(
    found.map(({ rule, line }) => [rule, line]),
    [
      ['url-with-password', 1],
      ['github-token', 2],
    ],
  );
});

test('no text makes a rule slow', () => {
  const quarter = 256 * 1024;
  const parts = [
    ...RULES.map(({ keyword }) => keyword),
    ...Object.values(TRUE).flatMap((examples) => examples.map((example) => example.slice(0, -4))),
    ...[
      'a',
      '=',
      ':',
      'a=',
      'token=',
      'token="',
      'password: "',
      '://',
      'a://a:',
      'a://a:a',
      '-----BEGIN ',
      'eyJ',
      'eyJ.',
      '-',
    ],
    ...[
      '-----BEGIN A ',
      '-----BEGIN PRIVATE KEY-----',
      '-----BEGIN PRIVATE KEY-----\n',
      ' ',
      '\n',
      '"',
      '\\n',
      '.',
      '/',
    ],
  ];
  for (const part of parts) {
    for (const filling of [part, `${part} `, `${part}aaaaaaaa`]) {
      const text = filling.repeat(Math.ceil(quarter / filling.length));
      const look = (length: number) => findInText(text.slice(0, length), 'a.yaml');
      assertGrowth(look, { small: quarter / 16, times: 8, limit: 30, what: JSON.stringify(filling) });
    }
  }
});

const ENV_FILES: readonly [file: string, isOne: boolean][] = [
  ['.env', true],
  ['a/b/.env', true],
  ['.env.local', true],
  ['.env.production', true],
  ['prod.env', true],
  ['.env.example', false],
  ['.env.sample', false],
  ['.env.local.template', false],
  ['env', false],
  ['.envrc', false],
  ['a.environment', false],
];

for (const [file, isOne] of ENV_FILES) {
  test(`${file} is ${isOne ? 'an' : 'no'} env file`, () => assert.equal(isEnvFile(file), isOne));
}

test('in an env file a name that says so is enough, and what is no secret is left alone', () => {
  const text = [
    'NODE_ENV=production',
    'PORT=3000',
    'DB_PASSWORD=hunter2',
    'TOKEN_TTL=3600',
    'TOKEN_URL=https://example.org/token',
    'KEY_FILE=/etc/key.pem',
    'API_KEY=leasehold://shop/api-key',
    'OTHER_SECRET=$' + '{FROM_ELSEWHERE}',
    'EMPTY_TOKEN=',
    'PLACE_TOKEN=changeme',
    `DATABASE_URL="postgres://shop:${random(9)}@db/shop"`,
    `# OLD=ghp_${random(36)}`,
    `SIGNING_SECRET=hunter3 # ${ALLOWANCE}`,
    'MULTI_SECRET="line\nline"',
  ].join('\r\n');
  assert.deepEqual(
    findInEnvFile(Buffer.from(text), '.env').map(({ line, rule, name }) => [line, rule, name]),
    [
      [3, 'secret-assigned', 'DB_PASSWORD'],
      [11, 'url-with-password', 'DATABASE_URL'],
      [12, 'github-token', null],
      [14, 'secret-assigned', 'MULTI_SECRET'],
    ],
  );
  assert.doesNotMatch(JSON.stringify(findInEnvFile(Buffer.from(text), '.env')), /hunter/);
});

test('an env file that is none is searched like any text', () => {
  const text = `what is this?\nx ghp_${random(36)}\n`;
  assert.deepEqual(
    findInEnvFile(Buffer.from(text), '.env').map(({ rule, name }) => [rule, name]),
    [['github-token', null]],
  );
});
