// Values in and out: byte for byte, never in an argument, and never on a terminal without --reveal.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { COMMAND, COMPILED, newHome } from '../kit/command.ts';
import { openPseudoTerminal } from '../kit/pseudo-terminal.ts';
import { startTestService } from '../kit/service.ts';

async function scene(t: TestContext) {
  const service = await startTestService(t);
  const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };
  const home = newHome(t, environment);
  const onTerminal = (words: readonly string[]) =>
    openPseudoTerminal(t, [...COMMAND, ...words], {
      cwd: home.path,
      environment: { ...environment, HOME: home.path },
    });
  return { service, home, onTerminal };
}

const BYTES: readonly [what: string, value: string][] = [
  ['the end of a line', 's3cret\n'],
  ['no end of a line', 's3cret'],
  ['Windows line endings, a byte order mark and NUL', '\ufeffa\r\nb\0c'],
  ['what a shell would take for more', `$HOME \`id\` '"\\ %s \u001b[31m`],
  ['other scripts', 'пароль 密码 🔑'],
];

for (const [what, value] of BYTES) {
  test(`a value from standard input or a file is stored and printed byte for byte: ${what}`, async (t) => {
    const { home } = await scene(t);
    assert.equal((await home.leasehold(['put', 'a/b', '-'], { input: value })).code, 0);
    assert.equal((await home.leasehold(['get', 'a/b'])).stdout, value);
    writeFileSync(join(home.path, 'value'), value);
    assert.equal((await home.leasehold(['put', 'a/c', '@value'])).code, 0);
    const { stdout } = await home.leasehold(['get', 'a/c', '-o', 'json']);
    assert.equal(JSON.parse(stdout).value, value);
    assert.equal((await home.leasehold(['get', 'a/c', '--field', 'value'])).stdout, `${value}\n`);
  });
}

test('shell variables contain any value unchanged and do not replace PATH', async (t) => {
  const { home } = await scene(t);
  const value = `it's "$(id)"\n`;
  await home.leasehold(['put', 'prod/db-1/password', '-'], { input: value });
  const { stdout } = await home.leasehold(['get', 'prod/db-1/password', '-o', 'env']);
  assert.equal(stdout, `PROD_DB_1_PASSWORD='it'\\''s "$(id)"\n'\n`);
  const list = await home.leasehold(['list', '-o', 'env']);
  assert.match(list.stdout, /^OUT_PATH_1='prod\/db-1\/password'$/m);
});

test('a value that is empty, not UTF-8 or too long is rejected and not printed', async (t) => {
  const { home } = await scene(t);
  const put = (input: string | Uint8Array) => home.leasehold(['put', 'a/b', '-'], { input });
  assert.match((await put('')).stderr, /standard input is empty/);
  assert.match((await put(new Uint8Array([0x73, 0xff]))).stderr, /is not text in UTF-8\.\n.*encode it with base64/);
  assert.match((await put('x'.repeat(1024 * 1024 + 1))).stderr, /is larger than 1 MiB/);
  assert.match(
    (await home.leasehold(['put', 'a/b'])).stderr,
    /Value: cannot prompt without a terminal\.\n {2}Use - to read it from standard input/,
  );
  assert.match((await home.leasehold(['put', 'a/b', '@nowhere'])).stderr, /cannot be read \(ENOENT\)/);
  const tooLong = await put('x'.repeat(256 * 1024 + 1));
  assert.deepEqual([tooLong.code, /INVALID_REQUEST|PAYLOAD_TOO_LARGE/.test(tooLong.stderr)], [2, true]);
});

