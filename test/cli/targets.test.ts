// `leasehold target put|show|delete` and `leasehold put --service`: their requests, their output, and their errors.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { standBetween } from '../client/fault-proxy.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const between = await standBetween({ after }, service);
const home = newHome({ after }, { LEASEHOLD_ADDR: between.address, LEASEHOLD_TOKEN: service.adminToken });
const { leasehold } = home;
const caPem = readFileSync(makeCertificate({ after }, 'DNS:localhost').certFile, 'utf8');
writeFileSync(join(home.path, 'ca.pem'), caPem);
for (const path of ['shop/key', 'shop/other']) await leasehold(['put', path, '-'], { input: 'x' });

const put = (...words: string[]) => leasehold(['target', 'put', 'shop/key', ...words]);
const lastPut = () => JSON.parse(between.seen.findLast(({ method }) => method === 'PUT')?.body ?? '');
const read = async (path = 'shop/key') => JSON.parse((await leasehold(['target', 'show', path, '-o', 'json'])).stdout);
/** The response of a service that fills the fields from its catalogue. */
const FILLED = {
  path: 'shop/key',
  service: 'openai',
  updated_at: '2026-01-01T00:00:00.000Z',
  placement: { kind: 'bearer' },
  targets: [{ origin: 'https://api.openai.com', paths: ['/v1/*'], methods: ['GET'], allow_networks: [], ca_pem: null }],
};
const fillNext = () =>
  between.next({ status: 200, body: JSON.stringify({ data: FILLED }) }, ({ method }) => method === 'PUT');

test('target put writes every field, and target show shows it', async () => {
  const { code, stdout, stderr } = await put(
    ...['--origin', 'https://a.example.com', '--origin', 'https://b.example.com:8443', '--path', '/v1/*,/v2/x'],
    ...['--method', 'get', '--method', 'POST', '--allow-network', '10.0.0.0/8', '--target-ca-file', 'ca.pem'],
    ...['--header', 'X-Api-Key=Key {value}'],
  );
  assert.equal(code, 0, stderr);
  const target = { paths: ['/v1/*', '/v2/x'], methods: ['GET', 'POST'], allow_networks: ['10.0.0.0/8'], ca_pem: caPem };
  const { updated_at, ...usage } = await read();
  assert.deepEqual(usage, {
    path: 'shop/key',
    service: null,
    targets: [
      { origin: 'https://a.example.com', ...target },
      { origin: 'https://b.example.com:8443', ...target },
    ],
    placement: { kind: 'header', name: 'X-Api-Key', template: 'Key {value}' },
  });
  const shown = [
    'path        shop/key',
    'service     -',
    'sent_as     header X-Api-Key: Key {value}',
    `updated_at  ${updated_at}`,
    '',
    'ORIGIN                      PATHS         METHODS    ALLOW NETWORKS  CERTIFICATES',
    'https://a.example.com       /v1/*, /v2/x  GET, POST  10.0.0.0/8      own authority',
    'https://b.example.com:8443  /v1/*, /v2/x  GET, POST  10.0.0.0/8      own authority',
    '',
  ].join('\n');
  assert.equal(stdout, shown);
  assert.equal((await leasehold(['target', 'show', 'shop/key'])).stdout, shown);
  assert.equal(stderr, 'Agents with the action use on shop/key can use it there.\n');
});

const PLACEMENTS: readonly (readonly [words: string[], placement: object, shown: string])[] = [
  [['--bearer'], { kind: 'bearer' }, 'bearer token'],
  [['--header', 'X-Key'], { kind: 'header', name: 'X-Key', template: '{value}' }, 'header X-Key: {value}'],
  [['--basic'], { kind: 'basic' }, 'basic'],
  [['--basic', 'bot'], { kind: 'basic', username: 'bot' }, 'basic with user bot'],
  [['--basic=bot'], { kind: 'basic', username: 'bot' }, 'basic with user bot'],
  [['--query', 'key'], { kind: 'query', name: 'key' }, 'query parameter key'],
];

for (const [words, placement, shown] of PLACEMENTS) {
  test(`the value is sent as ${shown}: ${words.join(' ')}`, async () => {
    const { code, stdout } = await put(...words, '--origin', 'https://api.example.com');
    assert.deepEqual([code, stdout.includes(`sent_as     ${shown}\n`)], [0, true]);
    assert.deepEqual((await read()).placement, placement);
  });
}

