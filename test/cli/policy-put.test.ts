// policy put: what it shows and asks, limits of uses in flags and files, and questions about a request.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

const NARROW = 'policy put ci --principal agent:ci --resource ci/* --action retrieve --max-ttl 60';
const WIDE = 'policy put ci --principal agent:ci --resource ci/* --resource prod/* --action retrieve --max-ttl 900';
const CHANGES = [
  '~ replace ci  WIDENS ACCESS',
  '    resources: ci/* → ci/*, prod/*  (wider)',
  '    max_ttl: 60 → 900  (wider)',
];

const ORIGIN = 'https://api.example.com';

const service = await startTestService({ after });
const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };

/** A home of its own, in a vault without policies. */
async function scene(t: TestContext) {
  for (const { name } of (await service.admin.get('/api/v1/policies')).body.data)
    await service.admin.delete(`/api/v1/policies/${name}`);
  const home = newHome(t, environment);
  const run = (words: string | readonly string[], input = '') =>
    home.leasehold(typeof words === 'string' ? words.split(' ') : words, { input });
  /** Runs the command at a terminal and answers its question. */
  const answer = async (line: string, question: RegExp, said: string) => {
    const screen = home.onTerminal(line.split(' '), { columns: 200 });
    await screen.shows(question);
    screen.type(said);
    return { code: (await screen.ended).exitCode, shown: screen.screen() };
  };
  const limitsOf = async (name: string) => (await service.admin.get(`/api/v1/policies/${name}`)).body.data.limits;
  const policies = async () => (await service.admin.get('/api/v1/policies')).body.data;
  /** How many changes of policies the log has. */
  const changes = async (): Promise<number> =>
    (await service.admin.get('/api/v1/audit?resource=policy:*')).body.data.length;
  return { home, run, answer, policies, limitsOf, changes };
}

test('a policy is created without a question, and an unchanged one is not replaced', async (t) => {
  const { run, policies, changes } = await scene(t);
  const dry = await run(`${NARROW} --dry-run`);
  assert.deepEqual(dry, {
    code: 0,
    signal: null,
    stdout: '+ create ci\n    agent:ci may retrieve ci/* for up to 60 s\n',
    stderr: 'Nothing was done.\n',
  });
  assert.deepEqual(await policies(), []);
  const created = await run(NARROW);
  assert.deepEqual([created.code, created.stderr], [0, 'Created policy ci.\n']);
  assert.match(created.stdout, /^name +ci\n/);
  const seen = await changes();
  const again = await run(`${NARROW} -o json`);
  assert.deepEqual([again.code, again.stderr], [0, 'Policy ci is unchanged.\n']);
  assert.deepEqual([JSON.parse(again.stdout)], await policies());
  assert.equal(await changes(), seen);
});

test('a replacement shows its changes; without a terminal it needs --yes, and --dry-run overrides that', async (t) => {
  const { run, policies, changes } = await scene(t);
  await run(NARROW);
  const [before, seen] = [await policies(), await changes()];
  const unasked = await run(WIDE);
  assert.deepEqual([unasked.code, unasked.stdout], [1, '']);
  assert.equal(
    unasked.stderr,
    `${CHANGES.join('\n')}\nleasehold: Replace policy ci? This needs confirmation on a terminal.\n  Use --yes to confirm, or --dry-run to see the changes.\n`,
  );
  const dry = await run(`${WIDE} --dry-run --yes`);
  assert.deepEqual(dry, { code: 0, signal: null, stdout: `${CHANGES.join('\n')}\n`, stderr: 'Nothing was done.\n' });
  const record = JSON.parse((await run(`${WIDE} --yes --dry-run -o json`)).stdout);
  assert.deepEqual([record.applied, record.steps[0].change, record.steps[0].widens], [false, 'replace', true]);
  assert.deepEqual([await policies(), await changes()], [before, seen]);
  const done = await run(`${WIDE} --yes`);
  assert.deepEqual([done.code, done.stderr], [0, `${CHANGES.join('\n')}\nReplaced policy ci.\n`]);
  assert.equal((await policies())[0].max_ttl, 900);
});

