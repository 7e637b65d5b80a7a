// Commands that the operator allowed: they receive the value, the model does not, and nothing else is run or passed on.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { haveExited } from '../kit/processes.ts';
import { connect, shows, startStage, TRANSPORTS, type TransportName, VALUE } from './fixture.ts';

interface Row {
  /** Of /bin/sh, a script of the operator's. */
  readonly script: string;
  /** Further lines of the command's table. */
  readonly toml?: string;
  readonly credentials?: string;
}

/** The command `work`, a script of the operator in a separate directory. */
async function begin(t: TestContext, { script, toml = '', credentials }: Row, over: TransportName = 'http') {
  const folder = temporaryDirectory(t);
  const program = join(folder, 'work.sh');
  writeFileSync(program, `#!/bin/sh\n${script}\n`);
  chmodSync(program, 0o700);
  const commands = `
[commands.work]
description = "Works"
program = ${JSON.stringify(program)}
arguments = ["fixed argument"]
directory = ${JSON.stringify(folder)}
${toml.startsWith('[') ? '' : toml}
[commands.work.credentials]
${credentials ?? 'PASSWORD = "prod/db/password"'}
${toml.startsWith('[') ? toml : ''}
`;
  const stage = await startStage(t, { commands });
  const statuses = async () => (await stage.agent.leases.list()).data.map(({ status }) => status);
  return { ...stage, folder, statuses, ...(await connect(t, stage.mcp, over)) };
}

const work = { command: 'work' };

/** The background process, which has left its id. It would run for longer than the test waits. */
async function untilEnded(folder: string): Promise<void> {
  const pid = Number(readFileSync(join(folder, 'background'), 'utf8'));
  assert.ok(pid > 1);
  await until(() => haveExited([pid]));
}

for (const over of TRANSPORTS) {
  test(`over ${over} a command receives the value, and the model its masked output and exit code`, async (t) => {
    const script = 'printf %s "$PASSWORD" > seen; echo "it is $PASSWORD."; echo "no: $PASSWORD" >&2; exit 7';
    const { use, folder, statuses, transcript } = await begin(t, { script }, over);
    const ran = await use('run_with_credential', work);
    assert.equal(readFileSync(join(folder, 'seen'), 'utf8'), VALUE);
    assert.deepEqual(ran, {
      command: 'work',
      exit_code: 7,
      signal: null,
      stdout: 'it is [secret].\n',
      stderr: 'no: [secret]\n',
      is_output_cut: false,
      has_timed_out: false,
      leases_ended: true,
    });
    assert.deepEqual(await statuses(), ['revoked']);
    assert.equal(shows(transcript()), false);
  });
}

test('a command can print only its own environment, and values in it are masked in every usual encoding', async (t) => {
  const script = [
    'env | sort; printf %s "$PASSWORD" | base64; printf %s "x$PASSWORD" | base64; printf %s "$PASSWORD" | od -An -tx1 | tr -d " \\n"',
    'i=1; while [ $i -le 20 ]; do printf %s "$PASSWORD" | cut -c1-$i >/dev/null; i=$((i+1)); done',
  ].join('\n');
  const { use, transcript } = await begin(t, { script });
  process.env['LEASEHOLD_TEST_OF_PARENT'] = 'of the parent';
  t.after(() => delete process.env['LEASEHOLD_TEST_OF_PARENT']);
  const { stdout } = await use('run_with_credential', work);
  const names = String(stdout).match(/^\w+(?==)/gm) ?? [];
  const known = ['HOME', 'LANG', 'PASSWORD', 'PATH', 'TMPDIR'];
  assert.deepEqual(
    names.filter((name) => !['PWD', 'SHLVL', 'OLDPWD', '_'].includes(name)),
    known,
  );
  assert.equal(transcript().includes('of the parent'), false);
  assert.equal(shows(transcript()), false);
});

test('output with a part of a structured value shows none of its secret parts', async (t) => {
  const password = 'hunter22-of-the-config';
  const { use, service, transcript } = await begin(t, {
    script: `printf %s "$CONFIG" | sed 's/.*"password":"\\([^"]*\\)".*/as app-user: \\1/'`,
    credentials: 'CONFIG = "prod/db/config"',
  });
  const value = JSON.stringify({ user: 'app-user', password });
  await service.admin.post('/api/v1/credentials', { path: 'prod/db/config', value });
  const { stdout } = await use('run_with_credential', work);
  assert.equal(stdout, 'as app-user: [secret]');
  assert.equal(transcript().includes(password), false);
});

