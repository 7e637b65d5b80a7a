// The environment that a program inherits, and values as private files.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { inheritEnvironment, proxyExceptions } from '../../src/run/environment.ts';
import { makePrivateFiles } from '../../src/run/value-files.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { assertGrowth } from '../kit/growth.ts';

const leftOut = (parent: Record<string, string>, keep: readonly string[] = []) =>
  inheritEnvironment(parent, keep).withheld;

const SECRET_NAMES =
  'GITHUB_TOKEN NPM_TOKENS PGPASSWORD MYSQL_PWD DB_PASS DB_PASSWD SECRET_KEY_BASE CLIENT_SECRET OPENAI_API_KEY APIKEY AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GOOGLE_APPLICATION_CREDENTIALS SSH_PRIVATE_KEY STRIPE_KEY ENCRYPTION_KEYS npm_config__auth npm_config__authToken GH_PAT KEY_PASSPHRASE dbPassword SSHPASS DOCKER_AUTH_CONFIG LDAP_BINDPW BINDPW DBPASS DBPWD ROOT_PWORD NETRC BEARER BEARER_AUTH AZURE_STORAGE_CONNECTION_STRING DB_CONN_STR';
const HARMLESS_NAMES =
  'PATH HOME TERM LANG LC_ALL TZ PWD OLDPWD SHELL USER TMPDIR DISPLAY XDG_RUNTIME_DIR XDG_SESSION_ID SSH_AUTH_SOCK SSH_ASKPASS GIT_ASKPASS HTTPS_PROXY http_proxy TOKENIZERS_PARALLELISM KEYBOARD KEYMAP MONKEY AUTHOR PASSAGE COMPASS EDITOR NODE_ENV KUBECONFIG AUTH_URL COMPASS_HOME BYPASS SYSTEMD_ASKPASS CONN_STRATEGY ALL_PROXY NO_PROXY FORBEARER PWD_CHECK';

test('secret variables are detected by name', () => {
  const named = (names: string) => Object.fromEntries(names.split(' ').map((name) => [name, 'x']));
  assert.deepEqual(leftOut(named(SECRET_NAMES)), SECRET_NAMES.split(' ').sort());
  assert.deepEqual(leftOut(named(HARMLESS_NAMES)), []);
});

const letters = (count: number) => 'aB3dE6gH9jK2mN5pQ8sT'.repeat(10).slice(0, count);
const SECRET_VALUES = [
  `ghp_${letters(36)}`,
  `github_pat_${letters(60)}`,
  `glpat-${letters(20)}`,
  `sk-${letters(48)}`,
  `sk-ant-${letters(30)}`,
  `xoxb-${letters(20)}`,
  'AKIAIOSFODNN7EXAMPLE',
  `AIza${letters(35)}`,
  `npm_${letters(36)}`,
  `hvs.${letters(24)}`,
  `lha_${letters(43)}`,
  `eyJ${letters(20)}.eyJ${letters(20)}.${letters(20)}`,
  `-----BEGIN OPENSSH PRIVATE KEY-----\n${letters(70)}`,
  'postgres://app:hunter2@db/app',
  'redis://:hunter2@cache:6379',
  `Bearer ghs_${letters(36)}`,
  `https://hooks.slack.com/services/T0${letters(8)}/B0${letters(8)}/${letters(24)}`,
  `https://discord.com/api/webhooks/123456789/${letters(40)}`,
  `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=${letters(86)}==;EndpointSuffix=core.windows.net`,
  'Server=db;User Id=app;Password=hunter2;',
  `{"auths":{"registry":{"auth":"${letters(24)}"}}}`,
  `hf_${letters(34)}`,
  'me:hunter2@proxy:3128',
];
const HARMLESS_VALUES = [
  '/usr/bin:/bin',
  'https://example.org/a:b@c',
  'http://localhost:8080',
  'git@github.com:a/b.git',
  'ssh://git@host/x',
  '-----BEGIN CERTIFICATE-----',
  'sk-short',
  'https://hooks.slack.com/',
  'Server=db;User Id=app',
  'a:b@c d',
  '12:30@home/x',
  'AKIA',
  '',
];

test('secret variables are detected by value', () => {
  for (const value of SECRET_VALUES) assert.deepEqual(leftOut({ X: value }), ['X'], value);
  for (const value of HARMLESS_VALUES) assert.deepEqual(leftOut({ X: value }), [], value);
  for (const name of ['HTTPS_PROXY', 'http_proxy', 'ALL_PROXY']) {
    assert.deepEqual(leftOut({ [name]: 'http://me:hunter2@proxy:3128' }), [name]);
    assert.deepEqual(leftOut({ [name]: 'http://proxy:3128' }), []);
  }
});