test('a person is asked before a policy is replaced: no exits with 3, yes replaces it', async (t) => {
  const { run, answer, policies } = await scene(t);
  await run(NARROW);
  const question = /WIDENS ACCESS[\s\S]*Replace policy ci\? \[y\/N\] /;
  const no = await answer(WIDE, question, '\r');
  assert.deepEqual([no.code, /Nothing was done\./.test(no.shown)], [3, true], no.shown);
  assert.equal((await policies())[0].max_ttl, 60);
  const yes = await answer(WIDE, question, 'y\r');
  assert.deepEqual([yes.code, /Replaced policy ci\./.test(yes.shown)], [0, true], yes.shown);
  assert.equal((await policies())[0].max_ttl, 900);
});

const PUT = ['policy', 'put', 'p', '--principal', 'agent:ci', '--resource', 'a/*', '--action', 'use'];

test('limits are put by flags and by files, and what is shown can be put again', async (t) => {
  const { home, run, limitsOf } = await scene(t);
  const flags = ['--uses-per-hour', '100', '--bytes-per-hour', '1000000', '--concurrent', '4'];
  assert.equal((await run([...PUT, ...flags])).code, 0);
  const limits = { uses_per_hour: 100, bytes_per_hour: 1_000_000, concurrent: 4 };
  assert.deepEqual(await limitsOf('p'), limits);
  const shown = (await run(['policy', 'show', 'p', '-o', 'yaml'])).stdout;
  const again = await run(['policy', 'put', 'p', '--file', '-'], shown);
  assert.deepEqual([again.code, again.stderr], [0, 'Policy p is unchanged.\n']);
  assert.deepEqual(await limitsOf('p'), limits);

  const toml = ['principal = "agent:ci"', 'resources = ["a/*"]', 'actions = ["use"]', '[limits]', 'concurrent = 9', ''];
  writeFileSync(join(home.path, 'p.toml'), toml.join('\n'));
  const replaced = await run(['policy', 'put', 'p', '--file', 'p.toml', '--yes']);
  assert.equal(replaced.code, 0, replaced.stderr);
  assert.match(
    replaced.stderr,
    /~ replace p {2}WIDENS ACCESS\n.* limits: uses_per_hour 100, .* → concurrent 9 {2}\(wider\)\n/s,
  );
  assert.deepEqual(await limitsOf('p'), { concurrent: 9 });
  assert.equal((await run([...PUT, '--yes'])).code, 0);
  assert.equal(await limitsOf('p'), undefined);
});

test('invalid limits are usage errors that name the flag or the field', async (t) => {
  const { run } = await scene(t);
  for (const [args, says] of [
    [[...PUT, '--concurrent', 'x'], /^leasehold: --concurrent: must be a whole number, 1 to /],
    [[...PUT, '--uses-per-hour', '0'], /^leasehold: --uses-per-hour: must be a whole number/],
    [['policy', 'put', 'p', '--file', 'x.toml', '--concurrent', '1'], /--file contains the whole policy/],
  ] as const) {
    const { code, stderr } = await run(args);
    assert.equal(code, 1);
    assert.match(stderr, says);
  }
  const head = 'principal: agent:ci\nresources: [a]\n';
  for (const [rest, says] of [
    ['actions: [use]\nlimits: {concurent: 1}\n', /limits\.concurent: unknown field; did you mean concurrent\?/],
    ['actions: [use]\nlimits: {}\n', /limits: must have one or more of uses_per_hour, bytes_per_hour, concurrent/],
    ['actions: [use]\nlimits: 5\n', /limits: must contain one or more of/],
    ['actions: [use]\nlimits: {concurrent: "5"}\n', /limits\.concurrent: must be a whole number/],
    ['actions: [list]\nlimits: {concurrent: 5}\n', /limits: is only for policies with the action use/],
  ] as const) {
    const { code, stderr } = await run(['policy', 'put', 'p', '--file', '-'], head + rest);
    assert.equal(code, 1);
    assert.match(stderr, says);
  }
});

test('a policy with which an agent could send the value to its own host is noted', async (t) => {
  const { run } = await scene(t);
  const put = (...actions: string[]) =>
    run(['policy', 'put', 'p', '--yes', '--principal', 'agent:ci', '--resource', 'a/*', '--action', actions.join(',')]);
  const note = /store and use together amount to retrieve/;
  assert.match((await put('store', 'use')).stderr, note);
  for (const actions of [['store'], ['use'], ['store', 'use', 'retrieve']]) {
    assert.doesNotMatch((await put(...actions)).stderr, note);
  }
});

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
  await run([...PUT, '--max-ttl', '60']);
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
