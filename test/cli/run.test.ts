// `leasehold run`: the program's environment, its output, its exit, and what remains.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { temporaryDirectory } from '../kit/directory.ts';
import { openScene, openTerminal, runScript, seeScript, VALUES } from './run-fixture.ts';

const scene = await openScene({ after });
const { home, service } = scene;
const A = ['--env', 'A=prod/a'] as const;
/** Runs the command in the test's process, up to an error that precedes the program. */
const refuse = (words: readonly string[]) => home.leasehold(['run', ...words], { isInProcess: true });
const countLeases = async (): Promise<number> => (await service.admin.get('/api/v1/leases?limit=1')).body.meta.total;
const write = (name: string, text: string): void => writeFileSync(join(home.path, name), text);

test('the program receives the values, and both of its outputs are masked', async () => {
  write('wanted', VALUES['prod/a']);
  const script =
    'test "$A" = "$(cat "$HOME/wanted")" && echo "right: $A"; echo "$B" >&2; printf %s "$A" | base64; exit 7';
  const { code, stdout, stderr } = await runScript(home, [...A, '--env', 'B=prod/b'], script);
  assert.deepEqual([code, stdout, stderr], [7, 'right: [secret]\n[secret]\n', '[secret]\n']);
  assert.equal(await scene.countActive(), 0);
});

test('input, output, arguments, exit code, directory and umask are the program’s own', async () => {
  const words = ['--env', '--', '$A', '*', ''];
  const script = 'umask; pwd; cat; printf "[%s]" "$@"; echo "$A"; exit 77';
  const line = scene.run('--no-masking', ...A, '--', 'sh', '-c', script, '-', ...words);
  const child = spawn('bash', ['-c', 'umask 027; exec "$@"', '-', ...line], { env: scene.environment, cwd: '/usr' });
  const code = new Promise((resolve) => child.once('close', resolve));
  child.stdin.end('typed\n');
  const printed = words.map((word) => `[${word}]`).join('');
  assert.equal((await child.stdout.toArray()).join(''), `0027\n/usr\ntyped\n${printed}${VALUES['prod/a']}\n`);
  assert.equal(await code, 77);
});

test('a program that cannot be started is reported, before a lease is issued where that is known', async () => {
  const before = await countLeases();
  const script = join(home.path, 'script');
  writeFileSync(script, '#!/no/such\n', { mode: 0o755 });
  for (const [file, code, says] of [
    ['no-such-program', 127, 'no-such-program: command not found'],
    ['/etc/passwd', 126, '/etc/passwd: '],
    ['/', 126, '/: '],
    [script, 127, `${script}: the interpreter in its first line, /no/such, does not exist`],
  ] as const) {
    const refused = await refuse([...A, '--', file]);
    assert.deepEqual([refused.code, refused.stderr.slice(0, says.length + 11)], [code, `leasehold: ${says}`]);
  }
  assert.equal(await countLeases(), before);
  const nested = join(home.path, 'nested');
  writeFileSync(nested, `#!${script}\n`, { mode: 0o755 });
  for (const flags of [[], ['--no-masking']]) {
    const { code, stderr } = await refuse([...flags, ...A, '--', nested]);
    assert.deepEqual([code, stderr], [127, `leasehold: ${nested}: cannot be started (ENOENT)\n`]);
  }
  assert.equal(await scene.countActive(), 0);
});

