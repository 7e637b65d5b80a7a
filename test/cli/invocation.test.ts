// Invocation: help, names, flags, usage errors, exit codes, and completion in shells.

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { flagsOf } from '../../src/cli/command.ts';
import { ENTRIES } from '../../src/cli/command-table.ts';
import { COMMAND, newHome } from '../kit/command.ts';
import { findPort } from '../kit/port.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });

test('help names every command, and each command has a page', async (t) => {
  const home = newHome(t);
  const { code, stdout, stderr } = await home.leasehold(['--help']);
  assert.deepEqual([code, stderr], [0, '']);
  for (const { name, summary } of ENTRIES) assert.ok(stdout.includes(name) && stdout.includes(summary), name);
  const page = await home.leasehold(['help', 'lease', 'revoke']);
  assert.match(page.stdout, /^Usage: leasehold lease revoke \[LEASE_ID …\] \[FLAG …\]\n\nRevoke leases /);
  assert.equal((await home.leasehold(['lease', 'revoke', '--help'])).stdout, page.stdout);
  assert.match((await home.leasehold(['lease'])).stdout, /^Usage: leasehold lease list\|show\|renew\|revoke\n/);
});

test('no flag of a command has the name of one that all commands have', async () => {
  for (const entry of ENTRIES) {
    const command = await entry.load();
    const all = flagsOf(command);
    for (const [name, flag] of Object.entries(command.flags ?? {}))
      assert.equal(all[name], flag, `${entry.name} ${name}`);
  }
});

test('the help of a command reads few files, and of the commands only its own', async () => {
  const hooks = `import { registerHooks } from 'node:module';
    const names = [];
    registerHooks({ load: (url, context, next) => (names.push(url), next(url, context)) });
    process.on('exit', () => console.error(names.join('\\n')));`;
  const [program = '', ...flags] = COMMAND;
  const words = ['--import', `data:text/javascript,${encodeURIComponent(hooks)}`, ...flags, 'agent', 'list', '--help'];
  const { stderr } = await promisify(execFile)(program, words);
  const own = stderr.split('\n').filter((name) => name.includes('/src/'));
  assert.ok(own.length < 60, own.join('\n'));
  assert.deepEqual(
    own.filter((name) => name.includes('/commands/')).map((name) => name.split('/').at(-1)),
    ['agents.ts'],
  );
});

const MISTAKES: readonly [words: readonly string[], says: RegExp][] = [
  [['rm'], /^leasehold: unknown command\.\n/],
  [['gett'], /^leasehold: unknown command; did you mean `get`\?\n {2}To list all commands: leasehold --help/],
  [['xyzzy'], /^leasehold: unknown command\.\n/],
  [
    ['lease', 'rewoke'],
    /^leasehold: unknown lease command; did you mean `revoke`\?\n {2}Usage: leasehold lease list\|show\|renew\|revoke\.?\n/,
  ],
  [['policy', 'constructor'], /^leasehold: unknown policy command\.\n/],
  [['agent', 'show', 'a b'], /^leasehold: NAME: must be 1 to 63 characters/],
  [['agent', 'delete', '..', '--yes'], /^leasehold: NAME: must be 1 to 63 characters/],
  [['policy', 'show', 'a/b'], /^leasehold: NAME: must be 1 to 128 characters/],
  [['policy', 'delete', '', '--yes'], /^leasehold: NAME is missing/],
  [['lease', 'show', 'x'], /^leasehold: lease_id: must be a UUID/],
  [['lease', 'renew', '../x'], /^leasehold: lease_id: must be a UUID/],
  [['lease', 'revoke', 'x'], /^leasehold: lease_id: must be a UUID/],
  [
    ['lease', 'list', '--status', 'actve'],
    /^leasehold: --status: must be one of active, expired, revoked; did you mean a/,
  ],
  [['lease', 'list', '--agent-name', 'a b'], /^leasehold: --agent-name: must be 1 to 63 characters/],
  [['lease', 'revoke', '--path', '/a'], /^leasehold: --path: /],
  [['audit', 'list', '--since', 'yesterday'], /^leasehold: --since: must be ISO 8601/],
  [['audit', 'tail', '--result', 'no'], /^leasehold: --result: must be one of allowed, denied, not_found, error\.\n/],
  [['list', '--type', 'a b'], /^leasehold: --type: must be 1 to 64 characters/],
  [['put', 'a', '-', '--type', ' '], /^leasehold: --type: must be 1 to 64 characters/],
  [['get'], /^leasehold: PATH is missing: path of the credential\.\n/],
  [['get', 'a', 'b'], /^leasehold: get takes PATH; 1 too many were given\.\n/],
  [['get', 'a', '--feild', 'x'], /^leasehold: unknown flag --feild; did you mean --field\?\n/],
  [['get', 'a', '--field'], /^leasehold: --field needs a value/],
  [['get', 'a', '--field='], /^leasehold: --field needs a value\.\n/],
  [['get', 'a', '--field', '-x'], /^leasehold: --field needs a value; write --field=VALUE if it starts with -\.\n/],
  [['-o', 'json', 'logout'], /^leasehold: unknown flag --output\.\n/],
  [['list', '--__proto__', 'x'], /^leasehold: unknown flag\.\n/],
  [['--field', 'x', 'get', 'a', '--field', 'y'], /^leasehold: --field can be given only once\.\n/],
  [['get', 'a', '--reveal=yes'], /^leasehold: --reveal takes no value/],
  [['get', 'a', '--version', '0'], /^leasehold: --version must be a positive whole number\.\n/],
  [['get', 'a', '--version', '1', '--version', '2'], /^leasehold: --version can be given only once/],
  [['get', 'a', '-o', 'xml'], /^leasehold: --output: must be one of table, json, yaml, env\.\n/],
  [
    ['get', 'a', '--timeout', 'soon'],
    /^leasehold: --timeout: must be a number of seconds or a duration such as 90s or 2m/,
  ],
  [['get', '../x'], /^leasehold: PATH: must not contain \. or \.\. as a segment\.\n/],
  [['--agnt', 'x', 'list'], /^leasehold: unknown flag before the command; did you mean --agent\?/],
  [
    ['--token', 'lha_x', 'list'],
    /^leasehold: there is no --token, because other users can see arguments\.\n {2}Use --token-file/,
  ],
  [['get', 'a', '--', '-b'], /^leasehold: get takes PATH; 1 too many were given/],
  [['get', 'a', '--address', 'ftp://x'], /^leasehold: --address: must be http:\/\/HOST:PORT/],
  [['get', 'a', '--address', 'http://192.0.2.1'], /^leasehold: --address: .*plain HTTP to another machine/],
  [['get', 'a'], /^leasehold: No running server was found in the data directory \S+\.\n {2}Start it: npm start/],
  [
    ['run', 'psql', '-e', 'A=b'],
    /^leasehold: Put the command after --: leasehold --agent NAME run --use PATH -- COMMAND\.\n/,
  ],
  [
    ['audit', 'list', '--action', 'get'],
    /^leasehold: --action: must be one of retrieve, list, store, delete, use, use_result, /,
  ],
  [['audit', 'list', '--event', 'x'], /^leasehold: --event: must be one of credential\.retrieve, /],
];

