// `leasehold run --use`: the program uses credentials by base URL, with a token in place of the key, and has no value.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { COMMAND, COMPILED, newHome, type RunOptions } from '../kit/command.ts';
import { until } from '../kit/log-receivers.ts';
import { startTestService } from '../kit/service.ts';
import { storeWithTargets, VALUE } from '../kit/use.ts';

const service = await startTestService({ after });
const { address, admin } = service;
const upstream = await startUpstream({ after }, (request, response) => {
  response.end(`${request.url} ${request.headers.authorization === `Bearer ${VALUE}` ? 'with' : 'without'} the key`);
});
await storeWithTargets(service, 'openai/key', upstream, { service: 'openai' });
await storeWithTargets(service, 'openai/other', upstream, { service: 'openai' });
await storeWithTargets(service, 'own/api', upstream);
await storeWithTargets(service, 'slack/token', upstream, { service: 'slack' });
await admin.post('/api/v1/credentials', { path: 'prod/plain', value: 'a plain value' });
const agent = await service.agent('runner', {
  '*': ['use'],
  'prod/*': ['retrieve'],
  'openai/*': ['retrieve'],
});
const own = { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: agent.token, OPENAI_API_KEY: 'sk-inherited-from-the-caller' };
const home = newHome({ after }, own);
const run = (words: readonly string[], more: RunOptions = {}) => home.leasehold(['run', ...words], more);
const shell = (uses: readonly string[], script: string, more: RunOptions = {}) =>
  run([...uses, '--', 'sh', '-c', script], more);
/** For an error that precedes the program. */
const refuse = (words: readonly string[], more: RunOptions = {}) =>
  run([...words, '--', 'echo', 'started'], { ...more, isInProcess: true });

interface ListedLease {
  readonly path: string;
  readonly status: string;
  readonly agent_name: string;
  readonly expires_at: string;
}
const leases = async (): Promise<ListedLease[]> => (await admin.get('/api/v1/leases')).body.data;
const countActive = async () => (await leases()).filter(({ status }) => status === 'active').length;
const countEvents = async (event: string): Promise<number> =>
  (await admin.get(`/api/v1/audit?event_type=${event}`)).body.meta.total;

/** Prints the responses of GETs below the base URLs of the names, each with its key. */
const ASK = join(home.path, 'ask.mjs');
writeFileSync(
  ASK,
  `for (const name of process.argv.slice(2)) {
    const { [name + '_BASE_URL']: url, [name + '_API_KEY']: key } = process.env;
    const response = await fetch(url + '/models', { headers: { authorization: 'Bearer ' + key } });
    console.log(response.status, await response.text());
  }`,
);
const ask = (...names: readonly string[]): string => `node ${ASK} ${names.join(' ')}`;

test('the variables of the SDK reach the vault, and the value is nowhere in the program', async () => {
  const script = `${ask('OPENAI')}; echo "$OPENAI_BASE_URL"; env`;
  const { code, stdout, stderr } = await shell(['--use', 'openai/key', '--no-masking'], script);
  const [answer, baseUrl, ...environment] = stdout.split('\n');
  assert.deepEqual(
    [code, answer, baseUrl],
    [0, '200 /v1/models with the key', `${address}/use/openai/key/-/v1`],
    stderr,
  );
  assert.equal(stdout.includes(VALUE), false);
  assert.match(environment.find((line) => line.startsWith('OPENAI_API_KEY=')) ?? '', /=lhu_[A-Za-z0-9_-]{43}$/);
  assert.equal(await countActive(), 0);
});

test('the token is masked in the output', async () => {
  const { stdout } = await shell(['--use', 'openai/key'], 'echo "key: $OPENAI_API_KEY"');
  assert.equal(stdout, 'key: [secret]\n');
});

