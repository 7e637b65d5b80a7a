// Commands on policies against the real server.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };

/** A home of its own, in a vault without policies. */
async function scene(t: TestContext) {
  for (const { name } of (await service.admin.get('/api/v1/policies')).body.data)
    await service.admin.delete(`/api/v1/policies/${name}`);
  const home = newHome(t, environment);
  const run = (words: string | readonly string[], input = '') =>
    home.leasehold(typeof words === 'string' ? words.split(' ') : words, { input });
  const policies = async () => (await service.admin.get('/api/v1/policies')).body.data;
  return { home, run, policies };
}

test('a policy is created from flags, a file or standard input, then listed, shown and deleted', async (t) => {
  const { home, run, policies } = await scene(t);
  const put = await run(
    'policy put ci --principal agent:ci-* --resource ci/* --resource x --action retrieve,list --max-ttl 1m',
  );
  assert.equal(put.code, 0, put.stderr);
  writeFileSync(join(home.path, 'two.toml'), 'principal = "agent:a"\nresources = ["a"]\nactions = ["store"]\n');
  assert.equal((await run('policy put two --file two.toml')).code, 0);
  const yaml = await run('policy put three --file -', 'principal: agent:*\nresources: ["*"]\nactions: [delete]\n');
  assert.equal(yaml.code, 0, yaml.stderr);
  const seen = (await policies()).map((policy: object) => Object.values(policy).slice(0, -1));
  assert.deepEqual(seen, [
    ['ci', 'agent:ci-*', ['ci/*', 'x'], ['retrieve', 'list'], 60],
    ['three', 'agent:*', ['*'], ['delete'], 300],
    ['two', 'agent:a', ['a'], ['store'], 300],
  ]);
  assert.deepEqual(JSON.parse((await run('policy list -o json')).stdout), await policies());
  assert.match(
    (await run('policy list')).stdout,
    /^NAME +PRINCIPAL +RESOURCES +ACTIONS +MAX TTL\nci +agent:ci-\* +ci\/\*, x +retrieve, list +60\n/,
  );
  const end = '2999-01-31T09:30:00.000Z';
  const brief = await run(`policy put brief --principal agent:a --resource a --action list --expires-at ${end}`);
  assert.match(brief.stdout, new RegExp(`^expires_at +${end}$`, 'm'));
  assert.match(
    (await run('policy list')).stdout,
    new RegExp(`^NAME .* MAX TTL +EXPIRES AT\nbrief .* ${end}\nci .* -\n`),
  );
  assert.equal((await run('policy delete brief --yes')).code, 0);
  assert.equal((await run('policy show ci --field max_ttl')).stdout, '60\n');
  const shown = (await run('policy show ci -o yaml')).stdout;
  assert.equal((await run('policy put ci --file -', shown)).code, 0, 'what is shown can be put');
  assert.deepEqual([(await run('policy delete two --yes')).code, (await policies()).length], [0, 2]);
  assert.equal((await run('policy show two')).code, 2);
});

const MISTAKES: readonly [line: string, says: RegExp][] = [
  ['policy put n --principal agent:a --resource a', /^leasehold: --action: is required\.\n/],
  [
    'policy put n',
    /^leasehold: 3 problems\n--principal: is required\n--resource: is required\n--action: is required\.\n/,
  ],
  ['policy put n --principal a --resource a --action list', /^leasehold: --principal: must be agent:<name>/],
  ['policy put n --principal agent:a --resource a --action lits', /^leasehold: --action: .*did you mean list\?\n/],
  ['policy put n --principal agent:a --resource a*b --action list', /^leasehold: --resource: \* is allowed only as/],
  ['policy put n --principal agent:a --resource a --action list --max-ttl 5x', /^leasehold: --max-ttl: must be/],
  ['policy put n --file x.toml --max-ttl 5', /^leasehold: --file contains the whole policy/],
  ['policy put n --file missing.toml', /^leasehold: missing\.toml: cannot be read \(ENOENT\)\.\n/],
  ['policy put n/ --principal agent:a --resource a --action list', /^leasehold: NAME: must be 1 to 128 characters/],
  ['policy explain admin fly a//b', /^leasehold: 3 problems\nAGENT: must .*\nACTION: must .*\nPATH: must /],
  ['policy test missing.txt', /^leasehold: missing\.txt: cannot be read/],
  ['policy apply missing', /^leasehold: missing: cannot be read/],
];

