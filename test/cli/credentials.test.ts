// Values in and out: byte for byte, never in an argument, never on a terminal without --reveal. Deletions ask first.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { COMMAND, newHome } from '../kit/command.ts';
import { openPseudoTerminal } from '../kit/pseudo-terminal.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };
const home = newHome({ after }, environment);
const { leasehold, onTerminal } = home;
const put = (path: string, input: string | Uint8Array = 's3cret', ...flags: readonly string[]) =>
  leasehold(['put', path, '-', ...flags], { input });
/** How many values of the path were ever retrieved. */
const countLeases = async (path: string): Promise<number> =>
  (await service.admin.get(`/api/v1/leases?path=${path}`)).body.data.length;
/** Answers a question on a terminal. */
async function answer(words: readonly string[], question: RegExp, typed: string) {
  const asked = onTerminal(words);
  await asked.shows(question);
  asked.type(typed);
  return { code: (await asked.ended).exitCode, shown: asked.screen() };
}

const BYTES: readonly [what: string, value: string][] = [
  ['the end of a line', 's3cret\n'],
  ['no end of a line', 's3cret'],
  ['Windows line endings, a byte order mark and NUL', '\ufeffa\r\nb\0c'],
  ['what a shell would take for more', `$HOME \`id\` '"\\ %s \u001b[31m`],
  ['other scripts', 'пароль 密码 🔑'],
];

test('a value from standard input or a file is stored and printed byte for byte', async () => {
  for (const [what, value] of BYTES) {
    assert.equal((await put('bytes/b', value)).code, 0);
    assert.equal((await leasehold(['get', 'bytes/b'])).stdout, value, what);
    writeFileSync(join(home.path, 'value'), value);
    assert.equal((await leasehold(['put', 'bytes/c', '@value'])).code, 0);
    const { stdout } = await leasehold(['get', 'bytes/c', '-o', 'json']);
    assert.equal(JSON.parse(stdout).value, value, what);
    assert.equal((await leasehold(['get', 'bytes/c', '--field', 'value'])).stdout, `${value}\n`);
  }
});

test('shell variables contain any value unchanged, and names that steer programs are rejected', async () => {
  await put('prod/db-1/password', `it's "$(id)"\n`);
  const { stdout } = await leasehold(['get', 'prod/db-1/password', '-o', 'env']);
  assert.equal(stdout, `PROD_DB_1_PASSWORD='it'\\''s "$(id)"\n'\n`);
  const list = await leasehold(['list', 'prod/', '-o', 'env']);
  assert.match(list.stdout, /^OUT_PATH_1='prod\/db-1\/password'$/m);
  await put('node/options');
  const asJson = { LEASEHOLD_OUTPUT: 'json' };
  assert.equal((await leasehold(['get', 'node/options'], { environment: asJson })).stdout, 's3cret');
  const steering = await leasehold(['get', 'node/options', '-o', 'env']);
  assert.deepEqual([steering.code, /NODE_OPTIONS, which changes/.test(steering.stderr)], [1, true]);
});

test('a value that is empty, not UTF-8 or too long is rejected and not printed', async () => {
  const rows: readonly [input: string | Uint8Array, code: number, says: RegExp][] = [
    ['', 1, /standard input is empty/],
    [new Uint8Array([0x73, 0xff]), 1, /is not text in UTF-8\.\n.*encode it with base64/],
    ['x'.repeat(1024 * 1024 + 1), 1, /is larger than 1 MiB/],
    ['x'.repeat(256 * 1024 + 1), 2, /INVALID_REQUEST|PAYLOAD_TOO_LARGE/],
  ];
  for (const [input, code, says] of rows) {
    const rejected = await put('none/b', input);
    assert.deepEqual([rejected.code, rejected.stdout], [code, '']);
    assert.match(rejected.stderr, says);
  }
  const prompt = await leasehold(['put', 'none/b']);
  assert.match(prompt.stderr, /Value: cannot prompt without a terminal\.\n {2}Use - to read it from standard input/);
  assert.match((await leasehold(['put', 'none/b', '@nowhere'])).stderr, /cannot be read \(ENOENT\)/);
});