for (const words of [
  ['hunter2'],
  ['password=hunter2'],
  ['a=hunter2', 'b=hunter2'],
  ['--', '-hunter2'],
  ['--value', 'hunter2'],
  ['--value=hunter2'],
  ['--text', 'hunter2'],
  ['--file', 'hunter2'],
  ['-v', 'hunter2'],
  ['--hunter2'],
  ['-uhunter2'],
]) {
  test(`a value in an argument is rejected, not repeated, and the alternatives are named: leasehold put a/b ${words.join(' ')}`, async (t) => {
    // Reported before other errors, so that the value is not typed again.
    const { code, stdout, stderr } = await newHome(t).leasehold(['put', 'a/b', ...words]);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^leasehold: (?:unknown flag; )?values cannot be arguments, because .*replace it\.\n/);
    assert.match(stderr, /\n {2}Omit it to be prompted, or use - for standard input or @FILE for a file\.\n$/);
    assert.doesNotMatch(stderr, /hunter/);
  });
}

test('a misspelt flag of put is still reported as a flag', async (t) => {
  const { stderr } = await newHome(t).leasehold(['put', 'a/b', '--tpye', 'x']);
  assert.match(stderr, /unknown flag --tpye; did you mean --type\?/);
});

test('a value is typed twice and not echoed; two different ones are not stored', async (t) => {
  const { home, onTerminal } = await scene(t);
  const typed = onTerminal(['put', 'a/b']);
  await typed.shows(/Value: /);
  typed.type('hunter3\b2\r');
  await typed.shows(/Repeat the value: /);
  typed.type('hunter2\r');
  assert.equal((await typed.ended).exitCode, 0);
  assert.ok(!typed.screen().includes('hunter'), typed.screen());
  assert.equal((await home.leasehold(['get', 'a/b'])).stdout, 'hunter2');
  const differing = onTerminal(['put', 'a/b']);
  await differing.shows(/Value: /);
  differing.type('one\r');
  await differing.shows(/Repeat the value: /);
  differing.type('other\r');
  assert.equal((await differing.ended).exitCode, 1);
  assert.match(differing.screen(), /the values differ/);
  const brokenOff = onTerminal(['put', 'a/b']);
  await brokenOff.shows(/Value: /);
  brokenOff.type('hun\u0003');
  assert.equal((await brokenOff.ended).exitCode, 130);
});

test('several pasted lines are rejected where one is expected, and none is echoed', async (t) => {
  const { home, onTerminal } = await scene(t);
  for (const pieces of [['first\rsecond\rthird\r'], ['first\r', 'second\rthird'], ['first\r\r']]) {
    const pasted = onTerminal(['put', 'a/b']);
    await pasted.shows(/Value: /);
    for (const piece of pieces) {
      pasted.type(piece);
      await sleep(20);
    }
    assert.equal((await pasted.ended).exitCode, 1);
    assert.match(
      pasted.screen(),
      /more than one line was typed or pasted\.\s+Nothing was stored\. For a value of several lines use -/,
    );
    assert.doesNotMatch(pasted.screen(), /first|second|third/);
  }
  assert.equal((await home.leasehold(['get', 'a/b'])).code, 2, 'nothing was stored');
});

test('a pasted control character is rejected, because a terminal takes it for a key', async (t) => {
  const { home, onTerminal } = await scene(t);
  const pasted = onTerminal(['put', 'a/b']);
  await pasted.shows(/Value: /);
  pasted.type('sec\u0001ret\r');
  assert.equal((await pasted.ended).exitCode, 1);
  assert.match(pasted.screen(), /a control character was typed or pasted/);
  assert.equal((await home.leasehold(['get', 'a/b'])).code, 2, 'nothing was stored');
});

test('a terminal shows a value only with --reveal', async (t) => {
  const { home, onTerminal, service } = await scene(t);
  await home.leasehold(['put', 'a/b', '-'], { input: 's3cret' });
  const refused = onTerminal(['get', 'a/b']);
  await refused.shows(/shows the value of \S+ on the terminal\. Continue\? \[y\/N\]/);
  refused.type('\r');
  assert.equal((await refused.ended).exitCode, 3);
  assert.ok(!refused.screen().includes('s3cret'));
  assert.equal((await service.admin.get('/api/v1/leases')).body.data.length, 0, 'nothing was retrieved');
  const asked = onTerminal(['get', 'a/b']);
  await asked.shows(/Continue\?/);
  asked.type('y\r');
  await asked.shows(/s3cret[\s\S]*Lease \S+ ends at /);
  const told = onTerminal(['get', 'a/b', '--reveal']);
  await told.shows(/s3cret/);
  assert.ok(!told.screen().includes('Continue?'));
  const lease = onTerminal(['get', 'a/b', '--field', 'lease_id']);
  await lease.shows(/[0-9a-f-]{36}/);
  assert.ok(!lease.screen().includes('s3cret'));
});