test('each field of an approval has its flag, and --timeout stays that of the connection', async (t) => {
  const { code, stdout } = await newHome(t, environment).leasehold(['policy', 'put', '--help']);
  assert.equal(code, 0);
  for (const flag of ['', '-each', '-scope', '-quorum', '-timeout'])
    assert.match(stdout, new RegExp(`--approval${flag} `));
  assert.doesNotMatch(stdout, /^ +--(?:each|scope|quorum) /m);
});

test('usage errors are found before any request and exit with 1', async (t) => {
  // Nothing listens at this address, so a request exits with 2.
  const home = newHome(t, { LEASEHOLD_ADDR: 'http://127.0.0.1:9', LEASEHOLD_TOKEN: 'lha_0123456789abcdef' });
  const hold = async ([line, says]: (typeof MISTAKES)[number]): Promise<void> => {
    const { code, stdout, stderr } = await home.leasehold(line.split(' '));
    assert.deepEqual([code, stdout], [1, ''], line);
    assert.match(stderr, says);
  };
  await Promise.all(MISTAKES.map(hold));
});

test('an explanation shows what was considered, and its suggested command grants exactly the request', async (t) => {
  const { home, run } = await scene(t);
  await service.agent('bot', { 'prod/web/*': ['retrieve'], '~x/*': ['list'] });
  await run('policy put others --principal agent:else --resource * --action retrieve');
  const denied = await run('policy explain bot retrieve ~x/=y');
  assert.equal(denied.code, 0, denied.stderr);
  assert.match(
    denied.stdout,
    /^bot retrieve ~x\/=y: DENIED\nNo policy grants this agent the action on this path; the nearest/,
  );
  assert.match(
    denied.stdout,
    /\nbot-0 .* fails pattern: the nearest is prod\/web\/\*\nbot-1 .* fails action: does not grant retrieve\n/,
  );
  assert.match(denied.stdout, /\n1 more policy does not name bot; --all shows them\.\n/);
  assert.match((await run('policy explain bot retrieve ~x/=y --all')).stdout, /\nothers .* fails principal/);
  for (const path of ['~x/=y', '=ls/a', 'prod/db']) {
    const { stdout } = await home.leasehold(['policy', 'explain', 'bot', 'retrieve', path]);
    const line = /^ {2}(leasehold policy put .*)$/m.exec(stdout)?.[1] ?? '';
    // The words as a shell splits them.
    const words = execFileSync('sh', ['-c', `leasehold() { printf '%s\\n' "$@"; }; ${line}`], { encoding: 'utf8' });
    assert.match((await home.leasehold(words.trimEnd().split('\n'))).stdout, /bot-retrieve/);
    const answer = await home.leasehold(['policy', 'explain', 'bot', 'retrieve', path, '-o', 'json']);
    const { allowed, policy_name, grant } = JSON.parse(answer.stdout);
    assert.deepEqual([allowed, grant], [true, null]);
    assert.match(policy_name, /^bot-retrieve/);
  }
  assert.equal((await run('policy explain bot retrieve prod/dc --field allowed')).stdout, 'false\n');
  const allowed = await run('policy explain bot retrieve prod/db');
  assert.match(allowed.stdout, /ALLOWED by bot-retrieve-3, for up to 300 s\n[\s\S]*\nbot-retrieve-3 .* decides: /);
});

