// `leasehold doctor` explains what keeps an SDK from working with a base URL of the vault. With `--state` and
// `--values` it names each row that does not match the audit log.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { standBetween } from '../client/fault-proxy.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { newHome } from '../kit/command.ts';
import { executeSql } from '../kit/direct-db.ts';
import type { Scope } from '../kit/directory.ts';
import { scaled } from '../kit/scale.ts';
import { startTestService, type TestService } from '../kit/service.ts';

interface Row {
  readonly check: string;
  readonly result: string;
  readonly found: string;
}

const service = await startTestService({ after });
const { port } = new URL(service.address);

/** The findings by check, with the command's whole output and exit code. */
async function doctor(t: TestContext, environment: Record<string, string>, words: readonly string[] = []) {
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, ...environment });
  const { code, stdout, stderr } = await home.leasehold(['doctor', '-o', 'json', ...words]);
  const rows: Row[] = JSON.parse(stdout || '[]');
  const found = new Map(rows.map((row) => [row.check, `${row.result}: ${row.found}`]));
  return { code, text: stdout + stderr, found: (check: string) => found.get(check) };
}

test('without variables it shows the base URL, and nothing is wrong', async (t) => {
  const { code, found } = await doctor(t, {});
  assert.equal(code, 0);
  assert.equal(found('SDK base URL'), `ok: ${service.address}/use/PATH/-`);
  assert.deepEqual([found('SDK proxy'), found('SDK certificate')], [undefined, undefined]);
});

test('an address that SDKs cannot or should not use is a warning', async (t) => {
  const socket = await doctor(t, { LEASEHOLD_ADDR: 'unix:/nowhere/leasehold.sock' }, ['--timeout', '1']);
  assert.match(socket.found('SDK base URL') ?? '', /^warning: SDKs cannot connect to a Unix socket/);
  const plain = { LEASEHOLD_ADDR: 'http://vault.invalid:7700' };
  const { found } = await doctor(t, plain, ['--insecure-http', '--timeout', '1']);
  assert.match(found('SDK base URL') ?? '', /^warning: plain HTTP to another machine/);
  assert.match(found('server') ?? '', /^wrong: /);
});

/** Whether Node's fetch sends a request for the vault to the proxy, which reads the same variables. */
async function isCaptured(environment: Record<string, string>, proxy: { count: number }): Promise<boolean> {
  const before = proxy.count;
  const script = `fetch('${service.address}/api/v1/health').then((response) => response.text(), () => null)`;
  const env = { PATH: process.env['PATH'] ?? '', NODE_USE_ENV_PROXY: '1', ...environment };
  await promisify(execFile)(process.execPath, ['-e', script], { env });
  return proxy.count > before;
}