test('the tool describes the commands, and does not exist without them', async (t) => {
  const { client } = await begin(t, { script: 'true', credentials: 'PASSWORD = "prod/db/*"' });
  const { tools } = await client.listTools();
  const tool = tools.find(({ name }) => name === 'run_with_credential');
  assert.match(tool?.description ?? '', /- work: Works Choose: PASSWORD \(one of prod\/db\/\*\)\./);
  assert.equal(tool?.annotations?.destructiveHint, true);
  const plain = await connect(t, (await startStage(t)).mcp, 'http');
  await assert.rejects(plain.use('run_with_credential', work), /not found/);
});

test('a variable with a pattern receives the path that the model chose within the pattern', async (t) => {
  const { use, refusal, folder, service, statuses } = await begin(t, {
    script: 'printf %s "$PASSWORD" > seen',
    credentials: 'PASSWORD = "prod/db/*"\nOTHER = "prod/fixed"',
  });
  await service.admin.post('/api/v1/credentials', { path: 'prod/fixed', value: 'the fixed value' });
  await use('run_with_credential', { ...work, credentials: { PASSWORD: 'prod/db/password' } });
  assert.equal(readFileSync(join(folder, 'seen'), 'utf8'), VALUE);
  const before = (await statuses()).length;
  for (const [credentials, rule] of [
    [{}, /^INVALID_REQUEST: credentials\.PASSWORD: must be chosen/],
    [{ PASSWORD: 'prod/fixed' }, /^NOT_ALLOWED: credentials\.PASSWORD: the operator allows prod\/db\/\*/],
    [{ PASSWORD: 'prod/db/../fixed' }, /^INVALID_REQUEST: credentials\.PASSWORD: /],
    [{ PASSWORD: 'prod/db/password', OTHER: 'prod/db/password' }, /^NOT_ALLOWED: credentials\.OTHER: /],
    [{ PASSWORD: 'prod/db/password', LD_PRELOAD: 'prod/db/password' }, /^NOT_ALLOWED: .*takes no LD_PRELOAD/],
    [{ PASSWORD: 'prod/db/password', constructor: 'prod/db/password' }, /^NOT_ALLOWED: .*takes no constructor/],
  ] as const) {
    assert.match(await refusal('run_with_credential', { ...work, credentials }), rule);
  }
  assert.equal((await statuses()).length, before);
});

test('a command that is not on the list is not run', async (t) => {
  const { refusal } = await begin(t, { script: 'true' });
  assert.match(await refusal('run_with_credential', { command: 'other' }), /^NOT_ALLOWED: command: .*work/);
  assert.match(await refusal('run_with_credential', { command: 'constructor' }), /^NOT_ALLOWED: /);
  assert.match(await refusal('run_with_credential', { command: '/bin/sh' }), /^Input validation error/);
});

test('no argument is added unless the operator allows it and it matches the operator’s pattern', async (t) => {
  const strict = await begin(t, { script: 'true' });
  assert.match(
    await strict.refusal('run_with_credential', { ...work, extra_arguments: ['x'] }),
    /^NOT_ALLOWED: .*allows none/,
  );
  const { use, refusal, statuses } = await begin(t, {
    script: 'for each in "$@"; do echo "<$each>"; done',
    toml: '[commands.work.extra_arguments]\npattern = "[a-z -]+|(x+x+)+y"\nmost = 2',
  });
  const ran = await use('run_with_credential', { ...work, extra_arguments: ['a b', 'c'] });
  assert.equal(ran['stdout'], '<fixed argument>\n<a b>\n<c>\n');
  const before = (await statuses()).length;
  for (const extra_arguments of [
    ['a', 'b', 'c'],
    ['$(id)'],
    ['a\nb'],
    ['-e'],
    ['--print env'],
    ['a;b'],
    [''],
    ['a'.repeat(257)],
    // Without a limit this one takes longer than the universe has.
    [`${'x'.repeat(60)}!`],
  ]) {
    assert.match(await refusal('run_with_credential', { ...work, extra_arguments }), /^NOT_ALLOWED: extra_arguments: /);
  }
  assert.equal((await statuses()).length, before);
});

test('a command that exceeds its time limit is killed with its processes, and its leases end', async (t) => {
  const { use, folder, statuses } = await begin(t, {
    script:
      '(trap "" TERM; exec sleep 600) & echo $! > background; trap "" TERM; echo "$PASSWORD" | head -c 20; sleep 600',
    toml: 'time_limit_seconds = 6',
  });
  const ran = await use('run_with_credential', work);
  assert.equal(ran['has_timed_out'], true);
  assert.equal(ran['signal'], 'SIGKILL');
  // It was stopped in the middle of the value: none of it is shown.
  assert.equal(ran['stdout'], '[secret]');
  assert.deepEqual(await statuses(), ['revoked']);
  await untilEnded(folder);
});