test('put prints the version, and warns of a line break at the end of a single line', async (t) => {
  const { home } = await scene(t);
  const first = await home.leasehold(['put', 'a/b', '-'], { input: 'one' });
  assert.deepEqual([first.stdout, first.stderr], ['path     a/b\ntype     generic\nversion  1\n', '']);
  const second = await home.leasehold(['put', 'a/b', '-', '--field', 'version'], { input: 'two\n' });
  assert.equal(second.stdout, '2\n');
  assert.match(second.stderr, /^WARNING {2}the value ends with a newline, which is stored too\./);
  const lines = await home.leasehold(['put', 'a/b', '-', '-o', 'json'], { input: 'two\nlines\n' });
  assert.deepEqual([JSON.parse(lines.stdout).version, lines.stderr], [3, '']);
});

test('delete --recursive deletes a prefix after a plan and a confirmation, and nothing else', async (t) => {
  const { home, onTerminal } = await scene(t);
  for (const path of ['old/a', 'old/b/c', 'old', 'older']) await home.leasehold(['put', path, '-'], { input: 'v' });
  const left = async () => (await home.leasehold(['list', '--field', 'path'])).stdout.trim().split('\n');
  const dry = await home.leasehold(['delete', 'old/', '--recursive', '--dry-run', '--field', 'path']);
  assert.equal(dry.stdout, 'old/a\nold/b/c\n');
  assert.match(
    dry.stderr,
    /^2 credentials below old\/ will be deleted, and all their leases revoked\. Nothing was done\.\n$/,
  );
  assert.equal((await home.leasehold(['delete', 'old', '--recursive'])).code, 1, 'no terminal can confirm it');
  const asked = onTerminal(['delete', 'old', '-r']);
  await asked.shows(/old\/b\/c[\s\S]*Delete\? \[y\/N\]/);
  asked.type('n\r');
  assert.equal((await asked.ended).exitCode, 3);
  assert.equal((await left()).length, 4);
  const done = await home.leasehold(['delete', 'old', '--recursive', '--yes']);
  assert.deepEqual([done.code, done.stderr], [0, 'Deleted 2 of 2 credentials below old/.\n']);
  assert.deepEqual(await left(), ['old', 'older']);
  assert.equal((await home.leasehold(['delete', 'old', '--recursive', '--yes'])).code, 2);
});

test('a lease duration is accepted in any unit', async (t) => {
  const { home } = await scene(t);
  await home.leasehold(['put', 'a/b', '-'], { input: 'v' });
  const id = (await home.leasehold(['get', 'a/b', '--ttl', '1m30s', '--field', 'lease_id'])).stdout.trim();
  const { stdout } = await home.leasehold(['lease', 'show', id, '-o', 'json']);
  const { issued_at, expires_at } = JSON.parse(stdout);
  assert.equal(Date.parse(expires_at) - Date.parse(issued_at), 90_000);
});

test('a deletion names what it deletes, asks, and does nothing without a yes', async (t) => {
  const { home, onTerminal } = await scene(t);
  for (const input of ['one', 'two']) await home.leasehold(['put', 'a/b', '-'], { input });
  await home.leasehold(['get', 'a/b']);
  const dry = await home.leasehold(['delete', 'a/b', '--dry-run']);
  assert.equal(dry.stderr, 'a/b: 2 versions and 1 active lease will be deleted. Nothing was done.\n');
  const alone = await home.leasehold(['delete', 'a/b']);
  assert.deepEqual([alone.code, /This needs confirmation on a terminal[\s\S]*Use --yes/.test(alone.stderr)], [1, true]);
  const asked = onTerminal(['delete', 'a/b']);
  await asked.shows(/Delete it\? \[y\/N\]/);
  asked.type('n\r');
  assert.equal((await asked.ended).exitCode, 3);
  assert.equal((await home.leasehold(['history', 'a/b', '--field', 'version'])).stdout, '1\n2\n');
  assert.equal((await home.leasehold(['delete', 'a/b', '--yes'])).code, 0);
  assert.equal((await home.leasehold(['get', 'a/b'])).code, 2);
});

