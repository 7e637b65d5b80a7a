// Proxies of the environment. SOURCE: docs/decisions.md, "No proxy on the way to this machine". A listener stands at
// the address that every variable names, and sees no connection while each client works.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { startUpstream } from '../broker/upstream.ts';
import { startKv2Server } from '../cli/fake-kv2.ts';
import { example, flagsOfExample } from '../client/programs.ts';
import { ROOT } from '../conventions/source.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { COMMAND, COMPILED } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startHttpReceiver, until, webhookStream } from '../kit/log-receivers.ts';
import { startProvider } from '../kit/oidc-provider.ts';
import { startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { AUTH, openBrowser, toLocalhost } from '../kit/sign-in.ts';
import { storeWithTargets } from '../kit/use.ts';

let connections = 0;
const proxy = createServer((socket) => {
  connections += 1;
  socket.on('error', () => undefined).destroy();
}).listen(0, '127.0.0.1');
await once(proxy, 'listening');
after(() => proxy.close());
const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
const SPELLINGS = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'];
const PROXIES = {
  ...Object.fromEntries(SPELLINGS.map((name) => [name, proxyUrl])),
  NODE_USE_ENV_PROXY: '1',
  NODE_OPTIONS: '--use-env-proxy',
};

const home = temporaryDirectory({ after });
const certificate = makeCertificate({ after });
const plain = await startTestService({ after });
const secure = await startTestService({ after }, certificate.flags);
const socketPath = join(home, 'socket');
const onSocket = await startTestService({ after }, ['--listen', `unix:${socketPath}`]);
const own = join(home, 'own');
await startProcess({ after }, own);
const upstream = await startUpstream({ after }, (_request, response) => response.end('{}'));
await storeWithTargets(plain, 'openai/key', upstream, { service: 'openai' });
await plain.admin.post('/api/v1/credentials', { path: 'prod/db', value: 'correct horse' });
const agent = await plain.agent('runner', { 'prod/*': ['retrieve', 'list'], '*': ['use'] });
const keyFile = join(plain.dataDir, 'agents/runner/private_key.pem');

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const execute = (words: readonly string[], environment: Readonly<Record<string, string>>) =>
  new Promise<Ran>((resolve) => {
    const [program = '', ...others] = words;
    const env = { PATH: process.env['PATH'] ?? '', HOME: home, ...COMPILED, ...environment };
    execFile(program, others, { cwd: home, env, timeout: 120_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
    );
  });

/** Runs the program with every proxy variable; returns its output. */
async function works(words: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<string> {
  connections = 0;
  const { code, stdout, stderr } = await execute(words, { ...PROXIES, ...environment });
  assert.deepEqual([code, connections], [0, 0], `${words.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

const cli = (...words: string[]): string[] => [...COMMAND, ...words];
const admin = ({ address, adminToken }: { readonly address: string; readonly adminToken: string }) => ({
  LEASEHOLD_ADDR: address,
  LEASEHOLD_TOKEN: adminToken,
});
/** A program of its own, next to the library's source. */
function program(name: string, text: string): string[] {
  const file = join(home, name);
  writeFileSync(file, text);
  return [process.execPath, '--conditions=leasehold-source', file];
}

test('the listener is reached by programs that follow the variables', async () => {
  const call = `await fetch('${plain.address}/livez').catch(() => undefined)`;
  for (const activation of [{ NODE_USE_ENV_PROXY: '1' }, { NODE_OPTIONS: '--use-env-proxy' }]) {
    for (const name of ['HTTP_PROXY', 'http_proxy']) {
      connections = 0;
      await execute([process.execPath, '--input-type=module', '--eval', call], { ...activation, [name]: proxyUrl });
      assert.equal(connections, 1, name);
    }
  }
});

test('the CLI connects directly over HTTP, TLS, a Unix socket and to a data directory', async () => {
  const list = cli('list', '--output', 'json');
  await works(list, { ...admin(plain), LEASEHOLD_ADDR: toLocalhost(plain.address) });
  await works(list, { ...admin(secure), LEASEHOLD_CA_FILE: certificate.certFile });
  await works(list, { ...admin(secure), NODE_EXTRA_CA_CERTS: certificate.certFile });
  await works(list, { ...admin(onSocket), LEASEHOLD_ADDR: `unix:${socketPath}` });
  await works(list, { LEASEHOLD_DATA_DIR: own });
  await works([process.execPath, '--use-env-proxy', ...list.slice(1)], admin(plain));
  await works(cli('doctor'), admin(plain));
});

test('the CLI imports from a vault on this machine directly', async (t) => {
  const { address, requests } = await startKv2Server(t, { 'app/db': { password: 'correct horse' } });
  const from = ['--vault-addr', address, '--dry-run'];
  await works(cli('import', ...from), { ...admin(plain), VAULT_TOKEN: 'hvs.test' });
  assert.ok(requests.length > 0);
});

test('the library connects directly, with its own fetch and with an authority', async () => {
  const source = join(ROOT, 'src/client/leasehold.ts');
  const read = (options: object): string =>
    `import { Leasehold } from ${JSON.stringify(source)};
     await new Leasehold(${JSON.stringify(options)}).credentials.list();`;
  const token = plain.adminToken;
  await works(program('plain.mjs', read({ address: plain.address, token })));
  await works(program('name.mjs', read({ address: toLocalhost(plain.address), token })));
  const { address, adminToken } = secure;
  await works(program('ca.mjs', read({ address, token: adminToken, ca: readFileSync(certificate.certFile, 'utf8') })));
  const trusted = { NODE_EXTRA_CA_CERTS: certificate.certFile };
  await works(program('secure.mjs', read({ address: toLocalhost(address), token: adminToken })), trusted);
});

test('the examples connect directly', async () => {
  const arguments_ = ['runner', keyFile, 'prod/db'];
  const environment = { LEASEHOLD_ADDR: plain.address };
  await works(['python3', example('agent.py'), ...arguments_], environment);
  await works([process.execPath, ...flagsOfExample('agent.ts'), example('agent.ts'), ...arguments_], environment);
});

test('the MCP server connects directly', async (t) => {
  const [command, ...first] = COMMAND;
  const args = [...first, 'mcp', '--address', plain.address, '--agent', 'runner', '--key-file', keyFile];
  const env = { HOME: home, ...COMPILED, ...PROXIES };
  connections = 0;
  const client = new Client({ name: 'test', version: '0' });
  t.after(() => client.close());
  await client.connect(new StdioClientTransport({ command, args, env, cwd: home, stderr: 'ignore' }));
  const { content } = await client.callTool({ name: 'list_credentials', arguments: {} });
  assert.match(JSON.stringify(content), /prod\/db/);
  assert.equal(connections, 0);
});

test('the program of run --use reaches its base URL directly: Node, Python and curl', async () => {
  const script = `'${process.execPath}' --input-type=module --eval 'const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key } = process.env;
      console.log((await fetch(url + "/models", { headers: { authorization: "Bearer " + key } })).status)'
    python3 -c 'import os, urllib.request as r
print(r.urlopen(r.Request(os.environ["OPENAI_BASE_URL"] + "/models",
  headers={"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})).status)'
    curl -sS -o answer -w '%{http_code}\n' -H "Authorization: Bearer $OPENAI_API_KEY" "$OPENAI_BASE_URL/models"`;
  const run = cli('run', '--use', 'openai/key', '--', 'sh', '-c', script);
  const environment = { LEASEHOLD_ADDR: plain.address, LEASEHOLD_TOKEN: agent.token, no_proxy: 'internal.example' };
  assert.equal(await works(run, environment), '200\n200\n200\n');
});

test('the server reaches an identity provider and receivers on this machine directly', async (t) => {
  const provider = await startProvider(t);
  let received = 0;
  const port = await startHttpReceiver(t, (_call, response) => {
    received += 1;
    response.end();
  });
  connections = 0;
  const flags = [...provider.flags, ...webhookStream(t, `http://127.0.0.1:${port}/`)];
  const { address } = await startProcess(t, join(temporaryDirectory(t), 'data'), flags, { environment: PROXIES });
  const begun = await openBrowser({ address }).post(`${AUTH}/oidc/options`, {});
  assert.equal(begun.status, 200, begun.text);
  await until(() => received > 0);
  assert.equal(connections, 0);
});
