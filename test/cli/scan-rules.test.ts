// Tests findings: quotes, allowed lines, overlaps, env files, and linear time. Examples are joined, so that a scan of
// this file finds none.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { findInEnvFile, isEnvFile } from '../../src/cli/scan/env-file.ts';
import { ALLOW_COMMENT, findInText } from '../../src/cli/scan/text.ts';

import { SECRET_PATTERNS } from '../../src/masking/secret-patterns.ts';
import { assertGrowth } from '../kit/growth.ts';
import { scaled } from '../kit/scale.ts';

/** Letters and digits that look random, and are the same in each run. */
const random = (length: number, alphabet = 'aZ3kQ9xB7mN2pL5vR8tW4yC6'): string =>
  Array.from({ length }, (_, at) => alphabet[(at * 7 + (at >> 3) * 5) % alphabet.length]).join('');

test('in a configuration file a value needs no quotes', () => {
  const text = `api_token: ${random(24)}\nclient_secret = ${random(24)}\n`;
  assert.deepEqual(
    findInText(text, 'a.yaml').map(({ name }) => name),
    ['api_token', 'client_secret'],
  );
  assert.deepEqual(findInText(text, 'a.ts'), []);
});

test('only a line with the allow comment is skipped', () => {
  const key = `ghp_${random(36)}`;
  const text = `a ${key} # ${ALLOW_COMMENT}\nb ${key}\n// ${ALLOW_COMMENT}\nc ${key}`;
  assert.deepEqual(
    findInText(text, 'a.ts').map(({ line }) => line),
    [2, 4],
  );
});

test('a secret that matches two rules is reported once, by the match that begins first', () => {
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

/** Prefixes of matches, which a malicious text repeats. */
const PREFIXES = readFileSync(path.join(import.meta.dirname, 'scan-corpus.txt'), 'utf8')
  .split('\n')
  .flatMap((line) => line.split(' | ').slice(2))
  .map((template) => template.replace(/\{\w+:\d+\}/g, 'aZ3kQ9xB7mN2pL5v').slice(0, -4));

test('every rule takes linear time', () => {
  const size = scaled(16, 64) * 1024;
  const parts = [
    ...SECRET_PATTERNS.map(({ keyword }) => keyword),
    ...PREFIXES,
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
      const text = filling.repeat(Math.ceil(size / filling.length));
      const search = (length: number) => findInText(text.slice(0, length), 'a.yaml');
      assertGrowth(search, { small: size / 8, times: 8, limit: 30, what: JSON.stringify(filling) });
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
  test(`${file} is ${isOne ? '' : 'not '}an env file`, () => assert.equal(isEnvFile(file), isOne));
}

test('in an env file a secret name is enough, and values that are not secrets are not reported', () => {
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
    `SIGNING_SECRET=hunter3 # ${ALLOW_COMMENT}`,
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

test('an env file that cannot be parsed is searched as text', () => {
  const text = `what is this?\nx ghp_${random(36)}\n`;
  assert.deepEqual(
    findInEnvFile(Buffer.from(text), '.env').map(({ rule, name }) => [rule, name]),
    [['github-token', null]],
  );
});
