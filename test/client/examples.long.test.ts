/** The examples, run against the real service: they work, report denials, and never show the value. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { COMMAND } from '../kit/command.ts';
import { AGENT, example, flagsOfExample, openShop, type Shop, VALUE } from './programs.ts';

const KEY_FILE = `${AGENT}.pem`;

interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly if?: string;
}

interface Workflow {
  readonly jobs: {
    readonly deploy: { readonly env: Readonly<Record<string, string>>; readonly steps: readonly Step[] };
  };
}

/** Nothing that was begun for a program is left when it has ended. */
async function assertNothingLeft({ service }: Shop): Promise<void> {
  const active = await service.admin.get('/api/v1/leases?status=active');
  assert.deepEqual(active.body.data, []);
  const ended = await service.admin.get('/api/v1/audit?event_type=session.end');
  const begun = await service.admin.get('/api/v1/audit?event_type=auth.verify&result=allowed');
  assert.equal(ended.body.meta.total, begun.body.meta.total);
}

const PROGRAMS: readonly [name: string, program: string, words: readonly string[], done: RegExp][] = [
  [
    'TypeScript',
    process.execPath,
    [...flagsOfExample('agent.ts'), example('agent.ts')],
    /^Task 1 is done, with prod\/db\/password \(\[secret\]\)\.\n(?:Task .*\n){2}The lease is active until .*Z\.\n$/,
  ],
  ['Python', 'python3', [example('agent.py')], /^Worked with prod\/db\/password, on a lease until .*Z\.\n$/],
];

for (const [name, program, words, done] of PROGRAMS) {
  test(`the agent in ${name} works with its value, and leaves no lease and no session`, async (t) => {
    const shop = await openShop(t);
    const { code, stdout, stderr } = await shop.run(program, [...words, AGENT, KEY_FILE, 'prod/db/password']);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, done);
    assert.equal(stdout.includes(VALUE), false);
    await assertNothingLeft(shop);
    const { body } = await shop.service.admin.get('/api/v1/audit?action=retrieve&result=allowed');
    assert.equal(body.meta.total, 1);
  });

  test(`the agent in ${name} reports a denial with the request id of the log`, async (t) => {
    const shop = await openShop(t);
    const { code, stdout, stderr } = await shop.run(program, [...words, AGENT, KEY_FILE, 'prod/signing/key']);
    assert.deepEqual([code, stdout], [1, '']);
    const { body } = await shop.service.admin.get('/api/v1/audit?result=denied');
    const told = `${AGENT} may not retrieve prod/signing/key. The audit log records the request as`;
    assert.equal(stderr, `${told} ${body.data[0].request_id}.\n`);
    await assertNothingLeft(shop);
  });
}

test('the agent whose key is in ssh-agent works with its value, and without the key reports it', async (t) => {
  const shop = await openShop(t);
  const inDirectory = async (program: string, ...words: string[]) => {
    const { code, stderr } = await shop.run(program, words, { SSH_AUTH_SOCK: socket });
    assert.equal(code, 0, stderr);
  };
  const socket = join(shop.directory, 'agent.sock');
  const sshAgent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
  t.after(() => sshAgent.kill());
  await inDirectory('ssh-keygen', '-q', '-t', 'ed25519', '-f', 'bot', '-N', '', '-C', 'a bot of ours');
  while (!existsSync(socket)) await sleep(10);
  const environment = { LEASEHOLD_TOKEN: shop.service.adminToken };
  const [program, ...flags] = COMMAND;
  const added = await shop.run(program, [...flags, 'agent', 'add', 'ssh-bot', '--public-key', 'bot.pub'], environment);
  assert.equal(added.code, 0, added.stderr);
  const grant = { name: 'ssh', principal: 'agent:ssh-bot', resources: ['prod/db/*'], actions: ['retrieve'] };
  await shop.service.admin.post('/api/v1/policies', { ...grant, max_ttl: 60 });
  const work = () =>
    shop.run(
      process.execPath,
      [...flagsOfExample('ssh-agent.ts'), example('ssh-agent.ts'), 'ssh-bot', 'bot.pub', 'prod/db/password'],
      {
        SSH_AUTH_SOCK: socket,
      },
    );
  const without = await work();
  assert.deepEqual([without.code, without.stdout], [1, '']);
  assert.match(without.stderr, /^Error: ssh-agent does not sign with this key: /);
  await inDirectory('ssh-add', '-q', 'bot');
  rmSync(join(shop.directory, 'bot'));
  const { code, stdout, stderr } = await work();
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /^Worked with prod\/db\/password \(\[secret\]\), on a lease until .*Z\.\n$/);
  await assertNothingLeft(shop);
});