test('a signal ends the program and then the command: files are removed, and leases revoked', async () => {
  const words = scene.run('--files', ...A, '--', 'sh', '-c', 'echo "$A"; exec sleep 600');
  const [program = '', ...rest] = words;
  const child = spawn(program, rest, { env: scene.environment, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => child.once('close', (_code, by) => resolve(by)));
  const path = String(await new Promise((resolve) => child.stdout.once('data', resolve))).trim();
  assert.equal(readFileSync(path, 'utf8'), VALUES['prod/a']);
  assert.equal(await scene.countActive(), 1);
  child.kill('SIGTERM');
  assert.equal(await ended, 'SIGTERM');
  assert.throws(() => readFileSync(path), { code: 'ENOENT' });
  assert.equal(await scene.countActive(), 0);
});

test('a signal that dumps core becomes an exit code', async () => {
  assert.equal((await runScript(home, A, 'ulimit -c 0; kill -SEGV $$')).code, 139);
});

test('the vault’s own variables and likely secrets are withheld, and the latter are named', async () => {
  const environment = {
    GH_TOKEN: 'x1',
    DATABASE_URL: 'postgres://u:p@h/d',
    LEASEHOLD_PROFILE_X: 'x',
    SSH_AUTH_SOCK: '/run/agent',
  };
  const passed = async (...keep: string[]) => {
    const flags = [...keep.flatMap((name) => ['--keep', name]), ...A];
    const { seen, stderr } = await seeScript(home, flags, 'env', { environment });
    const names = [...Object.keys(environment), 'A', 'PATH', 'LEASEHOLD_TOKEN'];
    return { names: names.filter((name) => seen.split('\n').some((line) => line.startsWith(`${name}=`))), stderr };
  };
  assert.deepEqual(await passed(), {
    names: ['SSH_AUTH_SOCK', 'A', 'PATH'],
    stderr: 'leasehold: 2 variables not passed on (--keep NAME does): DATABASE_URL, GH_TOKEN\n',
  });
  assert.match((await passed('GH_TOKEN')).stderr, /^leasehold: 1 variable .*: DATABASE_URL\n$/);
  const all = ['GH_TOKEN', 'DATABASE_URL', 'SSH_AUTH_SOCK', 'A', 'PATH'];
  assert.deepEqual(await passed('*'), { names: all, stderr: '' });
  assert.deepEqual((await passed('*', 'LEASEHOLD_TOKEN')).names, [...all, 'LEASEHOLD_TOKEN']);
});

test('references in files and values are replaced and masked, and other lines are passed on unchanged', async () => {
  await service.admin.post('/api/v1/credentials', { path: 'prod/versions', value: 'the first value' });
  await service.admin.post('/api/v1/credentials', { path: 'prod/versions', value: 'the second value' });
  const lines: readonly [name: string, text: string, value: string, masked: string][] = [
    ['W', 'leasehold://prod/a', VALUES['prod/a'], '[secret]'],
    ['PLAIN', '"plain $A" # c', 'plain $A', 'plain $A'],
    ['OLD', 'leasehold://prod/versions?version=1', 'the first value', '[secret]'],
    ['NEW', 'leasehold://prod/versions', 'the second value', '[secret]'],
    [
      'URL',
      'postgres://app:{{ leasehold://prod/b | url }}@db/{{leasehold://prod/a}}?x={{other}}',
      `postgres://app:b%40ttery%2Fst%2Bple%20%26%20%22quotes%22@db/${VALUES['prod/a']}?x={{other}}`,
      'postgres://app:[secret]@db/[secret]?x={{other}}',
    ],
  ];
  write('.env', lines.map(([name, text]) => `export ${name}=${text}\n`).join(''));
  const flags = ['--env-file', join(home.path, '.env'), '--env', 'HEAD=Bearer {{leasehold://prod/a}}'];
  const script = `for each in ${lines.map(([name]) => `"$${name}"`).join(' ')} "$HEAD"; do echo "$each"; done | tee "$HOME/seen"`;
  const { stdout, stderr } = await runScript(home, flags, script);
  const seen = readFileSync(join(home.path, 'seen'), 'utf8');
  assert.equal(seen, `${lines.map(([, , value]) => value).join('\n')}\nBearer ${VALUES['prod/a']}\n`, stderr);
  assert.equal(stdout, `${lines.map(([, , , masked]) => masked).join('\n')}\nBearer [secret]\n`);
  assert.equal(await scene.countActive(), 0);
});

test('for a repeated name the last value is used, and no lease is issued for the others', async () => {
  const [one, two] = ['.one', '.two'].map((name) => join(home.path, name));
  write('.one', 'A=leasehold://no/such\nB=first\nB=second\nC=one\n');
  write('.two', 'C=two\n');
  const flags = ['--env-file', one ?? '', '--env-file', two ?? '', '--env', 'A=prod/b', '--env', 'A=prod/a'];
  const { code, seen, stderr } = await seeScript(home, flags, 'echo "$A|$B|$C"');
  assert.deepEqual([code, seen], [0, `${VALUES['prod/a']}|second|two\n`], stderr);
});

test('a mapping in leasehold.toml is used by its name, and the default one without a name', async () => {
  const print = 'echo "$A|$B"';
  write('leasehold.toml', '[run.default]\nA = "prod/a"\n[run.other]\nA = "leasehold://prod/b"\nB = "prod/a"\n');
  const byDefault = await seeScript(home, [], print);
  assert.deepEqual(
    [byDefault.seen, byDefault.stderr],
    [`${VALUES['prod/a']}|\n`, 'leasehold: leasehold.toml [run.default]: A\n'],
  );
  const named = await seeScript(home, ['other', '--env', 'B=prod/pin'], print);
  assert.deepEqual([named.seen, named.stderr], [`${VALUES['prod/b']}|123\n`, '']);
  assert.equal(
    (await seeScript(home, ['--env', 'B=prod/a'], print)).seen,
    `|${VALUES['prod/a']}\n`,
    'flags replace it',
  );
  for (const [line, says] of [
    ['A = "postgres://u:{{leasehold://prod/a}}@evil.example"', /A: the path of a credential may contain only/],
    ['LD_PRELOAD = "prod/a"', /\[run\.default\]: LD_PRELOAD changes how programs load code/],
    ['A = 1', /\[run\.default\]: A must be the path of a credential/],
  ] as const) {
    write('leasehold.toml', `[run.default]\n${line}\n`);
    const refused = await refuse(['--', 'true']);
    assert.deepEqual([refused.code, refused.stdout, says.test(refused.stderr)], [1, '', true], refused.stderr);
  }
  rmSync(join(home.path, 'leasehold.toml'));
});

test('with --files the variables contain paths of private files, which are removed afterwards', async (t) => {
  const runtime = temporaryDirectory(t);
  write('pem', VALUES['prod/pem']);
  const script =
    'stat -c %a "$(dirname "$A")" "$A"; cmp "$P" "$HOME/pem" && echo same; cat "$T" >"$HOME/seen"; echo "$A"; cat "$A"';
  const flags = ['--files', ...A, '--env', 'P=prod/pem', '--env', 'T=x-{{leasehold://prod/a}}'];
  const { stdout } = await runScript(home, flags, script, { environment: { XDG_RUNTIME_DIR: runtime } });
  const [directory, file, same, path = '', value] = stdout.split('\n');
  assert.deepEqual([directory, file, same, value], ['700', '600', 'same', '[secret]']);
  assert.equal(readFileSync(join(home.path, 'seen'), 'utf8'), `x-${VALUES['prod/a']}`);
  assert.deepEqual([path.startsWith(`${runtime}/`), readdirSync(runtime)], [true, []]);
});

test('a usage error exits with 1 and is not repeated', async () => {
  write('.inside', 'A=hunter2!leasehold://prod/a\n');
  const rows: readonly [words: readonly string[], says: RegExp][] = [
    [[...A], /Put the command after --: leasehold --agent NAME run --use PATH -- COMMAND/],
    [['--', 'true'], /no variables to pass/],
    [['--env', 'A', '--', 'true'], /--env: must be NAME=path/],
    [['--env', 'hunter2!=x', '--', 'true'], /--env: the name of a variable/],
    [['--env', 'A=hunter2!', '--', 'true'], /--env A: the path of a credential may contain only/],
    [['--env', 'A=a?version=x', '--', 'true'], /--env A: behind the path only/],
    [
      ['--env-file', join(home.path, '.inside'), '--', 'true'],
      /\.inside, line 1: a reference inside a value needs braces\.\n {2}Write \{\{leasehold:\/\/PATH\}\}/,
    ],
    [['nowhere', '--', 'true'], /no settings file contains \[run\.nowhere\]/],
    [['--env-file', join(home.path, '.none'), '--', 'true'], /\.none: cannot be read \(ENOENT\)/],
    [[...A, '--ttl', 'x', '--', 'true'], /--ttl: must be a number of seconds or a duration such as 90s, 15m or 2h/],
  ];
  for (const [words, says] of rows) {
    const { code, stdout, stderr } = await refuse(words);
    assert.deepEqual([code, stdout], [1, ''], words.join(' '));
    assert.match(stderr, says);
    assert.doesNotMatch(stderr, /hunter2!/);
  }
});

test('if one value is rejected nothing starts, each rejection has the server’s message, and no lease stays active', async () => {
  const flags = [...A, '--env', 'C=other/c', '--env', 'N=prod/none'];
  const { code, stdout, stderr } = await runScript(home, flags, 'echo started');
  assert.deepEqual([code, stdout], [2, '']);
  assert.match(
    stderr,
    /^leasehold: C \(other\/c\): .*\(ACCESS_DENIED, .*\)\.\n {2}This needs .*\nleasehold: N \(prod\/none\): The credential does not exist \(NOT_FOUND/,
  );
  assert.equal(await scene.countActive(), 0);
});

test('a value that no variable can contain is rejected by name, and can be delivered as a file', async () => {
  const values = { 'prod/nul': 'hunter2\u0000hunter2', 'prod/large': 'hunter2,'.repeat(20_000) };
  for (const [path, value] of Object.entries(values)) {
    await service.admin.post('/api/v1/credentials', { path, value });
    const refused = await refuse(['--env', `V=${path}`, '--', 'true']);
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.match(refused.stderr, /^leasehold: V: the value .*\n.*--files/);
    assert.doesNotMatch(refused.stderr, /hunter2/);
    assert.equal((await seeScript(home, ['--files', '--env', `V=${path}`], 'cat "$V"')).seen, value);
  }
  assert.equal(await scene.countActive(), 0);
});

test('a value too short to be masked is named; variables of one credential share a lease, with the requested time', async () => {
  const before = await countLeases();
  const flags = ['--env', 'PIN=prod/pin', ...A, '--env', 'B=prod/a', '--ttl', '7'];
  const { stdout, stderr } = await runScript(home, flags, 'echo $PIN $B');
  assert.deepEqual([stdout, stderr], ['123 [secret]\n', 'leasehold: too short to be masked: PIN\n']);
  assert.equal(await countLeases(), before + 2);
  const [lease] = (await service.admin.get('/api/v1/leases?path=prod/a&limit=1')).body.data;
  assert.equal(Date.parse(lease.expires_at) - Date.parse(lease.issued_at), 7000);
});

test('a program has a masked terminal of the window’s size, and Ctrl-C reaches it once', async (t) => {
  const script = `trap 'n=$((n+1)); echo got $n' INT; trap 'stty size' WINCH
    test -t 0 && test -t 1 && test -t 2 && stty size; echo "$A"
    while :; do read x && { [ "$x" = end ] && exit 9; echo "<$x>"; }; done`;
  const screen = openTerminal(t, scene, scene.run(...A, '--', 'sh', '-c', script));
  await screen.sees('24 80\r\n[secret]\r\n');
  screen.resize(100, 30);
  await screen.sees('30 100');
  screen.type(`${VALUES['prod/a']}\r`);
  await screen.sees('[secret]\r\n<[secret]>\r\n');
  screen.type('\u0003');
  await screen.sees('got 1');
  screen.type('end\r');
  assert.deepEqual(await screen.ended, { exitCode: 9, signal: undefined });
  assert.doesNotMatch(screen.screen(), /got 2|hunter2/);
});

const TEXT = 'a: {{leasehold://prod/a}}\nurl: p://{{ leasehold://prod/b | url }}@h\nother: {{ x }}\n';
const FILLED = `a: ${VALUES['prod/a']}\nurl: p://b%40ttery%2Fst%2Bple%20%26%20%22quotes%22@h\nother: {{ x }}\n`;

test('inject writes the text with the values to a pipe or a new private file', async () => {
  assert.equal((await home.leasehold(['inject', '-'], { input: TEXT })).stdout, FILLED);
  writeFileSync(join(home.path, 'app.tpl'), TEXT);
  const out = join(home.path, 'app.yaml');
  const written = await home.leasehold(['inject', 'app.tpl', '--out', 'app.yaml', '--ttl', '4m']);
  assert.deepEqual([written.code, written.stdout], [0, ''], written.stderr);
  assert.equal(readFileSync(out, 'utf8'), FILLED);
  assert.equal(statSync(out).mode & 0o777, 0o600);
  const before = await scene.countActive();
  const again = await home.leasehold(['inject', 'app.tpl', '--out', 'app.yaml']);
  assert.deepEqual([again.code, /app\.yaml cannot be written \(EEXIST\)/.test(again.stderr)], [1, true]);
  assert.equal(await scene.countActive(), before, 'its leases are revoked');
});

test('inject writes nothing when a value is rejected or no reference exists', async () => {
  for (const [input, code, says] of [
    ['{{leasehold://prod/a}} {{leasehold://other/c}}', 2, /template\[2\] \(other\/c\): Access denied/],
    ['nothing', 1, /-: contains no reference/],
    ['{{leasehold://a/../b}}', 1, /-: the path of a credential must not contain/],
  ] as const) {
    const refused = await home.leasehold(['inject', '-', '--out', 'none.yaml'], { input });
    assert.deepEqual([refused.code, refused.stdout], [code, '']);
    assert.match(refused.stderr, says);
    assert.equal(existsSync(join(home.path, 'none.yaml')), false);
  }
});

test('inject writes no values to a terminal', async () => {
  writeFileSync(join(home.path, 'app.tpl'), TEXT);
  const terminal = home.onTerminal(['inject', 'app.tpl']);
  assert.equal((await terminal.ended).exitCode, 1);
  assert.match(terminal.screen(), /would be shown on the terminal/);
});