test('a wrong or missing flag is named, and nothing is sent', async () => {
  const at = ['--origin', 'https://api.example.com'];
  const before = between.seen.length;
  for (const [words, message] of [
    [['--bearer'], /give --service NAME or --origin URL\.\n/],
    [at, /give one of --bearer, --header, --basic and --query\.\n/],
    [[...at, '--bearer', '--query', 'key'], /give only one of --bearer/],
    [['--origin', 'https://api.example.com/v1', '--bearer'], /^leasehold: --origin: must be an origin such as/],
    [['--origin', 'http://api.example.com', '--bearer'], /^leasehold: --origin: may be http only with --allow-network/],
    [[...at, '--bearer', '--path', 'v1'], /^leasehold: --path: must be a pattern/],
    [[...at, '--bearer', '--method', 'TRACE'], /^leasehold: --method: must be an HTTP method/],
    [[...at, '--bearer', '--allow-network', '10.0.0.0'], /^leasehold: --allow-network: must be a network/],
    [[...at, '--bearer', '--target-ca-file', 'none.pem'], /^leasehold: none\.pem: cannot be read \(ENOENT\)/],
    [[...at, '--header', 'Host'], /^leasehold: --header: must be the name of a header/],
    [[...at, '--header', 'X-Key=no value'], /^leasehold: --header: must be visible ASCII that contains \{value\}/],
    [[...at, '--basic', 'a:b'], /^leasehold: --basic: must be 1 to 128/],
    [[...at, '--query', 'a b'], /^leasehold: --query: must be 1 to 64/],
    [['--service', 'opnai'], /^leasehold: --service: unknown service; did you mean openai\?\n {2}anthropic, /],
    [['--service', 'aws'], /^leasehold: --service: aws cannot be used yet: /],
    [['--service', 'jira'], /each customer of jira has its own host\.\n {2}Add --origin URL, of the form https:\/\/\*/],
    [['--service', 'jira', '--origin', 'https://evil.example'], /^leasehold: --origin: must be a host of jira, of/],
  ] as const) {
    const { code, stdout, stderr } = await put(...words);
    assert.deepEqual([code, stdout], [1, ''], words.join(' '));
    assert.match(stderr, message);
  }
  assert.equal(between.seen.length, before);
});

test('target put --service sends the name only, and flags override the catalogue', async () => {
  fillNext();
  assert.equal((await put('--service', 'openai')).code, 0);
  assert.deepEqual(lastPut(), { service: 'openai' });
  fillNext();
  await put('--service', 'openai', '--path', '/v1/models');
  assert.deepEqual(lastPut(), {
    service: 'openai',
    targets: [{ origin: 'https://api.openai.com', paths: ['/v1/models'] }],
  });
  fillNext();
  await put('--service', 'openai', '--origin', 'https://eu.example.com', '--query', 'key');
  assert.deepEqual(lastPut(), {
    service: 'openai',
    targets: [{ origin: 'https://eu.example.com' }],
    placement: { kind: 'query', name: 'key' },
  });
  fillNext();
  await put('--service', 'jira', '--origin', 'https://us.atlassian.net');
  assert.deepEqual(lastPut(), {
    service: 'jira',
    targets: [{ origin: 'https://us.atlassian.net', paths: ['/rest/*'] }],
  });
});

test('--add keeps what exists, and a target at an origin that exists has its networks and authorities', async () => {
  const at = ['--origin', 'https://a.example.com'];
  await put(...at, '--path', '/v1/*', '--allow-network', '10.0.0.0/8', '--target-ca-file', 'ca.pem', '--query', 'key');
  const [first] = (await read()).targets;
  const { code } = await put(
    '--add',
    ...at,
    '--origin',
    'https://b.example.com',
    '--path',
    '/v2/x',
    '--method',
    'POST',
  );
  assert.equal(code, 0);
  const { targets, placement } = await read();
  const added = { ...first, paths: ['/v2/x'], methods: ['POST'] };
  const other = { ...added, origin: 'https://b.example.com', allow_networks: [], ca_pem: null };
  assert.deepEqual([targets, placement], [[first, added, other], { kind: 'query', name: 'key' }]);
  const kept = await put('--add', ...at, '--bearer');
  assert.deepEqual([kept.code, /--add keeps the placement/.test(kept.stderr)], [1, true]);
  const none = await leasehold(['target', 'put', 'shop/other', '--add', ...at]);
  assert.match(none.stderr, /NOT_FOUND[\s\S]*leasehold target put shop\/other --service NAME\n$/);
});