test('a value in an argument is rejected, not repeated, and the alternatives are named', async (t) => {
  // There are no settings here: the error is reported before other errors, so that the value is not typed again.
  const other = newHome(t);
  for (const words of [
    ['hunter2'],
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
    const { code, stdout, stderr } = await other.leasehold(['put', 'a/b', ...words]);
    assert.deepEqual([code, stdout], [1, ''], words.join(' '));
    assert.match(stderr, /^leasehold: (?:unknown flag; )?values cannot be arguments, because .*replace it\.\n/);
    assert.match(stderr, /\n {2}Omit it to be prompted, or use - for standard input or @FILE for a file\.\n$/);
    assert.doesNotMatch(stderr, /hunter/);
  }
  const { stderr } = await other.leasehold(['put', 'a/b', '--tpye', 'x']);
  assert.match(stderr, /unknown flag --tpye; did you mean --type\?/);
});

test('a value is typed twice, and a real terminal does not echo it', async (t) => {
  const typed = openPseudoTerminal(t, [...COMMAND, 'put', 'typed/b'], {
    cwd: home.path,
    environment: { ...environment, HOME: home.path },
  });
  await typed.shows(/Value: /);
  typed.type('hunter3\b2\r');
  await typed.shows(/Repeat the value: /);
  typed.type('hunter2\r');
  assert.equal((await typed.ended).exitCode, 0);
  assert.ok(!typed.screen().includes('hunter'), typed.screen());
  assert.equal((await leasehold(['get', 'typed/b'])).stdout, 'hunter2');
});

test('two different values, several pasted lines and control characters are not stored, and none is shown', async () => {
  const differing = onTerminal(['put', 'none/b']);
  await differing.shows(/Value: /);
  differing.type('one\r');
  await differing.shows(/Repeat the value: /);
  differing.type('other\r');
  assert.equal((await differing.ended).exitCode, 1);
  assert.match(differing.screen(), /the values differ/);
  assert.equal((await answer(['put', 'none/b'], /Value: /, 'hun\u0003')).code, 130);
  const several = /more than one line was typed or pasted\.\s+Nothing was stored\. For a value of several lines use -/;
  for (const [typed, says] of [
    ['first\rsecond\rthird\r', several],
    ['first\rsecond\rthird', several],
    ['first\r\r', several],
    // WHY: a terminal takes it for a key.
    ['first\u0001second\r', /a control character was typed or pasted/],
  ] as const) {
    const { code, shown } = await answer(['put', 'none/b'], /Value: /, typed);
    assert.equal(code, 1);
    assert.match(shown, says);
    assert.doesNotMatch(shown, /first|second|third/);
  }
  assert.equal((await leasehold(['get', 'none/b'])).code, 2, 'nothing was stored');
});

test('a terminal shows a value only with --reveal or a yes, and a no retrieves nothing', async () => {
  await put('shown/b');
  const refused = await answer(
    ['get', 'shown/b'],
    /shows the value of \S+ on the terminal\. Continue\? \[y\/N\]/,
    '\r',
  );
  assert.deepEqual([refused.code, refused.shown.includes('s3cret')], [3, false]);
  assert.equal(await countLeases('shown/b'), 0);
  const asked = await answer(['get', 'shown/b'], /Continue\?/, 'y\r');
  assert.match(asked.shown, /s3cret[\s\S]*Lease \S+ ends at /);
  const told = onTerminal(['get', 'shown/b', '--reveal']);
  await told.shows(/s3cret/);
  assert.ok(!told.screen().includes('Continue?'));
  await put('steering/b', 'a\tb\n\u001b]0;taken\u0007');
  for (const words of [['--reveal'], ['--field', 'value', '--reveal']]) {
    const escaped = onTerminal(['get', 'steering/b', ...words]);
    await escaped.shows(/b\r?\n\\u001b\]0;taken\\u0007/);
    assert.ok(!escaped.screen().includes('\u001b]0;'));
  }
  assert.equal((await leasehold(['get', 'steering/b'])).stdout, 'a\tb\n\u001b]0;taken\u0007');
  const lease = onTerminal(['get', 'shown/b', '--field', 'lease_id']);
  await lease.shows(/[0-9a-f-]{36}/);
  assert.ok(!lease.screen().includes('s3cret'));
});

test('put prints the version, and warns of a line break at the end of a single line', async () => {
  const first = await put('version/b', 'one');
  assert.deepEqual([first.stdout, first.stderr], ['path     version/b\ntype     generic\nversion  1\n', '']);
  const second = await put('version/b', 'two\n', '--field', 'version');
  assert.equal(second.stdout, '2\n');
  assert.match(second.stderr, /^WARNING {2}the value ends with a newline, which is stored too\./);
  const lines = await put('version/b', 'two\nlines\n', '-o', 'json');
  assert.deepEqual([JSON.parse(lines.stdout).version, lines.stderr], [3, '']);
});

