// Changes of policies by policy put, apply and delete: their output, their questions, and their effect.
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
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

const service = await startTestService({ after });
const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };

/** A home of its own, in a vault without policies. */
async function scene(t: TestContext) {
  for (const { name } of (await service.admin.get('/api/v1/policies')).body.data)
    await service.admin.delete(`/api/v1/policies/${name}`);
  const home = newHome(t, environment);
  const folder = join(home.path, 'policies');
  mkdirSync(folder);
  const write = (file: string, text: string): void => writeFileSync(join(folder, file), text);
  const run = (words: string | readonly string[], input = '') =>
    home.leasehold(typeof words === 'string' ? words.split(' ') : words, { input });
  const apply = (...flags: string[]) => run(['policy', 'apply', 'policies', ...flags]);
  const limitsOf = async (name: string) => (await service.admin.get(`/api/v1/policies/${name}`)).body.data.limits;
  const policies = async () => (await service.admin.get('/api/v1/policies')).body.data;
  /** Changes of policies, in the order of the log. */
  const changes = async (): Promise<string[]> => {
    const { body } = await service.admin.get('/api/v1/audit?order=asc&resource=policy:*');
    return body.data.map(({ action, resource }: Record<string, string>) => `${action} ${resource}`);
  };
  return { home, folder, write, run, apply, policies, limitsOf, changes };
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
  assert.deepEqual(await changes(), seen);
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
    ['actions: [use]\nlimits: 5\n', /limits: must be an object with one or more of/],
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

const toToml = (principal: string, resources: readonly string[], ttl = 300): string =>
  `principal = "${principal}"\nresources = ${JSON.stringify(resources)}\nactions = ["retrieve"]\nmax_ttl = ${ttl}\n`;

test('policy apply shows the plan and executes it in order, and a second run finds no changes', async (t) => {
  const { folder, write, apply, policies, changes } = await scene(t);
  write('old.toml', toToml('agent:ci', ['ci/*'], 60));
  write('kept.json', JSON.stringify({ principal: 'agent:*', resources: ['*'], actions: ['list'], max_ttl: 3600 }));
  write('grows.yaml', 'principal: agent:a\nresources: [a]\nactions: [retrieve]\nmax_ttl: 60\n');
  assert.equal((await apply('--yes')).code, 0);
  assert.equal((await policies()).length, 3);

  rmSync(join(folder, 'old.toml'));
  write('new.toml', toToml('agent:ci', ['ci/*'], 60));
  write('grows.yaml', 'principal: agent:a\nresources: [a, b/*]\nactions: [retrieve]\nmax_ttl: 60\n');
  const before = await policies();
  const dry = await apply('--dry-run', '--prune');
  assert.deepEqual(dry, {
    code: 0,
    signal: null,
    stderr: '',
    stdout: [
      '~ replace grows  WIDENS ACCESS',
      '    resources: a → a, b/*  (wider)',
      '+ create new',
      '    agent:ci may retrieve ci/* for up to 60 s',
      '- delete old',
      '    agent:ci may retrieve ci/* for up to 60 s',
      '1 to create, 1 to replace (1 widening access), 1 to delete, 1 unchanged\n',
    ].join('\n'),
  });
  assert.deepEqual(await policies(), before, 'a dry run changes nothing');
  const seen = (await changes()).length;
  const done = await apply('--prune', '--yes', '-o', 'json');
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stderr, /\nReplaced grows\.\nCreated new\.\nDeleted old\.\n$/);
  assert.equal(JSON.parse(done.stdout).applied, true);
  assert.deepEqual((await changes()).slice(seen), ['replace policy:grows', 'replace policy:new', 'delete policy:old']);
  const again = await apply('--prune', '--yes', '-o', 'json');
  assert.deepEqual(JSON.parse(again.stdout), {
    applied: true,
    steps: [],
    unchanged: ['grows', 'kept', 'new'],
    kept: [],
  });
  assert.equal((await changes()).length, seen + 3);
});