test('NAME=PATH sets the base URL without the SDK’s suffix, for any credential with targets', async () => {
  const uses = ['--use', 'OWN=own/api', '--use', 'WORK=openai/other', '--use', 'openai/key'];
  const { stdout, stderr } = await shell(uses, `${ask('OWN', 'WORK', 'OPENAI')}; echo "$OWN_BASE_URL"`);
  const expected = ['200 /models with the key', '200 /models with the key', '200 /v1/models with the key'];
  assert.deepEqual(stdout.split('\n').slice(0, 4), [...expected, `${address}/use/own/api/-`], stderr);
});

test('a credential whose SDK takes no base URL needs a name, and its lease is revoked', async () => {
  for (const path of ['own/api', 'slack/token']) {
    const { code, stdout, stderr } = await refuse(['--use', path]);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /no SDK of its service takes both base URL and key from variables[\s\S]*--use NAME=\S+ sets NAME_/,
    );
  }
  assert.equal(await countActive(), 0);
});

test('of several uses the later one sets a variable, and one lease is issued for each path', async () => {
  const before = (await leases()).length;
  const uses = ['--use', 'openai/key', '--use', 'openai/other', '--use', 'A=openai/other', '--use', 'B=openai/other'];
  const { stdout } = await shell(uses, 'echo "$OPENAI_BASE_URL"');
  assert.equal(stdout, `${address}/use/openai/other/-/v1\n`);
  assert.equal((await leases()).length, before + 2);
});

test('a use overrides files, whose values are then not retrieved; --env overrides a use', async () => {
  writeFileSync(
    join(home.path, 'own.env'),
    'OPENAI_API_KEY=leasehold://openai/key\nOPENAI_BASE_URL=https://{{leasehold://openai/key}}/\nPLAIN=leasehold://prod/plain\n',
  );
  const before = await countEvents('credential.retrieve');
  const both = ['--use', 'openai/key', '--env-file', 'own.env'];
  const first = await shell([...both, '--no-masking'], `${ask('OPENAI')}; echo "$PLAIN"`);
  assert.equal(first.stdout, '200 /v1/models with the key\na plain value\n', first.stderr);
  assert.equal(await countEvents('credential.retrieve'), before + 1);
  const second = await shell([...both, '--env', 'OPENAI_API_KEY=prod/plain', '--no-masking'], 'echo "$OPENAI_API_KEY"');
  assert.equal(second.stdout, 'a plain value\n');
});

test('[run.NAME] names uses too, and nothing else is accepted as one', async () => {
  const project = newHome({ after }, own);
  const write = (text: string) => writeFileSync(join(project.path, 'leasehold.toml'), text);
  const inProject = (...words: readonly string[]) => project.leasehold(['run', ...words]);
  write('[run.default]\nuse = ["openai/key", "OWN=own/api"]\nPLAIN = "prod/plain"\n');
  const script = ['--no-masking', '--', 'sh', '-c', `echo "$OPENAI_BASE_URL $OWN_BASE_URL $PLAIN"`];
  const { stdout, stderr } = await inProject(...script);
  assert.equal(stdout, `${address}/use/openai/key/-/v1 ${address}/use/own/api/- a plain value\n`, stderr);
  assert.match(stderr, /leasehold\.toml \[run\.default\]: PLAIN, use of openai\/key, use of OWN=own\/api/);
  for (const [text, message] of [
    ['use = "openai/key"', /use must be a list of paths/],
    ['use = [1]', /use must be a list of paths/],
    ['use = ["LD_PRELOAD=openai/key"]', /LD_PRELOAD_BASE_URL changes how programs load code/],
    ['use = ["../key"]', /\[run\.default\] use: the path of a credential/],
    ['PLAIN = ["openai/key"]', /PLAIN must be the path of a credential/],
  ] as const) {
    write(`[run.default]\n${text}\n`);
    const refused = await project.leasehold(['run', '--', 'true'], { isInProcess: true });
    assert.deepEqual([refused.code, message.test(refused.stderr)], [1, true], refused.stderr);
  }
});

