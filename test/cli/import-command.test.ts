// Tests `leasehold import` against the real service: the plan, the report, the stored values, and that no value is
// printed.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Home, newHome, type RunOptions } from '../kit/command.ts';
import type { Scope } from '../kit/directory.ts';
import { findPort } from '../kit/port.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { startKv2Server } from './fake-kv2.ts';

interface Fixture {
  readonly service: TestService;
  readonly home: Home;
  write(name: string, text: string): void;
  /** Runs `leasehold import -o json` with these arguments. */
  imports(words: readonly string[], run?: RunOptions): ReturnType<Home['leasehold']>;
  /** The value in the vault; undefined when the credential does not exist. */
  stored(path: string): Promise<string | undefined>;
}

async function startFixture(scope: Scope): Promise<Fixture> {
  const service = await startTestService(scope);
  const home = newHome(scope, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  return {
    service,
    home,
    write: (name, text) => writeFileSync(join(home.path, name), text),
    imports: (words, run) => home.leasehold(['import', '-o', 'json', ...words], run),
    stored: async (path) => (await service.admin.get(`/api/v1/credentials/${path}`)).body.data?.value,
  };
}

const results = (stdout: string) =>
  (JSON.parse(stdout) as Record<string, unknown>[]).map(
    (row) => `${row['path'] ?? row['from']} ${row['result'] ?? row['plan']}`,
  );

test('a .env file is stored under its names, and the report says that the file still holds the values', async (t) => {
  const { write, imports, stored, home } = await startFixture(t);
  const text = 'DB_PASSWORD="hunter2"\nEMPTY=\nPORT=5432\n';
  write('.env', text);
  const { code, stdout, stderr } = await imports(['.env', '--prefix', 'shop/dev', '--yes']);
  assert.equal(code, 0, stderr);
  assert.deepEqual(results(stdout), ['shop/dev/DB_PASSWORD stored', 'shop/dev/PORT stored', '.env:2 left out']);
  assert.match(stderr, /^2 stored, 1 left out\.\n\.env still holds every value in plain text\. Nothing was deleted\./);
  assert.doesNotMatch(`${stdout}${stderr}`, /hunter2|5432/);
  assert.equal(await stored('shop/dev/DB_PASSWORD'), 'hunter2');
  assert.equal(readFileSync(join(home.path, '.env'), 'utf8'), text);
});

test('a dry run stores nothing and needs no terminal', async (t) => {
  const { write, imports, stored } = await startFixture(t);
  write('a.json', '{"db":{"password":"hunter2"}}');
  const { code, stdout, stderr } = await imports(['a.json', '--dry-run']);
  assert.deepEqual([code, results(stdout)], [0, ['db/password new']]);
  assert.match(stderr, /^Would store: 1 new\. Nothing was stored\.\n$/);
  assert.equal(await stored('db/password'), undefined);
});

test('without --yes and without a terminal, the plan is shown and nothing is stored', async (t) => {
  const { write, imports, stored } = await startFixture(t);
  write('.env', 'A=1\n');
  const { code, stdout, stderr } = await imports(['.env']);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(
    stderr,
    /^PATH +PLAN +TYPE +FROM +REASON\nA +new .*\nleasehold: .*This needs confirmation on a terminal/s,
  );
  assert.equal(await stored('A'), undefined);
});

test('an existing credential gets a new version; --if-new skips it, --compare skips equal values', async (t) => {
  const { write, imports, stored, service } = await startFixture(t);
  write('.env', 'A=1\nB=2\n');
  assert.equal((await imports(['.env', '--yes'])).code, 0);
  write('.env', 'A=1\nB=changed\nC=3\n');
  assert.deepEqual(results((await imports(['.env', '--dry-run'])).stdout), ['A new version', 'B new version', 'C new']);
  const compared = await imports(['.env', '--compare', '--dry-run']);
  assert.deepEqual(results(compared.stdout), ['A unchanged', 'B new version', 'C new']);
  assert.deepEqual(results((await imports(['.env', '--if-new', '--yes'])).stdout), [
    'A exists',
    'B exists',
    'C stored',
  ]);
  assert.equal(await stored('B'), '2');
  assert.deepEqual(results((await imports(['.env', '--compare', '--yes'])).stdout), [
    'A unchanged',
    'B stored',
    'C unchanged',
  ]);
  assert.equal(await stored('B'), 'changed');
  const { body } = await service.admin.get('/api/v1/credentials/A?view=metadata');
  assert.equal(body.data.versions.length, 1);
});

test('one failure does not stop the rest, and the exit code is 2', async (t) => {
  const { service, write, home } = await startFixture(t);
  const { token } = await service.agent('ann', { 'ann/*': ['store', 'list'] });
  const everything = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`k${at}`, String(at)]));
  write('a.json', JSON.stringify({ ann: everything, bob: { k: 'hunter2' } }));
  const environment = { LEASEHOLD_TOKEN: token };
  const { code, stdout, stderr } = await home.leasehold(['import', 'a.json', '--yes', '-o', 'json'], { environment });
  assert.equal(code, 2);
  assert.equal(results(stdout).filter((row) => row.endsWith(' stored')).length, 40);
  assert.match(stdout, /"path": "bob\/k",\n +"result": "failed",[^}]*ACCESS_DENIED, request /);
  assert.match(stderr, /^40 stored, 1 failed\.\n/);
  assert.doesNotMatch(`${stdout}${stderr}`, /hunter2/);
});