test('no family of names exempts a value, and variables that programs need are always passed on', () => {
  const key = `ghp_${letters(36)}`;
  for (const name of [
    'LC_X',
    'LC_ALL',
    'XDG_X',
    'XDG_ACTIVATION_TOKEN',
    'PAGER',
    'EDITOR',
    'GIT_ASKPASS',
    'home',
    'pwd',
  ])
    assert.deepEqual(leftOut({ [name]: `x ${key}` }), [name], name);
  assert.deepEqual(leftOut({ XDG_TOKEN: 'x', LC_API_KEY: 'x' }), ['LC_API_KEY', 'XDG_TOKEN']);
  assert.deepEqual(leftOut({ XDG_ACTIVATION_TOKEN: 'gnome-shell/Files/1-0_TIME1', PAGER: 'less -R' }), []);
  const directory = '/srv/sk-a-directory-with-a-long-name';
  for (const name of [
    'PATH',
    'HOME',
    'PWD',
    'OLDPWD',
    'DISPLAY',
    'TMPDIR',
    'SSH_AUTH_SOCK',
    'XDG_RUNTIME_DIR',
    'XDG_DATA_DIRS',
  ])
    assert.deepEqual(leftOut({ [name]: directory }), [], name);
});

test('checking a large variable takes time linear in its length', () => {
  for (const part of [
    'a.',
    'eyJ-',
    'a:',
    'x://a:',
    'SG.',
    'a;',
    ';password =',
    'hooks.slack.com/services/',
    '1',
    '"auth" : ',
  ])
    assertGrowth((count) => leftOut({ X: part.repeat(count) }), { small: 10_000, times: 8, limit: 30, what: part });
});

test('--keep passes variables on by name, and * passes all but the vault’s own, which must be named', () => {
  const parent = { GH_TOKEN: 'x', API_KEY: 'y', LEASEHOLD_TOKEN: 'z', leasehold_addr: 'w', A: '1' };
  const kept = (...keep: string[]) => Object.keys(inheritEnvironment(parent, keep).variables).sort();
  assert.deepEqual(kept(), ['A']);
  assert.deepEqual(kept('GH_TOKEN', 'NONE'), ['A', 'GH_TOKEN']);
  assert.deepEqual(kept('*'), ['A', 'API_KEY', 'GH_TOKEN']);
  assert.deepEqual(kept('LEASEHOLD_TOKEN'), ['A', 'LEASEHOLD_TOKEN']);
  assert.deepEqual(leftOut(parent), ['API_KEY', 'GH_TOKEN']);
});

test('files are private, contain values byte for byte, and are removed with their directory', (t) => {
  const runtime = temporaryDirectory(t);
  const files = makePrivateFiles(runtime);
  t.after(() => files.remove());
  assert.equal(dirname(files.directory), runtime);
  const path = files.write('A', new Secret('grüß\r\n\u0000'));
  assert.deepEqual([statSync(files.directory).mode & 0o777, statSync(path).mode & 0o777], [0o700, 0o600]);
  assert.equal(readFileSync(path, 'utf8'), 'grüß\r\n\u0000');
  files.remove();
  files.remove();
  assert.equal(existsSync(files.directory), false);
});

test('a directory that others can enter or that is a link is not used, and a file does not follow a link', (t) => {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'open'));
  chmodSync(join(directory, 'open'), 0o755);
  symlinkSync(directory, join(directory, 'link'));
  for (const place of [join(directory, 'open'), join(directory, 'link'), join(directory, 'none'), 'relative']) {
    const files = makePrivateFiles(place);
    assert.notEqual(dirname(files.directory), place);
    files.remove();
  }
  const files = makePrivateFiles(directory);
  t.after(() => files.remove());
  symlinkSync(join(directory, 'target'), join(files.directory, 'A'));
  assert.throws(() => files.write('A', new Secret('x')), { code: 'EEXIST' });
  assert.equal(existsSync(join(directory, 'target')), false);
  for (const name of ['../x', 'a/b', '.', '..'])
    assert.throws(() => files.write(name, new Secret('x')), /A file name in .* must be 1 to 255 bytes/);
});

const exceptionsOf = (url: string, environment: Readonly<Record<string, string>> = {}) =>
  proxyExceptions(environment, [`${url}/use/a/-`, `${url}/use/b/-`]);

test('both spellings exempt a host that is called over plain HTTP or is this machine', () => {
  for (const [url, host] of [
    ['http://127.0.0.1:7700', '127.0.0.1'],
    ['https://localhost:7700', 'localhost'],
    ['http://[::1]:7700', '::1'],
    ['http://vault.internal', 'vault.internal'],
  ] as const)
    assert.deepEqual(exceptionsOf(url), { NO_PROXY: host, no_proxy: host });
});

test('https to another machine may use the proxy', () => {
  assert.deepEqual(exceptionsOf('https://vault.example.org', { NO_PROXY: 'a' }), {});
});

test('existing exceptions are kept, and one that is set alone counts for both spellings', () => {
  const url = 'http://127.0.0.1:7700';
  const both = { NO_PROXY: 'a, .b', no_proxy: 'c' };
  assert.deepEqual(exceptionsOf(url, both), { NO_PROXY: 'a,.b,127.0.0.1', no_proxy: 'c,127.0.0.1' });
  assert.deepEqual(exceptionsOf(url, { no_proxy: 'a' }), { NO_PROXY: 'a,127.0.0.1', no_proxy: 'a,127.0.0.1' });
  assert.deepEqual(exceptionsOf(url, { NO_PROXY: '*' }), { NO_PROXY: '*', no_proxy: '*' });
  assert.equal(exceptionsOf(url, { NO_PROXY: '127.0.0.1' })['NO_PROXY'], '127.0.0.1');
});