test('an agent receives only the reason, and its query leaves no denial in the log', async (t) => {
  const { run, home } = await scene(t);
  const { token } = await service.agent('asker', { 'prod/*': ['retrieve'] });
  const asAgent = { environment: { LEASEHOLD_TOKEN: token } };
  const explained = await home.leasehold(['policy', 'explain', 'asker', 'list', 'prod/a'], asAgent);
  assert.deepEqual(
    [explained.code, explained.stdout],
    [
      0,
      'asker list prod/a: DENIED\nNo policy grants this agent the action.\n\n' +
        'Only the administrator may see which policies were considered, and grant more.\n',
    ],
  );
  const text = await home.leasehold(['policy', 'explain', 'asker', 'list', 'prod/a', '-o', 'json'], asAgent);
  assert.deepEqual([JSON.parse(text.stdout).policies, JSON.parse(text.stdout).grant], [null, null]);
  const denials = await service.admin.get('/api/v1/audit?result=denied&agent=asker');
  assert.deepEqual(denials.body.data, []);
  const others = await home.leasehold(['policy', 'explain', 'else', 'list', 'prod/a'], asAgent);
  assert.deepEqual([others.code, /may simulate only for itself/.test(others.stderr)], [2, true]);
  assert.match(
    (await run('policy explain asker retrieve prod/a')).stdout,
    /ALLOWED by asker-0/,
    'the administrator sees it',
  );
});

test('policy test exits with 0 if all expectations hold, 3 if one fails, and 1 if a row is invalid', async (t) => {
  const { home, run } = await scene(t);
  await run('policy put ci --principal agent:ci --resource ci/* --action retrieve --max-ttl 60');
  const file = join(home.path, 'expected.txt');
  writeFileSync(file, 'allow ci retrieve ci/a ttl 60\ndeny ci list ci/a # not yet\n');
  const held = await run('policy test expected.txt');
  assert.deepEqual(held, { code: 0, signal: null, stdout: '', stderr: 'expected.txt: 2 expectations, all passed.\n' });
  const failing = 'allow ci retrieve ci/a ttl 61\n\nallow ci retrieve cd/a\ndeny bob list x\n';
  const failed = await run('policy test -', failing);
  assert.equal(failed.code, 3);
  assert.equal(failed.stderr, 'standard input: 2 of 3 expectations failed.\n');
  assert.match(
    failed.stdout,
    /^LINE +EXPECTED +FOUND +REASON\n1 +allow ci retrieve ci\/a ttl 61 +ttl 60 by ci +Policy ci .*\n3 +allow ci retrieve cd\/a +denied +No policy .*\n$/,
  );
  const rows = JSON.parse((await run('policy test - -o json', failing)).stdout);
  assert.deepEqual(
    rows.map(({ line, holds }: { line: number; holds: boolean }) => [line, holds]),
    [
      [1, false],
      [3, false],
      [4, true],
    ],
  );
  const wrong = await run('policy test -', 'allow ci retreive ci/a\n');
  assert.deepEqual([wrong.code, wrong.stdout], [1, '']);
  assert.match(
    wrong.stderr,
    /^leasehold: standard input:1: ACTION: .*did you mean retrieve\?\n {2}Nothing was tested\.\n$/,
  );
});

test('policies in files are evaluated without a server, with the same results as after they are applied', async (t) => {
  const { home, run } = await scene(t);
  const folder = join(home.path, 'policies');
  mkdirSync(folder);
  writeFileSync(
    join(folder, 'wide.yaml'),
    'principal: agent:*\nresources: ["*"]\nactions: [retrieve, list]\nmax_ttl: 900\n',
  );
  writeFileSync(
    join(folder, 'tight.toml'),
    'principal = "agent:ci"\nresources = ["prod/*"]\nactions = ["retrieve"]\nmax_ttl = 60\n',
  );
  const rows =
    'allow ci retrieve prod/a ttl 60\nallow ci retrieve dev/a ttl 900\ndeny ci store dev/a\ndeny else list dev/a\n';
  const nowhere = { LEASEHOLD_ADDR: 'http://127.0.0.1:9' };
  const words = ['policy', 'test', '-', '--policies', 'policies', '-o', 'json'];
  const files = await home.leasehold(words, { input: rows, environment: nowhere });
  assert.equal(files.code, 3, files.stderr);
  assert.equal((await run('policy apply policies --yes')).code, 0);
  const vault = await run('policy test - -o json', rows);
  const plain = (text: string) => text.replaceAll(' The agent is not registered.', '');
  assert.equal(plain(vault.stdout), files.stdout);
});

