// `leasehold import` against the real server: the plan, the report, the stored values, keys that get the targets of
// their service, and the .env file with references. No value is ever printed.

import assert from 'node:assert/strict';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { RewriteError, rewrite } from '../../src/cli/import/env-rewrite.ts';
import { type ImportPlan, storeAll } from '../../src/cli/import/import-plan.ts';
import { Leasehold } from '../../src/client/leasehold.ts';
import { inParallel } from '../../src/platform/waiting.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { newHome, type RunOptions } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { findPort } from '../kit/port.ts';
import { startTestService } from '../kit/service.ts';
import { startKv2Server } from './fake-kv2.ts';

const service = await startTestService({ after });
const { admin } = service;
const vault = new Leasehold({ address: service.address, token: service.adminToken });
const home = newHome({ after }, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
const write = (name: string, text: string): void => writeFileSync(join(home.path, name), text);
const now = (name: string): string => readFileSync(join(home.path, name), 'utf8');
const imports = (words: readonly string[], run?: RunOptions) => home.leasehold(['import', '-o', 'json', ...words], run);
const stored = async (path: string) => (await admin.get(`/api/v1/credentials/${path}`)).body.data?.value;
const serviceOf = async (path: string) => (await admin.get(`/api/v1/targets/${path}`)).body.data?.service;
const countVersions = async (path: string): Promise<number> =>
  (await admin.get(`/api/v1/credentials/${path}?view=metadata`)).body.data.versions.length;
const results = (stdout: string) =>
  (JSON.parse(stdout) as Record<string, unknown>[]).map(
    ({ path, from, result, plan, service: of }) => `${path ?? from} ${result ?? plan}${of === null ? '' : ` ${of}`}`,
  );
const NEVER = new AbortController().signal;

const random = (length: number): string => 'aZ3kQ9xB7mN2pL5vR8tW4yC6'.repeat(8).slice(0, length);
const OPENAI = `sk-proj-${random(60)}`;
const STRIPE = `sk_live_${random(24)}`;
const KEYS = `\ufeff# keys\r\nexport OPENAI_API_KEY="${OPENAI}" # prod\r\nPORT=3000\r\nSTRIPE_SECRET_KEY=${STRIPE}\r\nDB_PASSWORD='hun#ter2'\r\nEMPTY=\r\n`;
const REFERENCES = (below: string): string =>
  `\ufeff# keys\r\nexport OPENAI_API_KEY=leasehold://${below}/OPENAI_API_KEY?use # prod\r\nPORT=3000\r\nSTRIPE_SECRET_KEY=leasehold://${below}/STRIPE_SECRET_KEY?use\r\nDB_PASSWORD=leasehold://${below}/DB_PASSWORD\r\nEMPTY=\r\n`;
const assertUnseen = (...texts: readonly string[]): void => {
  for (const value of [OPENAI, STRIPE, 'hun#ter2', 'hunter2'])
    assert.equal(
      texts.some((text) => text.includes(value)),
      false,
    );
};

test('keys get the targets of their service, and the report names the next commands', async () => {
  write('.env', KEYS);
  const { code, stdout, stderr } = await imports(['.env', '--prefix', 'shop/dev', '--yes']);
  assert.equal(code, 0, stderr);
  assert.deepEqual(results(stdout), [
    'shop/dev/OPENAI_API_KEY stored openai',
    'shop/dev/STRIPE_SECRET_KEY stored stripe',
    'shop/dev/DB_PASSWORD stored',
    '.env:3 skipped',
    '.env:6 skipped',
  ]);
  assertUnseen(stdout, stderr);
  assert.equal(await stored('shop/dev/DB_PASSWORD'), 'hun#ter2');
  assert.deepEqual(
    [await serviceOf('shop/dev/OPENAI_API_KEY'), await serviceOf('shop/dev/STRIPE_SECRET_KEY')],
    ['openai', 'stripe'],
  );
  assert.equal((await admin.get('/api/v1/targets/shop/dev/DB_PASSWORD')).status, 404);
  assert.equal(now('.env'), KEYS);
  const lines = stderr.split('\n').map((line) => line.trim());
  for (const line of [
    '3 stored, 2 skipped.',
    'leasehold agent add NAME',
    'leasehold policy put NAME-use --principal agent:NAME --resource shop/dev/OPENAI_API_KEY,shop/dev/STRIPE_SECRET_KEY --action use   # without the values',
    'leasehold policy put NAME-retrieve --principal agent:NAME --resource shop/dev/DB_PASSWORD --action retrieve   # with the values',
    'leasehold --agent NAME run --use shop/dev/OPENAI_API_KEY --use STRIPE=shop/dev/STRIPE_SECRET_KEY --env DB_PASSWORD=shop/dev/DB_PASSWORD -- COMMAND',
  ])
    assert.ok(lines.includes(line), `${line}\n${stderr}`);
  assert.match(stderr, /\.env still holds every value in plain text\. --rewrite replaces them/);
});

test('--rewrite replaces the stored values alone: every other byte, the mode and nothing beside the file', async () => {
  mkdirSync(join(home.path, 'web'));
  write('web/.env', KEYS);
  chmodSync(join(home.path, 'web/.env'), 0o640);
  const { code, stderr } = await imports(['web/.env', '--prefix', 'web', '--rewrite', '--yes']);
  assert.equal(code, 0, stderr);
  assert.equal(now('web/.env'), REFERENCES('web'));
  assert.equal(statSync(join(home.path, 'web/.env')).mode & 0o7777, 0o640);
  assert.deepEqual(readdirSync(join(home.path, 'web')), ['.env']);
  assert.match(stderr, /\nReplaced 3 values in web\/\.env by references\.\n/);
  assert.match(stderr, /\n {4}leasehold --agent NAME run --env-file web\/\.env -- COMMAND\n/);
  assert.match(stderr, /STRIPE_SECRET_KEY: the client must send its requests to STRIPE_BASE_URL/);
  assert.doesNotMatch(stderr, /OPENAI_API_KEY: the client/);
  // A second run finds references only.
  const again = await imports(['web/.env', '--prefix', 'web', '--rewrite', '--yes']);
  assert.deepEqual([again.code, now('web/.env')], [0, REFERENCES('web')], again.stderr);
});

test('a value that was not stored stays in the file, and so does one that differs from the stored one', async () => {
  await admin.post('/api/v1/credentials', { path: 'kept/DB_PASSWORD', value: 'another' });
  write('kept.env', `${KEYS}A_TOKEN=one\r\nA_TOKEN=two\r\nB_TOKEN=same\r\nB_TOKEN=same\r\n`);
  const { code, stdout } = await imports(['kept.env', '--prefix', 'kept', '--if-new', '--rewrite', '--yes']);
  assert.deepEqual(
    [
      code,
      results(stdout)
        .filter((row) => !row.includes('openai') && !row.includes('stripe'))
        .slice(0, 2),
    ],
    [3, ['kept/DB_PASSWORD exists', 'kept/B_TOKEN stored']],
  );
  const expected = REFERENCES('kept').replace('leasehold://kept/DB_PASSWORD', "'hun#ter2'");
  const twice = 'B_TOKEN=leasehold://kept/B_TOKEN\r\n'.repeat(2);
  assert.equal(now('kept.env'), `${expected}A_TOKEN=one\r\nA_TOKEN=two\r\n${twice}`);
  assert.equal(await stored('kept/DB_PASSWORD'), 'another');
});

test('an import that was interrupted before the file was rewritten is completed with --compare', async () => {
  write('again.env', KEYS);
  assert.equal((await imports(['again.env', '--prefix', 'again', '--yes'])).code, 0);
  const { stdout } = await imports(['again.env', '--prefix', 'again', '--compare', '--rewrite', '--yes']);
  assert.ok(results(stdout).includes('again/DB_PASSWORD unchanged'));
  assert.deepEqual([now('again.env'), await countVersions('again/DB_PASSWORD')], [REFERENCES('again'), 1]);
});

test('targets that an administrator has set stay', async () => {
  await admin.post('/api/v1/credentials', { path: 'own/OPENAI_API_KEY', value: 'x' });
  const own = { targets: [{ origin: 'https://proxy.example.org' }], placement: { kind: 'bearer' } };
  assert.equal((await admin.put('/api/v1/targets/own/OPENAI_API_KEY', own)).status, 200);
  write('own.env', `OPENAI_API_KEY=${OPENAI}\n`);
  const { code, stdout } = await imports(['own.env', '--prefix', 'own', '--rewrite', '--yes']);
  assert.deepEqual([code, results(stdout)], [0, ['own/OPENAI_API_KEY stored']]);
  const { body } = await admin.get('/api/v1/targets/own/OPENAI_API_KEY');
  assert.equal(body.data.targets[0].origin, 'https://proxy.example.org');
  assert.equal(now('own.env'), 'OPENAI_API_KEY=leasehold://own/OPENAI_API_KEY\n');
});

/** Changes the file before the rewrite; returns the path to rewrite when it is another one. */
const UNCHANGED: readonly [change: (path: string) => string | undefined, rule: RegExp][] = [
  [(path) => void writeFileSync(path, 'A=9\n'), /has changed since it was read/],
  [(path) => void linkSync(path, `${path}.2`), /hard link/],
  [(path) => symlinkSync(path, `${path}.3`) ?? `${path}.3`, /is a symbolic link/],
  [(path) => `${path}.missing`, /cannot be replaced \(ENOENT\)/],
];

test('a file that changed, has another link, is a link or is missing is not rewritten', async (t) => {
  for (const [change, rule] of UNCHANGED) {
    const directory = temporaryDirectory(t);
    const path = join(directory, '.env');
    writeFileSync(path, 'A=1\n');
    const target = change(path) ?? path;
    const list = () => readdirSync(directory).map((name) => [name, lstatSync(join(directory, name)).ino]);
    const before = list();
    await assert.rejects(
      rewrite(target, Buffer.from('A=1\n'), Buffer.from('x')),
      (error) => error instanceof RewriteError && rule.test(error.message),
    );
    assert.deepEqual(list(), before);
  }
  write('real.env', 'A_TOKEN=hunter2\n');
  symlinkSync(join(home.path, 'real.env'), join(home.path, 'link.env'));
  const { code, stderr } = await imports(['link.env', '--prefix', 'link', '--rewrite', '--yes']);
  assert.deepEqual([code, now('real.env'), await stored('link/A_TOKEN')], [2, 'A_TOKEN=hunter2\n', 'hunter2']);
  assert.match(stderr, /link\.env was not changed: it is a symbolic link\./);
});

test('a dry run and an import without confirmation store nothing', async () => {
  write('a.json', '{"dry":{"password":"hunter2"}}');
  const dry = await imports(['a.json', '--dry-run']);
  assert.deepEqual([dry.code, results(dry.stdout)], [0, ['dry/password new']]);
  assert.match(dry.stderr, /^Would store: 1 new\. Nothing was stored\.\n$/);
  write('b.env', 'A_TOKEN=hunter2\n');
  const asked = await imports(['b.env', '--prefix', 'dry', '--rewrite']);
  assert.deepEqual([asked.code, asked.stdout], [1, '']);
  assert.match(
    asked.stderr,
    /^PATH +PLAN +TYPE +SERVICE +FROM +REASON\ndry\/A_TOKEN +new .*\nleasehold: Store 1 new, and replace them in b\.env by references\? This needs confirmation on a terminal/s,
  );
  assert.deepEqual([await stored('dry/password'), await stored('dry/A_TOKEN')], [undefined, undefined]);
  assert.equal(now('b.env'), 'A_TOKEN=hunter2\n');
});

test('an existing credential gets a new version; --if-new skips it, --compare skips equal values', async () => {
  const words = ['v.env', '--all', '--prefix', 'v'];
  write('v.env', 'A=1\nB=2\n');
  assert.equal((await imports([...words, '--yes'])).code, 0);
  write('v.env', 'A=1\nB=changed\nC=3\n');
  const planned = await imports([...words, '--dry-run']);
  assert.deepEqual(results(planned.stdout), ['v/A new version', 'v/B new version', 'v/C new']);
  assert.match(planned.stderr, /^Would store: 2 new versions, 1 new\./);
  const compared = await imports([...words, '--compare', '--dry-run']);
  assert.deepEqual(results(compared.stdout), ['v/A unchanged', 'v/B new version', 'v/C new']);
  const onlyNew = await imports([...words, '--if-new', '--yes']);
  assert.deepEqual(results(onlyNew.stdout), ['v/A exists', 'v/B exists', 'v/C stored']);
  assert.equal(await stored('v/B'), '2');
  const changed = await imports([...words, '--compare', '--yes']);
  assert.deepEqual(results(changed.stdout), ['v/A unchanged', 'v/B stored', 'v/C unchanged']);
  assert.deepEqual([await stored('v/B'), await countVersions('v/A')], ['changed', 1]);
});

test('an agent imports what it may store; the rest fails, and a service is left to an administrator', async () => {
  const { token } = await service.agent('ann', { 'ann/*': ['store'] });
  const environment = { LEASEHOLD_TOKEN: token };
  write('ann.json', JSON.stringify({ ann: { k: '1', key: OPENAI }, bob: { k: 'hunter2' } }));
  const planned = await imports(['ann.json', '--dry-run'], { environment });
  assert.deepEqual(results(planned.stdout), ['ann/k new?', 'ann/key new? openai', 'bob/k new?']);
  const { code, stdout, stderr } = await imports(['ann.json', '--yes'], { environment });
  assert.deepEqual([code, results(stdout)], [2, ['ann/k stored', 'ann/key stored', 'bob/k failed']]);
  assert.match(stdout, /"path": "bob\/k",\n +"result": "failed",[^}]*ACCESS_DENIED, request /);
  assert.match(stdout, /its service was not set: [^"]*: leasehold target put ann\/key --service openai/);
  assert.match(stderr, /^2 stored, 1 failed\.\n {2}Run the same command again/);
  assertUnseen(stdout, stderr);
  assert.equal(await stored('ann/key'), OPENAI);
});

test('control characters in titles are escaped', async () => {
  const items = [{ type: 1, name: '\u001b[2J\u202eevil\r\n', login: { password: 'pw' } }];
  write('b.json', JSON.stringify({ encrypted: false, items }));
  const { code, stdout, stderr } = await home.leasehold(['import', 'b.json', '--yes']);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^2J-evil\/password +stored .*\\u001b\[2J\\u202eevil\\u000d\\u000a/m);
  // The test is about these characters.
  assert.equal(/[^\n\x20-\x7e›]/.test(`${stdout}${stderr}`), false);
});

test('standard input is a source', async () => {
  const { code, stderr } = await imports(['-', '--from', 'json', '--yes'], { input: '{"stdin":"hunter2"}' });
  assert.deepEqual([code, stderr, await stored('stdin')], [0, '1 stored.\n', 'hunter2']);
});

test('a mount of Vault is imported with the token from the environment only', async (t) => {
  const server = await startKv2Server(t, { 'app/db': { password: 'hunter2' }, 'app/old': 'deleted' }, { mount: 'kv' });
  const words = ['--vault-addr', server.address, '--mount', 'kv/', '--prefix', 'moved', '--yes'];
  const without = await imports(words);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /^leasehold: no token for Vault\.\n {2}Set VAULT_TOKEN or BAO_TOKEN/);
  for (const variable of ['VAULT_TOKEN', 'BAO_TOKEN']) {
    const { code, stdout, stderr } = await imports(words, { environment: { [variable]: 'hvs.test' } });
    assert.deepEqual([code, results(stdout)], [0, ['moved/app/db/password stored', 'kv/app/old skipped']], stderr);
    assert.match(stderr, /still holds these secrets/);
  }
  assert.equal(await stored('moved/app/db/password'), 'hunter2');
  for (const variable of ['VAULT_ADDR', 'BAO_ADDR']) {
    const environment = { VAULT_TOKEN: 'hvs.test', [variable]: server.address };
    const { code, stdout } = await imports(['--mount', 'kv', '--yes'], { environment });
    assert.deepEqual([code, results(stdout)[0]], [0, 'app/db/password stored']);
  }
});

test('an unreachable Vault and error responses end with exit code 2 and do not mention the address of Leasehold', async (t) => {
  const statusOf: Readonly<Record<string, number>> = { sealed: 503, wrong: 400, broken: 500, moved: 307 };
  const server = await startKv2Server(
    t,
    { 'app/db': { password: 'hunter2' } },
    {
      answer: (url, response) => {
        const status = statusOf[/^\/v1\/(\w+)/.exec(url)?.[1] ?? ''];
        if (status !== undefined) response.writeHead(status, { location: '/' }).end();
        return status !== undefined;
      },
    },
  );
  const unreachable = `http://127.0.0.1:${await findPort()}`;
  const rows: readonly [address: string, mount: string, token: string, says: RegExp][] = [
    [unreachable, 'secret', 'hvs.test', /no response from http:\/\/127\S+ \(ECONNREFUSED\)\.\n {2}The address is from/],
    [server.address, 'secret', 'hvs.other', /not allowed to list secret\/ \(403\)\.\n {2}It may have expired/],
    [server.address, 'kv', 'hvs.test', /nothing was found at kv\/\.\n {2}Check that the mount is a KV engine/],
    [server.address, 'sealed', 'hvs.test', /Vault responded with status 503\.\n {2}Vault is sealed/],
    [server.address, 'wrong', 'hvs.test', /Vault responded with status 400\.\n {2}Check that the mount is a KV/],
    [server.address, 'broken', 'hvs.test', /Vault responded with status 500\.\n/],
    [server.address, 'moved', 'hvs.test', /status 307\.\n {2}Redirects are not followed\. A standby node redirects/],
  ];
  const check = async ([address, mount, token, says]: (typeof rows)[number]): Promise<void> => {
    const environment = { VAULT_TOKEN: token };
    const ran = await imports(['--vault-addr', address, '--mount', mount, '--dry-run'], { environment });
    assert.deepEqual([ran.code, ran.stdout], [2, ''], ran.stderr);
    assert.match(ran.stderr, says);
    assert.doesNotMatch(ran.stderr, /LEASEHOLD|leasehold doctor|hvs/);
  };
  await Promise.all(rows.map(check));
});

test('a usage error is found before any request', async (t) => {
  const environment = { LEASEHOLD_ADDR: 'http://127.0.0.1:9', LEASEHOLD_TOKEN: 'lha_x', VAULT_TOKEN: 'hvs.test' };
  const other = newHome(t, environment);
  mkdirSync(join(other.path, 'folder'));
  writeFileSync(join(other.path, 'a.env'), 'A=1\n');
  writeFileSync(join(other.path, 'a.json'), '{}');
  const rows: readonly [words: readonly string[], says: RegExp][] = [
    [[], /give either FILE or --vault-addr URL \(VAULT_ADDR, BAO_ADDR\)/],
    [['a', '--vault-addr', 'https://x'], /give either FILE or --vault-addr/],
    [['missing.env'], /missing\.env: cannot be read \(ENOENT\)/],
    [['folder'], /folder: cannot be read \(EISDIR\)/],
    [['a.env', '--from', 'xml'], /--from: must be one of env, json, csv, bitwarden/],
    [['a.env', '--prefix', '/a'], /--prefix: must not begin or end with \//],
    [['a.json', '--rewrite'], /--rewrite: needs a \.env file that has a name/],
    [['-', '--from', 'env', '--rewrite'], /--rewrite: needs a \.env file that has a name/],
    [['--vault-addr', 'http://192.0.2.1'], /--vault-addr: must be https:/],
    [['--vault-addr', 'https://x', '--mount', 'a/../b'], /--mount: must not contain \. or \.\./],
  ];
  for (const [words, says] of rows) {
    const { code, stdout, stderr } = await other.leasehold(['import', ...words]);
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, says);
  }
});

const planOf = (count: number, prefix: string): ImportPlan => ({
  rows: Array.from({ length: count }, (_, at) => ({
    path: `${prefix}/${at}`,
    state: 'new',
    service: null,
    from: 'x',
    reason: null,
    draft: { names: [`${at}`], value: new Secret('hunter2'), type: 'password', description: 'of a test', where: 'x' },
  })),
  skipped: [],
});

test('after an interrupt every row has an outcome, and progress counts them', async () => {
  const controller = new AbortController();
  const seen: number[] = [];
  const progress = (done: number, of: number): void => {
    seen.push(of);
    if (done === 20) controller.abort(new Error('interrupted'));
  };
  const { rows } = await storeAll(vault, planOf(200, 'k'), { onlyNew: false, signal: controller.signal, progress });
  const count = (result: string): number => rows.filter(({ state }) => state === result).length;
  assert.equal(count('stored') + count('not tried'), 200);
  assert.ok(count('stored') >= 20 && count('stored') <= 28, String(count('stored')));
  assert.deepEqual([seen.length, seen.at(-1)], [count('stored'), 200]);
  const { body } = await admin.get('/api/v1/credentials/k/0?view=metadata');
  assert.deepEqual([body.data.type, body.data.description], ['password', 'of a test']);
});

test('work runs with bounded concurrency; the first failure is thrown after the running work has ended', async () => {
  let [active, most, done] = [0, 0, 0];
  const items = Array.from({ length: 50 }, (_, at) => at);
  const work = async (): Promise<void> => {
    most = Math.max(most, ++active);
    await new Promise(setImmediate);
    active -= 1;
    done += 1;
  };
  await inParallel(items, 8, work, NEVER);
  assert.deepEqual([most, done, active], [8, 50, 0]);
  done = 0;
  const failing = (item: number): Promise<void> => (item === 5 ? Promise.reject(new Error('five')) : work());
  await assert.rejects(inParallel(items, 8, failing, NEVER), /^Error: five$/);
  assert.ok(done < 20 && active === 0, String(done));
});