test('output is masked before it is truncated at the limit', async (t) => {
  const { use, transcript } = await begin(t, {
    script: 'i=0; while [ $i -lt 200 ]; do printf %s "$PASSWORD"; printf 0123456789; i=$((i+1)); done',
    toml: 'output_limit_bytes = 1000',
  });
  const { stdout, is_output_cut } = await use('run_with_credential', work);
  assert.equal(String(stdout).length, 1000);
  assert.equal(is_output_cut, true);
  assert.equal(String(stdout).startsWith('[secret]0123456789[secret]'), true);
  assert.equal(transcript().includes(VALUE.slice(0, 6)), false);
});

test('a background process of a command is killed with it', async (t) => {
  const { use, folder } = await begin(t, { script: 'sleep 600 & echo $! > background; echo done' });
  assert.equal((await use('run_with_credential', work))['stdout'], 'done\n');
  await untilEnded(folder);
});

test('a process that left the command’s group does not delay the response', async (t) => {
  const { use, folder } = await begin(t, { script: `setsid sh -c 'sleep 60; touch late' & echo done` });
  assert.equal((await use('run_with_credential', work))['stdout'], 'done\n');
  assert.equal(existsSync(join(folder, 'late')), false);
});

test('a command that can be made to read a file with a value shows it masked', async (t) => {
  const { use, transcript, service } = await begin(t, {
    script: 'cat "$2"',
    toml: '[commands.work.extra_arguments]\npattern = "/.*"',
    credentials: 'PASSWORD = "prod/other"',
  });
  await service.admin.post('/api/v1/credentials', { path: 'prod/other', value: 'another value' });
  const { file } = await use('write_credential_to_file', { path: 'prod/db/password', name: 'password' });
  const { stdout } = await use('run_with_credential', { ...work, extra_arguments: [String(file)] });
  assert.equal(stdout, '[secret]');
  assert.equal(shows(transcript()), false);
});

test('a denied path, a missing one, and one of several: nothing is run, and no lease stays active', async (t) => {
  const script = 'touch ran';
  for (const credentials of ['A = "other/x"', 'A = "prod/none"', 'A = "prod/db/password"\nB = "other/x"']) {
    const { refusal, folder, statuses } = await begin(t, { script, credentials });
    assert.match(await refusal('run_with_credential', work), /^(?:ACCESS_DENIED|NOT_FOUND): /);
    assert.equal(existsSync(join(folder, 'ran')), false);
    assert.equal((await statuses()).includes('active'), false);
  }
});

test('a value that no variable can contain, or that is too short to be masked, is rejected without being shown', async (t) => {
  const { refusal, service, statuses, transcript } = await begin(t, { script: 'true', credentials: 'A = "prod/bad"' });
  await service.admin.post('/api/v1/credentials', { path: 'prod/bad', value: `${VALUE}\0` });
  assert.match(await refusal('run_with_credential', work), /^FAILED: A: the value contains a NUL/);
  await service.admin.post('/api/v1/credentials', { path: 'prod/bad', value: 'abc' });
  assert.match(await refusal('run_with_credential', work), /^FAILED: A: the value is too short/);
  assert.equal((await statuses()).includes('active'), false);
  assert.equal(shows(transcript()), false);
});

test('a call that is cancelled, or whose client disconnects, ends its command and its lease', async (t) => {
  const { client, folder, statuses } = await begin(t, { script: 'echo $$ > background; touch begun; exec sleep 600' });
  const cancelling = new AbortController();
  const call = client.callTool({ name: 'run_with_credential', arguments: work }, { signal: cancelling.signal });
  await until(() => existsSync(join(folder, 'begun')));
  cancelling.abort();
  await assert.rejects(call);
  await until(async () => !(await statuses()).includes('active'));
  assert.deepEqual(await statuses(), ['revoked']);
  await untilEnded(folder);
});

test('when the server stops, running commands are ended first, and no lease stays active', async (t) => {
  const { use, mcp, folder, statuses } = await begin(t, { script: 'touch begun; sleep 600' });
  const call = use('run_with_credential', work);
  await until(() => existsSync(join(folder, 'begun')));
  assert.equal(await mcp.close(), 0);
  assert.equal((await call)['signal'], 'SIGTERM');
  assert.deepEqual(await statuses(), ['revoked']);
});

test('four commands run concurrently, and a fifth is rejected', async (t) => {
  const { use, refusal, folder, mcp } = await begin(t, { script: 'touch "begun.$$"; sleep 600' });
  const calls = Array.from({ length: 4 }, () => use('run_with_credential', work));
  const begun = () => readdirSync(folder).filter((name) => name.startsWith('begun')).length;
  await until(() => begun() === 4);
  assert.match(await refusal('run_with_credential', work), /^BUSY: /);
  await mcp.close();
  await Promise.all(calls);
});