test('a deletion names what it deletes, asks, and does nothing without a yes', async () => {
  for (const input of ['one', 'two']) await put('gone/b', input);
  await leasehold(['get', 'gone/b']);
  const dry = await leasehold(['delete', 'gone/b', '--dry-run']);
  assert.equal(dry.stderr, 'gone/b: 2 versions and 1 active lease will be deleted. Nothing was done.\n');
  const alone = await leasehold(['delete', 'gone/b']);
  assert.deepEqual([alone.code, /This needs confirmation on a terminal[\s\S]*Use --yes/.test(alone.stderr)], [1, true]);
  assert.equal((await answer(['delete', 'gone/b'], /Delete it\? \[y\/N\]/, 'n\r')).code, 3);
  assert.equal((await leasehold(['history', 'gone/b', '--field', 'version'])).stdout, '1\n2\n');
  assert.equal((await leasehold(['delete', 'gone/b', '--yes'])).code, 0);
  assert.equal((await leasehold(['get', 'gone/b'])).code, 2);
});

test('delete --recursive deletes a prefix after a plan and a confirmation, and nothing else', async () => {
  for (const path of ['old/a', 'old/b/c', 'old', 'older']) await put(path);
  const left = async () => (await leasehold(['list', 'old', '--field', 'path'])).stdout.trim().split('\n');
  const dry = await leasehold(['delete', 'old/', '--recursive', '--dry-run', '--field', 'path']);
  assert.equal(dry.stdout, 'old/a\nold/b/c\n');
  assert.match(
    dry.stderr,
    /^2 credentials below old\/ will be deleted, and all their leases revoked\. Nothing was done\.\n$/,
  );
  assert.equal((await leasehold(['delete', 'old', '--recursive'])).code, 1, 'no terminal can confirm it');
  const asked = await answer(['delete', 'old', '-r'], /old\/b\/c[\s\S]*Delete\? \[y\/N\]/, 'n\r');
  assert.deepEqual([asked.code, (await left()).length], [3, 4]);
  const done = await leasehold(['delete', 'old', '--recursive', '--yes']);
  assert.deepEqual([done.code, done.stderr], [0, 'Deleted 2 of 2 credentials below old/.\n']);
  assert.deepEqual(await left(), ['old', 'older']);
  assert.equal((await leasehold(['delete', 'old', '--recursive', '--yes'])).code, 2);
});

test('--dry-run overrides --yes, and a no exits with 3', async () => {
  await put('kept/b');
  await leasehold(['agent', 'add', 'kept']);
  await leasehold(['get', 'kept/b']);
  for (const words of [
    ['delete', 'kept/b'],
    ['agent', 'delete', 'kept'],
    ['lease', 'revoke', '--path', 'kept/b'],
  ]) {
    const { code, stderr } = await leasehold([...words, '--yes', '--dry-run']);
    assert.deepEqual([code, /Nothing was done/.test(stderr)], [0, true], words.join(' '));
    assert.equal((await answer(words, /\[y\/N\]/, 'n\r')).code, 3, words.join(' '));
  }
  assert.equal((await leasehold(['agent', 'show', 'kept'])).code, 0);
  const active = await leasehold(['lease', 'list', '--path', 'kept/b', '--status', 'active', '--field', 'path']);
  assert.equal(active.stdout, 'kept/b\n');
});

test('an unknown field is reported before a value is retrieved', async () => {
  await put('full/b');
  const wrong = await leasehold(['get', 'full/b', '--field', 'nope']);
  assert.deepEqual([wrong.code, /must be one of path, value, lease_id, expires_at/.test(wrong.stderr)], [1, true]);
  assert.equal(await countLeases('full/b'), 0);
});

test('a denial prints the reason and the command that shows the missing grant', async () => {
  await put('denied/b');
  await leasehold(['agent', 'add', 'bot']);
  for (const [words, action] of [
    [['get', 'denied/b'], 'retrieve'],
    [['history', 'denied/b'], 'list'],
    [['delete', 'denied/b', '--yes'], 'delete'],
  ] as const) {
    const { code, stdout, stderr } = await leasehold([...words, '--agent', 'bot']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /ACCESS_DENIED/);
    assert.match(
      stderr,
      new RegExp(`no policy names this agent[\\s\\S]*leasehold policy explain bot ${action} denied/b`),
    );
  }
});