test('a usage error is found before any request and exits with 1', async (t) => {
  const [home, identified] = [newHome(t), newHome(t, { LEASEHOLD_TOKEN: 'lha_0123456789abcdef' })];
  for (const [words, says] of MISTAKES) {
    const { code, stdout, stderr } = await (words.includes('--address') ? identified : home).leasehold(words);
    assert.deepEqual([code, stdout], [1, ''], words.join(' '));
    assert.match(stderr, says);
  }
});

test('no response and every error response exit with 2', async (t) => {
  const nowhere = `http://127.0.0.1:${await findPort()}`;
  const as = (token: string, address = service.address) =>
    newHome(t, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: token }).leasehold(['get', 'no/such', '--timeout', '120']);
  const missing = await as(service.adminToken);
  assert.deepEqual([missing.code, missing.stdout], [2, '']);
  assert.match(
    missing.stderr,
    /^leasehold: The credential does not exist \(NOT_FOUND, request \S+\)\.\n {2}To list the credentials/,
  );
  const stranger = await as('lha_0123456789abcdef');
  assert.equal(stranger.code, 2);
  assert.match(
    stranger.stderr,
    /^leasehold: This administrator token is not valid; it may be from before the last startup \(UNAUTHENTICATED, .*\)\.\n {2}The token came from LEASEHOLD_TOKEN\. .* the current one is in daemon\.token/,
  );
  const none = await as(service.adminToken, nowhere);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /no response from [\s\S]*The address came from LEASEHOLD_ADDR/);
});

test('the hint of an error depends on the command and the caller', async (t) => {
  const strict = await startTestService(t, ['--admin-retrieve=deny']);
  await strict.admin.post('/api/v1/credentials', { path: 'a/b', value: 'v' });
  const home = newHome(t, { LEASEHOLD_ADDR: strict.address, LEASEHOLD_TOKEN: strict.adminToken });
  const said = async (...words: string[]) => (await home.leasehold(words)).stderr;
  assert.match(
    await said('policy', 'show', 'x'),
    /NOT_FOUND[^\n]*\n {2}To list the policies: leasehold policy list\n$/,
  );
  assert.match(await said('agent', 'show', 'x'), /NOT_FOUND[^\n]*\n {2}To list the agents: leasehold agent list\n$/);
  const lease = crypto.randomUUID();
  assert.match(
    await said('lease', 'show', lease),
    /NOT_FOUND[^\n]*\n {2}To list the leases of the last 7 days: leasehold lease list\n$/,
  );
  assert.match(await said('get', 'a/b'), /--admin-retrieve=deny[^\n]*ACCESS_DENIED[^\n]*\n$/);
  assert.doesNotMatch(await said('get', 'a/b'), /This needs the administrator/);
  const { code, stderr } = await newHome(t, { LEASEHOLD_ADDR: strict.address }).leasehold([
    'get',
    'a/b',
    '--agent',
    'bot',
    '--key-file',
    'bot.pem',
  ]);
  assert.deepEqual([code, /bot\.pem cannot be read/.test(stderr)], [1, true]);
});

