// `leasehold run --use`: the program uses credentials by base URL, with a token in place of the key, and has no value.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { newHome, type RunOptions } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';
import { storeWithTargets, VALUE } from '../kit/use.ts';
import { runScript, seeScript } from './run-fixture.ts';

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
/** Runs the command in the test's process, up to an error that precedes the program. */
const refuse = (words: readonly string[], more: RunOptions = {}) =>
  home.leasehold(['run', ...words, '--', 'echo', 'started'], { ...more, isInProcess: true });

const countActive = async (): Promise<number> => (await admin.get('/api/v1/leases?status=active')).body.data.length;
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
const ask = (...names: readonly string[]): string => `"${process.execPath}" ${ASK} ${names.join(' ')}`;

test('the variables of the SDK, or of a name, reach the vault; the token is masked, and the value is nowhere', async () => {
  const uses = ['--use', 'OWN=own/api', '--use', 'WORK=openai/other', '--use', 'openai/key'];
  const script = `echo "key: $OPENAI_API_KEY"; exec >"$HOME/seen"; ${ask('OPENAI', 'OWN', 'WORK')}; env`;
  const { code, stdout, stderr } = await runScript(home, uses, script);
  const seen = readFileSync(join(home.path, 'seen'), 'utf8');
  const lines = seen.split('\n');
  assert.deepEqual([code, stdout], [0, 'key: [secret]\n'], stderr);
  const [official, ...named] = lines.slice(0, 3);
  assert.deepEqual([official, named], ['200 /v1/models with the key', Array(2).fill('200 /models with the key')]);
  assert.ok(lines.includes(`OPENAI_BASE_URL=${address}/use/openai/key/-/v1`));
  assert.ok(lines.includes(`OWN_BASE_URL=${address}/use/own/api/-`));
  assert.match(seen, /^OPENAI_API_KEY=lhu_[A-Za-z0-9_-]{43}$/m);
  assert.equal(seen.includes(VALUE), false);
  assert.equal(await countActive(), 0);
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
  const count = async (): Promise<number> => (await admin.get('/api/v1/leases')).body.data.length;
  const before = await count();
  const uses = ['--use', 'openai/key', '--use', 'openai/other', '--use', 'A=openai/other', '--use', 'B=openai/other'];
  const { stdout } = await runScript(home, uses, 'echo "$OPENAI_BASE_URL"');
  assert.equal(stdout, `${address}/use/openai/other/-/v1\n`);
  assert.equal(await count(), before + 2);
});

test('a use overrides files, whose values are then not retrieved; --env overrides a use', async () => {
  const file = join(home.path, 'own.env');
  writeFileSync(
    file,
    'OPENAI_API_KEY=leasehold://openai/key\nOPENAI_BASE_URL=https://{{leasehold://openai/key}}/\nPLAIN=leasehold://prod/plain\n',
  );
  const before = await countEvents('credential.retrieve');
  const both = ['--use', 'openai/key', '--env-file', file];
  const print = 'echo "$OPENAI_BASE_URL $OPENAI_API_KEY $PLAIN"';
  const first = await seeScript(home, both, print);
  assert.match(first.seen, /^http:\S+\/use\/openai\/key\/-\/v1 lhu_\S{43} a plain value\n$/, first.stderr);
  assert.equal(await countEvents('credential.retrieve'), before + 1);
  const second = await seeScript(home, [...both, '--env', 'OPENAI_API_KEY=prod/plain'], print);
  assert.match(second.seen, /^http:\S+ a plain value a plain value\n$/);
});

test('[run.NAME] names uses too, and nothing else is accepted as one', async () => {
  const project = newHome({ after }, own);
  const write = (text: string) => writeFileSync(join(project.path, 'leasehold.toml'), text);
  write('[run.default]\nuse = ["openai/key", "OWN=own/api"]\nPLAIN = "prod/plain"\n');
  const { seen, stderr } = await seeScript(project, [], 'echo "$OPENAI_BASE_URL $OWN_BASE_URL $PLAIN"');
  assert.equal(seen, `${address}/use/openai/key/-/v1 ${address}/use/own/api/- a plain value\n`, stderr);
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
  const asAdmin = await refuse(['--use', 'openai/key'], { environment: { LEASEHOLD_TOKEN: service.adminToken } });
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