test('an agent that may only store can import, and its plan marks credentials as possibly new', async (t) => {
  const { service, write, home, stored } = await startFixture(t);
  const { token } = await service.agent('ann', { 'ann/*': ['store'] });
  write('.env', 'A=1\n');
  const environment = { LEASEHOLD_TOKEN: token };
  const words = ['import', '.env', '--prefix', 'ann', '-o', 'json'];
  const planned = await home.leasehold([...words, '--dry-run'], { environment });
  assert.deepEqual(results(planned.stdout), ['ann/A new?'], planned.stderr);
  assert.equal((await home.leasehold([...words, '--yes'], { environment })).code, 0);
  assert.equal(await stored('ann/A'), '1');
});

test('two values for one path are skipped, and the exit code is 3', async (t) => {
  const { write, imports } = await startFixture(t);
  write('.env', 'A=hunter2\nB=1\nA=hunter3\n');
  const { code, stdout } = await imports(['.env', '--yes']);
  assert.deepEqual([code, results(stdout)], [3, ['B stored', '.env:1 left out', '.env:3 left out']]);
  assert.doesNotMatch(stdout, /hunter/);
});

test('when the service is unreachable, the rest is not tried', async (t) => {
  const { write, home, service } = await startFixture(t);
  write('a.json', JSON.stringify(Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`k${at}`, 'x']))));
  await service.stop();
  const { code, stdout, stderr } = await home.leasehold(['import', 'a.json', '--yes']);
  assert.deepEqual([code, stdout], [2, '']);
  assert.match(stderr, /^leasehold: no response from /);
});

test('control characters in titles are escaped', async (t) => {
  const { write, home } = await startFixture(t);
  const items = [{ type: 1, name: '\u001b[2J\u202eevil\r\n', login: { password: 'pw' } }];
  write('b.json', JSON.stringify({ encrypted: false, items }));
  const { code, stdout, stderr } = await home.leasehold(['import', 'b.json', '--yes']);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^2J-evil\/password +stored .*\\u001b\[2J\\u202eevil\\u000d\\u000a/m);
  // The test is about these characters.
  assert.equal(/[^\n\x20-\x7e›]/.test(`${stdout}${stderr}`), false);
});

test('standard input is a source', async (t) => {
  const { imports, stored } = await startFixture(t);
  const { code, stderr } = await imports(['-', '--from', 'json', '--yes'], { input: '{"a":"hunter2"}' });
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '1 stored.\n');
  assert.equal(await stored('a'), 'hunter2');
});

test('a mount of Vault is imported with the token from the environment only', async (t) => {
  const { home, stored } = await startFixture(t);
  const server = await startKv2Server(t, { 'app/db': { password: 'hunter2' }, 'app/old': 'deleted' }, { mount: 'kv' });
  const words = [
    'import',
    '--vault-addr',
    server.address,
    '--mount',
    'kv/',
    '--prefix',
    'moved',
    '--yes',
    '-o',
    'json',
  ];
  const without = await home.leasehold(words);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /^leasehold: no token for Vault\.\n {2}Set VAULT_TOKEN or BAO_TOKEN/);
  for (const variable of ['VAULT_TOKEN', 'BAO_TOKEN']) {
    const { code, stdout, stderr } = await home.leasehold(words, { environment: { [variable]: 'hvs.test' } });
    assert.equal(code, 0, stderr);
    assert.deepEqual(results(stdout), ['moved/app/db/password stored', 'kv/app/old left out']);
    assert.match(stderr, /still holds these secrets/);
  }
  assert.equal(await stored('moved/app/db/password'), 'hunter2');
  for (const variable of ['VAULT_ADDR', 'BAO_ADDR']) {
    const environment = { VAULT_TOKEN: 'hvs.test', [variable]: server.address };
    const { code, stdout } = await home.leasehold(['import', '--mount', 'kv', '--yes', '-o', 'json'], { environment });
    assert.deepEqual([code, results(stdout)[0]], [0, 'app/db/password stored']);
  }
});