test('a failed login and an expired login are explained in terms of the command', async (t) => {
  const home = newHome(t, { LEASEHOLD_ADDR: service.address });
  const environment = { LEASEHOLD_TOKEN: service.adminToken };
  assert.equal((await home.leasehold(['agent', 'add', 'bot'], { environment })).code, 0);
  assert.equal((await home.leasehold(['login', '--agent', 'bot'])).code, 0);
  assert.equal((await home.leasehold(['agent', 'delete', 'bot', '--yes'], { environment })).code, 0);
  const ended = await home.leasehold(['list', '--agent', 'bot']);
  assert.match(ended.stderr, /^leasehold: Your session has expired \(.*\)\.\n {2}Run: leasehold login --agent bot\n$/);
  const failed = await home.leasehold(['login', '--agent', 'bot']);
  assert.match(
    failed.stderr,
    /^leasehold: Login failed: agent bot is not registered, or this is not its key \(AUTH_FAILED/,
  );
});

test('errors never repeat arguments that may be values', async (t) => {
  const home = newHome(t, { LEASEHOLD_TOKEN: 'lha_0123456789abcdef' });
  for (const words of [
    ['put', 'a/b', 'hunter2-value'],
    ['put', 'a/b', '-', 'hunter2-value'],
    ['put', 'a/b', '--value=hunter2-value'],
    ['put', 'hunter2-value is a value'],
  ]) {
    const { code, stdout, stderr } = await home.leasehold(words);
    assert.equal(code, 1);
    assert.ok(!(stdout + stderr).includes('hunter2'), stderr);
  }
});

test('bash offers every command, and the flags of each command, and nothing in place of a file', async (t) => {
  const { stdout: script } = await newHome(t).leasehold(['completion', 'bash']);
  const lines = ['', 'pol', 'policy ', 'policy put x --', 'get --f', 'put a @', 'run -- ', '--ag', 'completion '];
  const commands = await Promise.all(ENTRIES.map((entry) => entry.load()));
  const flagged = commands.filter(({ takesAllWords }) => takesAllWords !== true);
  const asked = [...lines, ...flagged.map(({ name }) => `${name} --`)];
  const calls = asked.map((line) => {
    const words = ['leasehold', ...line.split(' ')].map((word) => `'${word}'`);
    return `COMP_WORDS=(${words.join(' ')}) COMP_CWORD=${words.length - 1}; _leasehold; echo "\${COMPREPLY[*]}"`;
  });
  const printed = execFileSync('bash', ['-c', [script, ...calls].join('\n')], { encoding: 'utf8' });
  const offers = printed
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' '));
  const [first = [], begun, verbs, , filtered, file, afterDashes, before, shells] = offers;
  assert.deepEqual(first.toSorted(), [...new Set(ENTRIES.map(({ name }) => name.split(' ')[0]))].toSorted());
  assert.deepEqual(begun, ['policy']);
  assert.ok(verbs?.includes('put') && verbs.includes('apply'));
  assert.deepEqual(filtered, ['--field']);
  assert.deepEqual([file, afterDashes], [[''], ['']]);
  assert.deepEqual([before, shells], [['--agent'], ['bash', 'zsh', 'fish']]);
  for (const [at, command] of flagged.entries()) {
    assert.deepEqual(
      offers[lines.length + at],
      Object.keys(flagsOf(command)).map((name) => `--${name}`),
      command.name,
    );
  }
});

test('zsh gets the script of bash, fish one of its own, and another shell an error', async (t) => {
  const home = newHome(t);
  const [bash, zsh, fish, other] = await Promise.all(
    ['bash', 'zsh', 'fish', 'tcsh'].map((shell) => home.leasehold(['completion', shell])),
  );
  assert.equal(zsh?.stdout, `autoload -U +X bashcompinit && bashcompinit\n${bash?.stdout}`);
  for (const { name } of ENTRIES) assert.ok(fish?.stdout.includes(`-a ${name.split(' ').at(-1)} -d`), name);
  assert.deepEqual([other?.code, other?.stderr.split('.')[0]], [1, 'leasehold: SHELL: must be one of bash, zsh, fish']);
});
