// policy put over an existing policy: it shows the changes and asks, and a no changes nothing.
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

const service = await startTestService({ after });
const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };

/** A home of its own, in a vault without policies. */
async function scene(t: TestContext) {
  for (const { name } of (await service.admin.get('/api/v1/policies')).body.data)
    await service.admin.delete(`/api/v1/policies/${name}`);
  const home = newHome(t, environment);
  const run = (line: string) => home.leasehold(line.split(' '));
  /** Runs the command at a terminal and answers its question. */
  const answer = async (line: string, question: RegExp, said: string) => {
    const screen = home.onTerminal(line.split(' '), { columns: 200 });
    await screen.shows(question);
    screen.type(said);
    return { code: (await screen.ended).exitCode, shown: screen.screen() };
  };
  const policies = async () => (await service.admin.get('/api/v1/policies')).body.data;
  /** How many changes of policies the log has. */
  const changes = async (): Promise<number> =>
    (await service.admin.get('/api/v1/audit?resource=policy:*')).body.data.length;
  return { home, run, answer, policies, changes };
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

test('a declined deletion or directory of policies changes nothing and exits with 3', async (t) => {
  const { home, run, answer, policies } = await scene(t);
  await run(NARROW);
  const kept = await answer('policy delete ci', /Delete it\? \[y\/N\] /, 'n\r');
  assert.deepEqual([kept.code, /Nothing was done\./.test(kept.shown)], [3, true], kept.shown);
  writeFileSync(join(home.path, 'ci.toml'), 'principal = "agent:ci"\nresources = ["x"]\nactions = ["list"]\n');
  assert.equal((await run('policy put ci --file ci.toml')).code, 1, 'a file asks as flags do');
  const left = await answer('policy apply .', /Make this change\? \[y\/N\] /, 'n\r');
  assert.deepEqual([left.code, /Nothing was done\./.test(left.shown)], [3, true], left.shown);
  assert.equal((await policies())[0].max_ttl, 60);
});

test('lists with commas and durations with units give the same policy', async (t) => {
  const { run, policies } = await scene(t);
  const line = 'policy put ci --principal agent:ci --resource ci/*,prod/a --action retrieve,list --max-ttl 15m';
  assert.equal((await run(line)).code, 0);
  const [policy] = await policies();
  assert.deepEqual([policy.resources, policy.actions, policy.max_ttl], [['ci/*', 'prod/a'], ['retrieve', 'list'], 900]);
});