const ORIGIN = 'https://api.example.com';

test('an explanation of a request tells the policy or the target that would grant exactly it', async (t) => {
  const { run } = await scene(t);
  const { admin } = service;
  await admin.post('/api/v1/credentials', { path: 'a/key', value: 'sk-0123456789' });
  const targets = { targets: [{ origin: ORIGIN, paths: ['/v1/*'], methods: ['GET'] }], placement: { kind: 'bearer' } };
  await admin.put('/api/v1/targets/a/key', targets);
  const explain = async (request: string) => run(['policy', 'explain', 'ci', 'use', 'a/key', '--request', request]);
  const first = await explain(`GET ${ORIGIN}/v1/models`);
  assert.match(first.stdout, /^ci use a\/key GET https:\/\/api\.example\.com\/v1\/models: DENIED\n/);
  assert.match(first.stdout, / leasehold policy put ci-use --principal agent:ci --resource a\/key --action use /);
  await run(['policy', 'put', 'ci-use', '--principal', 'agent:ci', '--resource', 'a/key', '--action', 'use']);
  assert.match((await explain(`GET ${ORIGIN}/v1/models`)).stdout, /: ALLOWED by ci-use/);

  const denied = await explain(`POST ${ORIGIN}/v1/files?purpose=x`);
  assert.match(denied.stdout, /: DENIED\n.*But no target of the credential has this method; the nearest is https:/);
  const command = `target put a/key --add --origin ${ORIGIN} --path /v1/files --method POST`;
  assert.ok(denied.stdout.includes(`This would allow it, and nothing else:\n  leasehold ${command}\n`));
  assert.equal(denied.stdout.includes('policy put'), false);
  await run(command.split(' '));
  assert.match((await explain(`POST ${ORIGIN}/v1/files?purpose=x`)).stdout, /: ALLOWED by ci-use/);
  assert.match((await explain(`POST ${ORIGIN}/v1/models`)).stdout, /: DENIED/);

  const wrong = await run(['policy', 'explain', 'ci', 'list', 'a/key', '--request', 'GET /v1']);
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /REQUEST: is only for the action use\nURL: must be an absolute URL/);
});

test('expectations about requests are tested against a vault only', async (t) => {
  const { home, run } = await scene(t);
  const { admin } = service;
  await admin.post('/api/v1/credentials', { path: 'a/key', value: 'sk-0123456789' });
  const targets = { targets: [{ origin: ORIGIN, paths: ['/v1/*'] }], placement: { kind: 'bearer' } };
  await admin.put('/api/v1/targets/a/key', targets);
  await run('policy put p --principal agent:ci --resource a/* --action use --max-ttl 60');
  const lines = [
    `allow ci use a/key GET ${ORIGIN}/v1/models ttl 60`,
    `deny ci use a/key GET ${ORIGIN}/v2/models # another version`,
    'allow ci use a/key',
  ];
  const held = await run(['policy', 'test', '-'], lines.join('\n'));
  assert.deepEqual([held.code, held.stderr], [0, 'standard input: 3 expectations, all passed.\n']);
  const failed = await run(['policy', 'test', '-'], `allow ci use a/key OPTIONS ${ORIGIN}/v1/models`);
  assert.equal(failed.code, 3);
  assert.match(failed.stdout, /has this method/);
  writeFileSync(join(home.path, 'policies.toml'), '');
  const local = await run(['policy', 'test', '-', '--policies', '.'], lines.slice(1).join('\n'));
  assert.equal(local.code, 1);
  assert.match(local.stderr, /^leasehold: standard input:1: a request can be tested only without --policies/);
});