test('--dry-run overrides --yes, and a no exits with 3', async (t) => {
  const { home, onTerminal } = await scene(t);
  await home.leasehold(['put', 'a/b', '-'], { input: 's3cret' });
  await home.leasehold(['agent', 'add', 'bot']);
  await home.leasehold(['get', 'a/b']);
  for (const words of [
    ['delete', 'a/b'],
    ['agent', 'delete', 'bot'],
    ['lease', 'revoke', '--agent-name', 'admin'],
  ]) {
    const { code, stderr } = await home.leasehold([...words, '--yes', '--dry-run']);
    assert.deepEqual([code, /Nothing was done/.test(stderr)], [0, true], words.join(' '));
    const asked = onTerminal(words);
    await asked.shows(/\[y\/N\]/);
    asked.type('n\r');
    assert.equal((await asked.ended).exitCode, 3, words.join(' '));
  }
  assert.equal((await home.leasehold(['get', 'a/b'])).code, 0);
  assert.equal((await home.leasehold(['lease', 'list', '--status', 'active', '--field', 'path'])).stdout, 'a/b\na/b\n');
});

test('a full disk and a missing field are reported as errors', async (t) => {
  const { home, service } = await scene(t);
  await home.leasehold(['put', 'a/b', '-'], { input: 's3cret' });
  const wrong = await home.leasehold(['get', 'a/b', '--field', 'nope']);
  assert.deepEqual([wrong.code, /must be one of path, value, lease_id, expires_at/.test(wrong.stderr)], [1, true]);
  assert.equal((await service.admin.get('/api/v1/leases')).body.data.length, 0, 'nothing was retrieved');
  const full = openSync('/dev/full', 'w');
  const [program, ...first] = COMMAND;
  const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken, HOME: home.path };
  const env = { ...COMPILED, ...environment };
  const child = spawn(program, [...first, 'get', 'a/b'], { env, stdio: ['ignore', full, 'pipe'] });
  const said = (await child.stderr?.toArray())?.join('');
  closeSync(full);
  assert.deepEqual(
    [child.exitCode ?? (await once(child, 'close'))[0], said],
    [2, 'leasehold: standard output cannot be written (ENOSPC).\n'],
  );
});

test('files and variables do not change the output for scripts, and names that steer programs are rejected', async (t) => {
  const { home } = await scene(t);
  await home.leasehold(['put', 'node/options', '-'], { input: 's3cret' });
  const environment = { LEASEHOLD_OUTPUT: 'json' };
  assert.equal((await home.leasehold(['get', 'node/options'], { environment })).stdout, 's3cret');
  const steering = await home.leasehold(['get', 'node/options', '-o', 'env']);
  assert.deepEqual([steering.code, /NODE_OPTIONS, which changes/.test(steering.stderr)], [1, true]);
});

test('a denial prints the reason and the command that shows the missing grant', async (t) => {
  const { home } = await scene(t);
  await home.leasehold(['put', 'a/b', '-'], { input: 's3cret' });
  await home.leasehold(['agent', 'add', 'bot']);
  for (const [words, action] of [
    [['get', 'a/b'], 'retrieve'],
    [['history', 'a/b'], 'list'],
    [['delete', 'a/b', '--yes'], 'delete'],
  ] as const) {
    const { code, stdout, stderr } = await home.leasehold([...words, '--agent', 'bot']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /ACCESS_DENIED/);
    assert.match(stderr, new RegExp(`no policy names this agent[\\s\\S]*leasehold policy explain bot ${action} a/b`));
  }
});