test('the GitHub workflow deploys with the value, and leaves neither key nor lease', async (t) => {
  const shop = await openShop(t);
  const { jobs }: Workflow = parse(readFileSync(example('github-actions.yml'), 'utf8'));
  const { env, steps } = jobs.deploy;
  assert.deepEqual(
    steps.map(({ uses, run: script }) => uses?.replace(/@v\d+$/, '') ?? script?.split(/\s/)[0]),
    ['actions/checkout', 'actions/setup-node', 'npm', 'umask', 'rm'],
  );
  const installing = steps.findIndex(({ run: script = '' }) => script.startsWith('npm install'));

  // Replaces what the step installs: the command of this checkout, as a program on PATH.
  const bin = join(shop.directory, 'bin');
  const temporary = join(shop.directory, 'temporary');
  for (const made of [bin, temporary]) mkdirSync(made);
  const [program, ...flags] = COMMAND;
  writeFileSync(
    join(bin, 'leasehold'),
    `#!/bin/sh\nexec '${program}' ${flags.map((word) => `'${word}'`).join(' ')} "$@"\n`,
  );
  const given =
    '[ "$PGPASSWORD" = "correct horse" ] || exit 9; env | grep -c -e LEASEHOLD -e "PRIVATE KEY"; echo "$PGPASSWORD"';
  writeFileSync(join(shop.directory, 'deploy.sh'), `#!/bin/sh\n${given}\n`);
  for (const file of [join(bin, 'leasehold'), join(shop.directory, 'deploy.sh')]) chmodSync(file, 0o755);

  const secrets: Record<string, string> = {
    LEASEHOLD_AGENT_KEY: readFileSync(join(shop.directory, KEY_FILE), 'utf8').trimEnd(),
  };
  const printed: string[] = [];
  for (const { run: script = '', env: own = {}, if: condition } of steps.slice(installing + 1)) {
    const filled = Object.entries(own).map(([name, text]): [string, string] => [
      name,
      text.replace(/\$\{\{ secrets\.(\w+) \}\}/g, (_, secret: string) => secrets[secret] ?? assert.fail(secret)),
    ]);
    const environment = {
      ...env,
      ...Object.fromEntries(filled),
      PATH: [bin, process.env['PATH']].join(delimiter),
      RUNNER_TEMP: temporary,
      LEASEHOLD_ADDR: shop.service.address, // the workflow has an example's
    };
    assert.ok(condition === undefined || condition === 'always()');
    // SOURCE: docs.github.com, "Workflow syntax", jobs.<job_id>.steps[*].shell: how bash is called where none is named.
    const { code, stdout, stderr } = await shop.run('bash', ['-e', '-c', script], environment);
    assert.equal(code, 0, stdout + stderr);
    printed.push(stdout, stderr);
  }
  assert.match(printed.join(''), /^0\n/, 'the deployment sees neither the key nor what opens the vault');
  assert.equal(printed.join('').includes(VALUE), false, 'what it printed is masked');
  assert.equal(existsSync(join(temporary, 'deploy-bot.pem')), false);
  assert.deepEqual((await shop.service.admin.get('/api/v1/leases?status=active')).body.data, []);
});