test('target delete asks, and then the credential has no targets', async () => {
  await put('--origin', 'https://api.example.com', '--bearer');
  const dry = await leasehold(['target', 'delete', 'shop/key', '--dry-run']);
  assert.deepEqual(
    [dry.code, dry.stderr],
    [0, 'shop/key: 1 target will be deleted, and requests in flight aborted. Nothing was done.\n'],
  );
  assert.equal((await leasehold(['target', 'delete', 'shop/key'])).code, 1, 'no terminal can confirm it');
  const done = await leasehold(['target', 'delete', 'shop/key', '--yes']);
  assert.deepEqual([done.code, done.stderr], [0, 'Deleted the targets of shop/key.\n']);
  const none = await leasehold(['target', 'show', 'shop/key']);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /NOT_FOUND[\s\S]*\n {2}To set them: leasehold target put shop\/key --service NAME\n$/);
});

test('an agent without list or store learns what would grant it', async () => {
  await leasehold(['agent', 'add', 'bot']);
  for (const [words, action] of [
    [['target', 'show', 'shop/key'], 'list'],
    [['target', 'put', 'shop/key', '--origin', 'https://api.example.com', '--bearer'], 'store'],
    [['target', 'delete', 'shop/key', '--yes'], 'store'],
  ] as const) {
    const { code, stdout, stderr } = await leasehold([...words, '--agent', 'bot']);
    assert.deepEqual([code, stdout], [2, ''], words.join(' '));
    assert.match(stderr, new RegExp(`leasehold policy explain bot ${action} shop/key\n$`));
  }
});

test('put --service stores the value and then sets the targets of the catalogue', async () => {
  fillNext();
  const { code, stdout, stderr } = await leasehold(['put', 'openai/key', '-', '--service', 'openai'], {
    input: 'sk-test-0123456789',
  });
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(stdout, 'path     openai/key\ntype     generic\nversion  1\nservice  openai\n');
  const calls = between.seen.slice(-2).map(({ method, path }) => `${method} ${path}`);
  assert.deepEqual(calls, ['POST /api/v1/credentials', 'PUT /api/v1/targets/openai/key']);
  assert.deepEqual(lastPut(), { service: 'openai' });
});

test('put --service warns of a value that is not a key of the service, and needs a host where customers have one', async () => {
  fillNext();
  const other = await leasehold(['put', 'openai/key', '-', '--service', 'openai'], { input: 'ghp_secret' });
  assert.equal(other.stderr, 'WARNING  keys of openai begin with sk-, and this value does not.\n');
  const before = between.seen.length;
  for (const [words, message] of [
    [['--service', 'opnai'], /did you mean openai\?/],
    [['--service', 'jira'], /Add --origin URL, of the form https:\/\/\*\.atlassian\.net/],
    [['--service', 'openai', '--origin', 'https://x.example'], /--origin: openai has the same hosts for each customer/],
    [['--origin', 'https://x.example'], /--origin: needs --service/],
  ] as const) {
    const { code, stderr } = await leasehold(['put', 'new/key', '-', ...words], { input: 'x' });
    assert.equal(code, 1);
    assert.match(stderr, message);
  }
  assert.equal(between.seen.length, before, 'nothing was stored');
  fillNext();
  await leasehold(['put', 'jira/key', '-', '--service', 'jira', '--origin', 'https://us.atlassian.net'], {
    input: 'a:b',
  });
  assert.equal(lastPut().targets[0].origin, 'https://us.atlassian.net');
});

test('put --service says that the value is stored if the targets cannot be set', async () => {
  const body = JSON.stringify({ error: { code: 'INTERNAL_ERROR', message: 'Broken.' } });
  between.next({ status: 500, headers: { 'x-request-id': 'one' }, body }, ({ method }) => method === 'PUT');
  const words = ['put', 'half/key', '-', '--service', 'jira', '--origin', 'https://us.atlassian.net'];
  const { code, stdout, stderr } = await leasehold(words, { input: 'a:b' });
  assert.deepEqual([code, stdout], [2, '']);
  assert.equal(
    stderr,
    'leasehold: The value is stored, but its targets are not set: Broken (INTERNAL_ERROR, request one).\n' +
      '  To set them: leasehold target put half/key --service jira --origin https://us.atlassian.net\n',
  );
  assert.equal((await leasehold(['get', 'half/key'])).stdout, 'a:b');
});