test('one invalid file prevents every change and every request', async (t) => {
  const { write, apply, policies } = await scene(t);
  write('a.toml', toToml('agent:a', ['a']));
  write('b.toml', toToml('agent:a', ['a']).replace('resources', 'resource'));
  const failed = await apply('--yes');
  assert.equal(failed.code, 1);
  assert.match(
    failed.stderr,
    /^leasehold: 2 problems\npolicies\/b\.toml: resource: unknown field; did you mean resources\?\npolicies\/b\.toml: resources: is required\.\n {2}Nothing was changed\.\n$/,
  );
  assert.deepEqual(await policies(), []);
  assert.equal((await apply('--yes', '--address', 'http://127.0.0.1:9')).code, 1);
});

test('without --prune other policies stay, and without --yes or a terminal nothing changes', async (t) => {
  const { write, apply, policies, changes } = await scene(t);
  await service.agent('bot', { 'x/*': ['retrieve'] });
  write('a.toml', toToml('agent:a', ['a']));
  const seen = await changes();
  const unasked = await apply();
  assert.deepEqual([unasked.code, unasked.stdout], [1, '']);
  assert.match(
    unasked.stderr,
    /\+ create a\n[\s\S]*Make this change\? This needs confirmation on a terminal[\s\S]*--yes/,
  );
  assert.deepEqual(await changes(), seen);
  const done = await apply('--yes');
  assert.match(done.stderr, /in no file, and left alone without --prune: bot-0\n/);
  assert.deepEqual(
    (await policies()).map(({ name }: { name: string }) => name),
    ['a', 'bot-0'],
  );
});

test('a person sees the plan and is asked: no changes nothing and exits with 3, yes applies it', async (t) => {
  const { home, write, policies } = await scene(t);
  write('a.toml', toToml('agent:a', ['a']));
  const ask = async (answer: string, code: number): Promise<string> => {
    const terminal = home.onTerminal(['policy', 'apply', 'policies'], { columns: 120 });
    await terminal.shows(/Make this change\? \[y\/N\] /);
    assert.match(terminal.screen(), /\+ create a\n/);
    terminal.type(answer);
    assert.equal((await terminal.ended).exitCode, code);
    return terminal.screen();
  };
  assert.match(await ask('\r', 3), /Nothing was done\./);
  assert.deepEqual(await policies(), []);
  assert.match(await ask('y\r', 0), /Created a\./);
  assert.equal((await policies()).length, 1);
});

test('a deletion shows what the policy grants, and its dry run changes nothing', async (t) => {
  const { home, policies } = await scene(t);
  await service.agent('ci-1', { 'ci/*': ['retrieve'] });
  await service.agent('other');
  const body = { principal: 'agent:ci-*', resources: ['ci/*', 'db'], actions: ['retrieve'], max_ttl: 60 };
  await service.admin.put('/api/v1/policies/ci', body);
  const dry = await home.leasehold(['policy', 'delete', 'ci', '--dry-run']);
  assert.deepEqual(dry, {
    code: 0,
    signal: null,
    stdout: [
      '- delete ci',
      '    agent:ci-* may retrieve ci/*, db for up to 60 s',
      'Existing leases stay valid until they expire; leasehold lease revoke ends them.\n',
    ].join('\n'),
    stderr: 'Policy ci will be deleted. Nothing was done.\n',
  });
  assert.equal((await policies()).length, 2);
  const rows = await home.leasehold(['policy', 'delete', 'ci-1-0', '--dry-run', '-o', 'json']);
  const steps = [{ name: 'ci-1-0', change: 'delete', widens: false, fields: [] }];
  assert.deepEqual(JSON.parse(rows.stdout), { applied: false, steps, unchanged: [], kept: [] });
  const nobody = await home.leasehold(['policy', 'delete', 'ci']);
  assert.deepEqual([nobody.code, /Delete it\? This needs confirmation on a terminal/.test(nobody.stderr)], [1, true]);
  const missing = await home.leasehold(['policy', 'delete', 'cj', '--dry-run']);
  assert.deepEqual([missing.code, /does not exist/.test(missing.stderr)], [2, true]);
  assert.equal((await home.leasehold(['policy', 'delete', 'ci', '-y'])).code, 0);
  assert.equal((await policies()).length, 1);
});