test('a proxy variable that captures the vault’s address is a warning, exactly when Node’s fetch uses the proxy', async (t) => {
  const proxy = { count: 0 };
  const server = createServer((_, response) => {
    proxy.count++;
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const url = `http://user:hunter2@127.0.0.1:${(server.address() as AddressInfo).port}`;
  const rows: readonly [environment: Record<string, string>, captures: boolean][] = [
    [{ HTTP_PROXY: url, NO_PROXY: '7.0.0.1' }, true],
    [{ HTTP_PROXY: url, NO_PROXY: 'localhost, 127.0.0.1' }, false],
    [{ HTTP_PROXY: url }, true],
    [{ http_proxy: url, NO_PROXY: 'example.com,other.example' }, true],
    [{ HTTP_PROXY: url, NO_PROXY: '127.0.0.1:1' }, true],
    [{ http_proxy: url, no_proxy: `127.0.0.1:${port}` }, false],
    [{ HTTP_PROXY: url, NO_PROXY: '*' }, false],
    [{ HTTP_PROXY: url, no_proxy: 'example.com', NO_PROXY: '127.0.0.1' }, true],
    [{ HTTPS_PROXY: url }, false],
  ];
  for (const [at, [environment, captures]] of rows.entries()) {
    const label = Object.keys(environment).join();
    // A process takes a second: the weekly run starts one for each row.
    if (at < scaled(0, rows.length)) assert.equal(await isCaptured(environment, proxy), captures, label);
    const { code, text, found } = await doctor(t, environment);
    assert.equal(found('SDK proxy')?.startsWith('warning: ') ?? false, captures, label);
    assert.equal(code, 0);
    assert.equal(text.includes('hunter2'), false);
  }
  const { found } = await doctor(t, { ALL_PROXY: url });
  assert.match(found('SDK proxy') ?? '', /the proxy of ALL_PROXY: add 127\.0\.0\.1 to NO_PROXY and no_proxy$/);
});

test('a base-URL variable is checked against the vault and against the form that its SDK expects', async (t) => {
  const good = { OPENAI_BASE_URL: `${service.address}/use/openai/key/-/v1`, OPENAI_API_KEY: 'placeholder' };
  assert.equal((await doctor(t, good)).found('OPENAI_BASE_URL'), 'ok: uses openai/key of this vault');
  const alias = good.OPENAI_BASE_URL.replace('127.0.0.1', 'localhost').replace('/-/', '/-2/');
  assert.match((await doctor(t, { ...good, OPENAI_BASE_URL: alias })).found('OPENAI_BASE_URL') ?? '', /^ok: /);
  const form = `warning: must have the form ${service.address}/use/PATH/-/v1`;
  const other = /^warning: set to another address: SDKs of OpenAI do not use this vault$/;
  for (const [value, says] of [
    [`${service.address}/use/openai/key/-`, form],
    [`${service.address}/use/openai/key/v1`, form],
    [`${service.address}/use/openai/../key/-/v1?a=b`, form],
    ['https://user:hunter2@api.openai.com/v1', other],
    [`http://127.0.0.2:${port}/use/openai/key/-/v1`, other],
    [`http://127.0.0.1:${Number(port) - 1}/use/openai/key/-/v1`, other],
    [`${service.address}/v1`, other],
    ['not a URL', other],
  ] as const) {
    const { code, text, found } = await doctor(t, { ...good, OPENAI_BASE_URL: value });
    const said = found('OPENAI_BASE_URL') ?? '';
    assert.equal(typeof says === 'string' ? said === says : says.test(said), true, `${value}: ${said}`);
    assert.deepEqual([code, text.includes('hunter2')], [0, false]);
  }
});

test('an SDK without a key is a warning that names its variables', async (t) => {
  const found = async (environment: Record<string, string>, name: string) =>
    (await doctor(t, { [name]: `${service.address}/use/models/key/-`, ...environment })).found(name);
  assert.equal(
    await found({}, 'GOOGLE_GEMINI_BASE_URL'),
    'warning: uses models/key, but GEMINI_API_KEY or GOOGLE_API_KEY is not set: give it a token of the vault',
  );
  assert.match((await found({ GOOGLE_API_KEY: 'x' }, 'GOOGLE_GEMINI_BASE_URL')) ?? '', /^ok: /);
  assert.match((await found({ ANTHROPIC_API_KEY: '' }, 'ANTHROPIC_BASE_URL')) ?? '', /^warning: /);
});

test('a certificate of a private authority is a warning until every SDK’s variable names the authority', async (t) => {
  const { flags, certFile } = makeCertificate(t);
  const { address } = await startTestService(t, flags);
  const found = async (environment: Record<string, string>) => {
    const answer = await doctor(t, { LEASEHOLD_ADDR: address, LEASEHOLD_CA_FILE: certFile, ...environment });
    assert.equal(answer.code, 0, answer.text);
    return answer.found('SDK certificate') ?? '';
  };
  assert.match(
    await found({}),
    /^warning: SDKs do not read --ca-file: set NODE_EXTRA_CA_CERTS \(Node\), SSL_CERT_FILE /,
  );
  const node = await found({ NODE_EXTRA_CA_CERTS: certFile });
  assert.match(node, /^warning: trusted through NODE_EXTRA_CA_CERTS \(Node\) only: set SSL_CERT_FILE /);
  const noPem = join(makeCertificate(t).certFile, '../none.pem');
  writeFileSync(noPem, 'not PEM');
  const wrongFiles = { NODE_EXTRA_CA_CERTS: makeCertificate(t).certFile, SSL_CERT_FILE: noPem };
  assert.match(await found(wrongFiles), /^warning: SDKs do not read --ca-file: /);
  const all = { NODE_EXTRA_CA_CERTS: certFile, SSL_CERT_FILE: certFile, REQUESTS_CA_BUNDLE: certFile };
  assert.match(await found(all), /^ok: /);
});

test('a certificate for other names is a warning with its code', async (t) => {
  const { flags, certFile } = makeCertificate(t, 'DNS:elsewhere.test');
  const { address } = await startTestService(t, flags);
  const environment = { LEASEHOLD_ADDR: address, LEASEHOLD_CA_FILE: certFile, NODE_EXTRA_CA_CERTS: certFile };
  const { code, found } = await doctor(t, environment);
  assert.equal(code, 2);
  assert.equal(found('SDK certificate'), 'warning: SDKs reject the certificate (ERR_TLS_CERT_ALTNAME_INVALID)');
});

const CREDENTIALS = 3;
/** The progress is removed at the end. */
const CLEARED = '\r\u001b[K';

async function openVault(scope: Scope): Promise<TestService & { agentToken: string }> {
  const service = await startTestService(scope);
  for (let at = 0; at < CREDENTIALS; at++) {
    await service.admin.post('/api/v1/credentials', { path: `prod/key-${at}`, value: 'v' });
  }
  const { token: agentToken } = await service.agent('bot', { 'prod/*': ['retrieve'] });
  return { ...service, agentToken };
}
const [intact, altered] = [await openVault({ after }), await openVault({ after })];

/** Runs the subcommand. Returns what it reports about the audit log and the state. */
async function check(t: TestContext, { address, adminToken }: TestService, flag: string | null, token = adminToken) {
  const home = newHome(t, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: token });
  const { code, stdout, stderr } = await home.leasehold(['doctor', '-o', 'json', ...(flag === null ? [] : [flag])]);
  const findings: Row[] = JSON.parse(stdout);
  const told = findings.filter(({ check }) => check === 'log' || check === 'state');
  return { code, stderr, told: told.map(({ check, result, found }) => `${check} ${result}: ${found}`) };
}

test('an unaltered vault passes, --values opens each value in addition, and only for the administrator', async (t) => {
  // The keyset and its slot have no entry yet.
  const rows = 2 * (CREDENTIALS + 3) + 2;
  for (const [flag, checked] of [
    ['--state', rows],
    ['--values', rows + CREDENTIALS],
  ] as const) {
    assert.deepEqual(await check(t, intact, flag), {
      code: 0,
      stderr: '',
      told: ['log ok: 7 entries, chain intact', `state ok: ${checked} rows, entries and values match the audit log`],
    });
  }
  assert.deepEqual((await check(t, intact, null)).told, [], 'without the flag the state is not checked');
  const { code, told } = await check(t, intact, '--state', intact.agentToken);
  assert.equal(code, 2);
  assert.match(told.join(), /^state wrong: .*\(ACCESS_DENIED\)$/);
});

test('each altered row is named with what is wrong, the first 100 of many, and a broken log; the exit code is 2', async (t) => {
  const { dataDir } = altered;
  await executeSql(
    dataDir,
    `UPDATE agents SET description = 'x'; DELETE FROM policies;
    UPDATE credentials SET newest_sealed = x'00' WHERE path = 'prod/key-1'`,
  );
  const named = ['state wrong: agent:bot: altered', 'state wrong: policy:bot-0: missing'];
  const value = 'state wrong: credential:prod/key-1 version 1: value unreadable';
  for (const [flag, problems] of [
    ['--state', named],
    ['--values', [...named, value]],
  ] as const) {
    const { code, told } = await check(t, altered, flag);
    assert.deepEqual([code, told], [2, ['log ok: 7 entries, chain intact', ...problems]]);
  }
  await executeSql(
    dataDir,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
    INSERT INTO policies (name, principal, resources, actions, max_ttl_seconds, created_at, mac)
      SELECT 'p' || i, 'agent:bot', '["*"]', '["retrieve"]', 60, 1, 'mac' FROM n`,
  );
  const many = await check(t, altered, '--state');
  assert.deepEqual([many.code, many.told.length, many.told.at(-1)], [2, 102, 'state wrong: 52 more']);
  await executeSql(dataDir, "UPDATE audit_entries SET reason = 'x' WHERE seq = 3");
  const broken = await check(t, altered, '--state');
  assert.equal(broken.code, 2);
  assert.match(broken.told[0] ?? '', /^log wrong: .*entry 3/);
});

test('a terminal shows how many rows were checked, and a finding is wrapped between its words', async (t) => {
  await executeSql(intact.dataDir, 'DELETE FROM sessions');
  const between = await standBetween(t, intact);
  const body = { running: false, entries_checked: null, entries_total: null, started_at: null, rows_checked: 1200 };
  // The check lasts until its progress is seen.
  const { promise: isShown, resolve: endCheck } = Promise.withResolvers<void>();
  between.next({ after: isShown }, ({ path }) => path.includes('/verify?'));
  for (let at = 0; at < 9; at++) {
    between.next({ status: 200, body: JSON.stringify({ data: body }) }, ({ path }) => path.endsWith('/progress'));
  }
  const environment = { LEASEHOLD_ADDR: between.address, LEASEHOLD_TOKEN: intact.adminToken };
  const home = newHome(t, environment);
  const checking = home.onTerminal(['doctor', '--state']);
  await checking.shows(/Checking {2}1,200/);
  endCheck();
  assert.equal((await checking.ended).exitCode, 2);
  assert.ok(checking.screen().includes(CLEARED));
  assert.match(checking.screen(), /state {11}wrong {3}session:\d{13}:\S+:\n {24}missing\n/);
});