test('an unreachable Vault and error responses end with exit code 2 and do not mention the address of Leasehold', async (t) => {
  const { home } = await startFixture(t);
  const statusOf: Readonly<Record<string, number>> = { sealed: 503, wrong: 400, broken: 500, moved: 307 };
  const server = await startKv2Server(
    t,
    { 'app/db': { password: 'hunter2' } },
    {
      answer: (url, response) => {
        const status = statusOf[/^\/v1\/(\w+)/.exec(url)?.[1] ?? ''];
        if (status !== undefined) response.writeHead(status, { location: '/' }).end();
        else return false;
        return true;
      },
    },
  );
  const ask = (address: string, mount: string, token = 'hvs.test') =>
    home.leasehold(['import', '--vault-addr', address, '--mount', mount, '--dry-run'], {
      environment: { VAULT_TOKEN: token },
    });
  const rows: [ran: ReturnType<typeof ask>, says: RegExp][] = [
    [
      ask(`http://127.0.0.1:${await findPort()}`, 'secret'),
      /no response from http:\/\/127\S+ \(ECONNREFUSED\)\.\n {2}The address is from --vault-addr/,
    ],
    [
      ask(server.address, 'secret', 'hvs.other'),
      /the token is not allowed to list secret\/ \(403\)\.\n {2}It may have expired/,
    ],
    [ask(server.address, 'kv'), /nothing was found at kv\/\.\n {2}Check that the mount is a KV engine of version 2/],
    [ask(server.address, 'sealed'), /Vault responded with status 503\.\n {2}Vault is sealed or under maintenance/],
    [ask(server.address, 'wrong'), /Vault responded with status 400\.\n {2}Check that the mount is a KV engine/],
    [ask(server.address, 'broken'), /Vault responded with status 500\.\n/],
    [ask(server.address, 'moved'), /status 307\.\n {2}Redirects are not followed\. A standby node redirects/],
  ];
  for (const [ran, says] of rows) {
    const { code, stdout, stderr } = await ran;
    assert.deepEqual([code, stdout], [2, ''], stderr);
    assert.match(stderr, says);
    assert.doesNotMatch(stderr, /LEASEHOLD|leasehold doctor|hvs/);
  }
});

const USAGE_ERRORS: readonly [words: readonly string[], says: RegExp][] = [
  [[], /give either FILE or --vault-addr URL \(VAULT_ADDR, BAO_ADDR\)/],
  [['a', '--vault-addr', 'https://x'], /give either FILE or --vault-addr/],
  [['missing.env'], /missing\.env: cannot be read \(ENOENT\)/],
  [['folder'], /folder: cannot be read \(EISDIR\)/],
  [['a.env', '--from', 'xml'], /--from: must be one of env, json, 1password, bitwarden/],
  [['a.env', '--prefix', '/a'], /--prefix: must not begin or end with \//],
  [['--vault-addr', 'http://192.0.2.1'], /--vault-addr: must be https:/],
  [['--vault-addr', 'https://x', '--mount', 'a/../b'], /--mount: must not contain \. or \.\./],
];

for (const [words, says] of USAGE_ERRORS) {
  test(`a usage error is found before any request: leasehold import ${words.join(' ')}`, async (t) => {
    const environment = { LEASEHOLD_ADDR: 'http://127.0.0.1:9', LEASEHOLD_TOKEN: 'lha_x', VAULT_TOKEN: 'hvs.test' };
    const home = newHome(t, environment);
    mkdirSync(join(home.path, 'folder'));
    writeFileSync(join(home.path, 'a.env'), 'A=1\n');
    const { code, stdout, stderr } = await home.leasehold(['import', ...words]);
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, says);
  });
}