test('a use that is denied is printed with the command that explains it, and no lease remains', async () => {
  const reader = await service.agent('reader', { 'own/*': ['use'] });
  const as = { environment: { LEASEHOLD_TOKEN: reader.token } };
  const { code, stdout, stderr } = await refuse(['--use', 'OWN=own/api', '--use', 'openai/key'], as);
  assert.deepEqual([code, stdout], [2, '']);
  assert.match(stderr, /--use \(openai\/key\): Access denied/);
  const asAdmin = await shell(['--use', 'openai/key'], 'true', {
    environment: { LEASEHOLD_TOKEN: service.adminToken },
  });
  assert.deepEqual([asAdmin.code, /ACCESS_DENIED[\s\S]*as an agent: --agent NAME/.test(asAdmin.stderr)], [2, true]);
  assert.equal(await countActive(), 0);
});

test('a Unix socket, a version and a malformed name are rejected before anything is sent', async () => {
  for (const [words, message] of [
    [['--address', 'unix:/tmp/none', '--use', 'openai/key'], /programs cannot connect to a Unix socket/],
    [['--use', 'openai/key?version=2'], /a use takes the newest version/],
    [['--use', '1A=openai/key'], /NAME of NAME=PATH must begin with a letter/],
  ] as const) {
    const { code, stderr } = await refuse(words);
    assert.deepEqual([code, message.test(stderr)], [1, true], stderr);
  }
});

/** An agent with leases that are renewed after half of that time: longer than a busy machine stands still. */
async function briefAgent(name: string) {
  const { token } = await service.agent(name);
  const policy = { name, principal: `agent:${name}`, resources: ['openai/*'], actions: ['use'], max_ttl: 8 };
  assert.equal((await admin.post('/api/v1/policies', policy)).status, 201);
  return { LEASEHOLD_TOKEN: token };
}

/** Starts the command; its program can be told to go on by standard input. */
function start(script: string, more: Readonly<Record<string, string>> = {}) {
  const words = [...COMMAND, 'run', '--use', 'openai/key', '--', 'sh', '-c', script];
  const environment = { PATH: process.env['PATH'], HOME: home.path, ...COMPILED, ...own, ...more };
  const child = spawn(words[0] ?? '', words.slice(1), { env: environment });
  const ended = once(child, 'close');
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  return { child, ended, stdout: () => stdout, stderr: () => stderr };
}

test('use leases are renewed while the program runs', async () => {
  const { child, ended, stdout, stderr } = start(`read x; ${ask('OPENAI')}`, await briefAgent('brief'));
  const expiry = async (): Promise<number> => {
    const lease = (await leases()).find(({ agent_name: name }) => name === 'brief');
    return Date.parse(lease?.expires_at ?? '');
  };
  await until(async () => (await expiry()) > 0);
  const first = await expiry();
  await until(async () => Date.now() > first && (await expiry()) > first);
  child.stdin.end('\n');
  await ended;
  assert.equal(stdout(), '200 /v1/models with the key\n', stderr());
  assert.equal(await countActive(), 0);
});

test('use leases are not renewed with --ttl', async () => {
  const as = { environment: await briefAgent('limited') };
  const limited = await shell(['--use', 'openai/key', '--ttl', '1'], `sleep 2.5; ${ask('OPENAI')}`, as);
  assert.match(limited.stdout, /^409 .*LEASE_ENDED/);
  assert.equal(await countActive(), 0);
});

test('a lease that cannot be renewed any more is reported', async () => {
  const { child, ended, stderr } = start('read x', await briefAgent('former'));
  await until(async () => (await countActive()) > 0);
  assert.equal((await admin.delete('/api/v1/policies/former')).status, 204);
  await until(() => stderr().includes('not renewed'));
  assert.match(stderr(), /openai\/key: the use lease was not renewed: Access denied/);
  child.stdin.end('\n');
  await ended;
});

test('a signal ends the program, and the lease with it', async () => {
  const { child, ended, stdout } = start('echo started; exec sleep 600');
  await until(() => stdout() !== '');
  assert.equal(await countActive(), 1);
  child.kill('SIGTERM');
  const [, signal] = await ended;
  assert.equal(signal, 'SIGTERM');
  assert.equal(await countActive(), 0);
});
