// `leasehold run` without a terminal: the program's environment, its output, its exit, and what remains.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunOptions } from '../kit/command.ts';
import { openScene, VALUES } from './run-fixture.ts';

const scene = await openScene({ after });
const run = (words: readonly string[], more: RunOptions = {}) => scene.home.leasehold(['run', ...words], more);
/** For an error that precedes the program. */
const refuse = (words: readonly string[]) => run(words, { isInProcess: true });
const A = ['--env', 'A=prod/a'] as const;
const inShell = (script: string, more: RunOptions = {}) => run([...A, '--', 'sh', '-c', script], more);
const EVERYTHING = Object.values(VALUES).filter((value) => value.length > 3);

function assertClean(text: string): void {
  for (const value of EVERYTHING) assert.equal(text.includes(value), false);
}

test('the program receives the values, and its output is masked', async () => {
  // WHY not an argument: another run of the tests on this machine looks for it in the arguments of all processes.
  const input = `${VALUES['prod/a']}\n`;
  const script = 'read wanted; [ "$A" = "$wanted" ] && echo "right: $A"; echo "$B" >&2; printf %s "$A" | base64';
  const { code, stdout, stderr } = await run([...A, '--env', 'B=prod/b', '--', 'sh', '-c', script], { input });
  assert.deepEqual([code, stdout, stderr], [0, 'right: [secret]\n[secret]\n', '[secret]\n']);
});

test('without masking the output is passed on unchanged', async () => {
  const { stdout } = await run(['--no-masking', ...A, '--', 'sh', '-c', 'echo $A']);
  assert.equal(stdout, `${VALUES['prod/a']}\n`);
});

test('input, arguments and exit code are the program’s own', async () => {
  const { code, stdout } = await inShell('cat; echo "[$1]"; exit 77', { input: 'typed\n' });
  assert.deepEqual([code, stdout], [77, 'typed\n[]\n']);
  const words = ['--env', '--', '$A', '*', ''];
  assert.equal((await run([...A, '--', 'printf', '[%s]', ...words])).stdout, words.map((word) => `[${word}]`).join(''));
});

test('a missing program exits with 127, one that cannot be executed with 126, and no lease is issued', async () => {
  const before = (await scene.service.admin.get('/api/v1/leases')).body.data.length;
  const missing = await refuse([...A, '--', 'no-such-program']);
  assert.deepEqual([missing.code, missing.stderr], [127, 'leasehold: no-such-program: command not found\n']);
  for (const file of ['/etc/passwd', '/']) assert.equal((await refuse([...A, '--', file])).code, 126, file);
  assert.equal((await scene.service.admin.get('/api/v1/leases')).body.data.length, before);
});

test('a missing interpreter is reported before a lease is issued, and errors of the system are reported too', async () => {
  const before = (await scene.service.admin.get('/api/v1/leases')).body.data.length;
  const script = join(scene.home.path, 'script');
  writeFileSync(script, '#!/no/such\n', { mode: 0o755 });
  const said = `leasehold: ${script}: the interpreter in its first line, /no/such, does not exist\n`;
  assert.deepEqual(await refuse([...A, '--', script]), { code: 127, signal: null, stdout: '', stderr: said });
  assert.equal((await scene.service.admin.get('/api/v1/leases')).body.data.length, before);
  const nested = join(scene.home.path, 'nested');
  writeFileSync(nested, `#!${script}\n`, { mode: 0o755 });
  for (const flags of [[], ['--no-masking']]) {
    const { code, stderr } = await run([...flags, ...A, '--', nested]);
    assert.deepEqual([code, stderr], [127, `leasehold: ${nested}: cannot be started (ENOENT)\n`]);
  }
  assert.equal(await scene.countActive(), 0);
});

test('a signal that ended the program ends the command too, except for signals that dump core', async () => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const)
    assert.equal((await inShell(`kill -${signal.slice(3)} $$`)).signal, signal);
  const { code, signal } = await inShell('ulimit -c 0; kill -SEGV $$');
  assert.deepEqual([code, signal], [139, null]);
  assert.equal(await scene.countActive(), 0);
});

test('a reader that closes its end ends the program as it would without the command', async () => {
  const words = scene.run(...A, '--', 'sh', '-c', 'yes; kill -l $? >&2');
  const child = spawn(words[0] ?? '', words.slice(1), { env: scene.environment, stdio: ['ignore', 'pipe', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (chunk) => (stderr += chunk));
  child.stdout.once('data', () => child.stdout.destroy());
  const code = await new Promise((resolve) => child.once('close', resolve));
  assert.deepEqual([code, stderr], [0, 'PIPE\n']);
});

test('output is neither lost nor truncated for a slow reader, and a background process is not waited for', async () => {
  const lines = Array.from({ length: 200_000 }, (_, at) => `${at + 1}\n`).join('');
  const words = scene.run(...A, '--', 'sh', '-c', 'sleep 600 & echo $! >"$HOME/left"; seq 200000');
  const child = spawn(words[0] ?? '', words.slice(1), { env: scene.environment, stdio: ['ignore', 'pipe', 'ignore'] });
  await sleep(500);
  let stdout = '';
  for await (const chunk of child.stdout) {
    stdout += chunk;
    if (stdout.length < 200_000) await sleep(20);
  }
  assert.equal(stdout === lines, true);
  process.kill(Number(readFileSync(join(scene.home.path, 'left'), 'utf8'))); // throws where it was waited for
});

test('if both outputs lead to the same file their order is kept, and both can be opened by name', async () => {
  const words = scene.run(
    ...A,
    '--',
    'bash',
    '-c',
    'for i in {1..200}; do echo o$i; echo e$i >&2; done; echo $A > /dev/stdout',
  );
  const line = `${words.map((word) => `'${word}'`).join(' ')} 2>&1 | cat`;
  const child = spawn('bash', ['-c', line], { env: scene.environment, stdio: ['ignore', 'pipe', 'ignore'] });
  const stdout = (await child.stdout.toArray()).join('');
  assert.equal(stdout, `${Array.from({ length: 200 }, (_, at) => `o${at + 1}\ne${at + 1}\n`).join('')}[secret]\n`);
});

test('the program has the umask and the directory of the caller', async () => {
  const words = scene.run(...A, '--', 'sh', '-c', 'umask; pwd');
  const child = spawn('bash', ['-c', 'umask 027; exec "$@"', '-', ...words], { env: scene.environment, cwd: '/usr' });
  assert.equal((await child.stdout.toArray()).join(''), '0027\n/usr\n');
});

test('the vault’s own variables and likely secrets are withheld, and the latter are named', async () => {
  const environment = {
    GH_TOKEN: 'x1',
    STRIPE: 'sk_live_0123456789abcdef',
    DATABASE_URL: 'postgres://u:p@h/d',
    LEASEHOLD_PROFILE_X: 'x',
    SSH_AUTH_SOCK: '/run/agent',
    TOKENIZERS_PARALLELISM: 'false',
    EMPTY_TOKEN: '',
  };
  const passed = async (...keep: string[]) => {
    const words = [...keep.flatMap((name) => ['--keep', name]), ...A, '--', 'env'];
    const { stdout, stderr } = await run(words, { environment });
    const names = stdout.split('\n').map((line) => line.replace(/=.*/, ''));
    return { names: new Set(names), stderr };
  };
  const plain = await passed();
  assert.equal(
    plain.stderr,
    'leasehold: 3 variables not passed on (--keep NAME does): DATABASE_URL, GH_TOKEN, STRIPE\n',
  );
  for (const name of ['A', 'PATH', 'HOME', 'SSH_AUTH_SOCK', 'TOKENIZERS_PARALLELISM', 'EMPTY_TOKEN'])
    assert.ok(plain.names.has(name), name);
  for (const name of ['GH_TOKEN', 'STRIPE', 'DATABASE_URL', 'LEASEHOLD_TOKEN', 'LEASEHOLD_PROFILE_X'])
    assert.ok(!plain.names.has(name), name);
  const one = await passed('GH_TOKEN');
  assert.match(one.stderr, /^leasehold: 2 variables.*: DATABASE_URL, STRIPE\n$/);
  assert.ok(one.names.has('GH_TOKEN'));
  const all = await passed('*');
  assert.equal(all.stderr, '');
  assert.ok(all.names.has('STRIPE') && !all.names.has('LEASEHOLD_TOKEN'));
  assert.ok((await passed('*', 'LEASEHOLD_TOKEN')).names.has('LEASEHOLD_TOKEN'));
});

test('references in a file are replaced, and other lines are passed on unchanged', async () => {
  await scene.service.admin.post('/api/v1/credentials', { path: 'prod/versions', value: 'the first value' });
  await scene.service.admin.post('/api/v1/credentials', { path: 'prod/versions', value: 'the second value' });
  const text =
    'A=leasehold://prod/a\nexport B="plain $A" # c\nOLD=leasehold://prod/versions?version=1\nNEW=leasehold://prod/versions\n';
  writeFileSync(join(scene.home.path, '.env'), text);
  const words = [
    '--no-masking',
    '--env-file',
    '.env',
    '--env',
    'C=prod/b',
    '--',
    'sh',
    '-c',
    'echo "$A|$B|$C|$OLD|$NEW"',
  ];
  const { stdout } = await run(words);
  assert.equal(stdout, `${VALUES['prod/a']}|plain $A|${VALUES['prod/b']}|the first value|the second value\n`);
});

test('for a repeated name the last value is used, and no lease is issued for the others', async () => {
  writeFileSync(join(scene.home.path, '.one'), 'A=leasehold://no/such\nB=first\nB=second\nC=one\n');
  writeFileSync(join(scene.home.path, '.two'), 'C=two\n');
  const files = ['--env-file', '.one', '--env-file', '.two', '--env', 'A=prod/b', '--env', 'A=prod/a'];
  const { code, stdout, stderr } = await run(['--no-masking', ...files, '--', 'sh', '-c', 'echo "$A|$B|$C"']);
  assert.deepEqual([code, stdout], [0, `${VALUES['prod/a']}|second|two\n`], stderr);
});

test('references inside a value are replaced, percent-encoded in a URL, and masked', async () => {
  const text = [
    'URL=postgres://app:{{ leasehold://prod/b | url }}@db/{{leasehold://prod/a}}?x={{other}}',
    'WHOLE={{leasehold://prod/a}}',
  ];
  writeFileSync(join(scene.home.path, '.env'), text.join('\n'));
  const words = [
    '--env-file',
    '.env',
    '--env',
    'HEAD=Bearer {{leasehold://prod/a}}',
    '--',
    'sh',
    '-c',
    'echo "$URL|$WHOLE|$HEAD"',
  ];
  const bare = await run(['--no-masking', ...words]);
  const [a, b] = [VALUES['prod/a'], 'b%40ttery%2Fst%2Bple%20%26%20%22quotes%22'];
  assert.equal(bare.stdout, `postgres://app:${b}@db/${a}?x={{other}}|${a}|Bearer ${a}\n`, bare.stderr);
  assert.equal((await run(words)).stdout, 'postgres://app:[secret]@db/[secret]?x={{other}}|[secret]|Bearer [secret]\n');
  const files = await run([
    '--no-masking',
    '--files',
    '--env',
    'F=x-{{leasehold://prod/a}}',
    '--',
    'sh',
    '-c',
    'cat "$F"',
  ]);
  assert.equal(files.stdout, `x-${a}`, files.stderr);
  assert.equal(await scene.countActive(), 0);
});

test('a mapping in leasehold.toml is used by its name, and the default one without a name', async () => {
  const file = join(scene.home.path, 'leasehold.toml');
  const write = (text: string) => writeFileSync(file, text);
  const print = ['--', 'sh', '-c', 'echo "$A|$B"'];
  write('[run.default]\nA = "prod/a"\n[run.other]\nA = "leasehold://prod/b"\nB = "prod/a"\n');
  const byDefault = await run(['--no-masking', ...print]);
  assert.equal(byDefault.stdout, `${VALUES['prod/a']}|\n`);
  assert.equal(byDefault.stderr, 'leasehold: leasehold.toml [run.default]: A\n');
  const named = await run([
    '--no-masking',
    'other',
    '--env',
    'B=prod/pem',
    '--',
    'sh',
    '-c',
    'echo "$A"; test "$B" != ""',
  ]);
  assert.deepEqual([named.code, named.stdout, named.stderr], [0, `${VALUES['prod/b']}\n`, '']);
  const typed = await run(['--no-masking', '--env', 'B=prod/a', ...print]);
  assert.equal(typed.stdout, `|${VALUES['prod/a']}\n`, 'what is typed is all');
  for (const [line, says] of [
    ['A = "postgres://u:{{leasehold://prod/a}}@evil.example"', /A: the path of a credential may contain only/],
    ['LD_PRELOAD = "prod/a"', /\[run\.default\]: LD_PRELOAD changes how programs load code/],
    ['A = 1', /\[run\.default\]: A must be the path of a credential/],
  ] as const) {
    write(`[run.default]\n${line}\n`);
    const refused = await refuse(print);
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.match(refused.stderr, says);
  }
  rmSync(file);
});

test('with --files the variables contain paths of private files, which are removed afterwards', async () => {
  const script = 'stat -c %a "$(dirname "$A")" "$A"; cmp "$P" "$1" && echo same; echo "$A"; cat "$A"';
  writeFileSync(join(scene.home.path, 'pem'), VALUES['prod/pem']);
  const { stdout } = await run(['--files', ...A, '--env', 'P=prod/pem', '--', 'sh', '-c', script, '-', 'pem']);
  const [directory, file, same, path = '', value] = stdout.split('\n');
  assert.deepEqual([directory, file, same, value], ['700', '600', 'same', '[secret]']);
  assert.throws(() => readFileSync(path), { code: 'ENOENT' });
  assert.throws(() => readdirSync(join(path, '..')), { code: 'ENOENT' });
});

test('files are removed and leases revoked when a signal ends the program', async () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const words = scene.run('--files', ...A, '--', 'sh', '-c', 'echo "$A"; exec sleep 100');
    const child = spawn(words[0] ?? '', words.slice(1), {
      env: scene.environment,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ended = new Promise((resolve) => child.once('close', (_code, by) => resolve(by)));
    const path = String(await new Promise((resolve) => child.stdout.once('data', resolve))).trim();
    assert.equal(readFileSync(path, 'utf8'), VALUES['prod/a']);
    assert.equal(await scene.countActive(), 1);
    child.kill(signal);
    assert.equal(await ended, signal);
    assert.throws(() => readFileSync(path), { code: 'ENOENT' });
    assert.equal(await scene.countActive(), 0);
  }
});

const MISTAKES: readonly [words: readonly string[], says: RegExp][] = [
  [[...A], /Put the command after --: leasehold run --use PATH -- COMMAND/],
  [['--', 'true'], /no variables to pass/],
  [['--env', 'A', '--', 'true'], /--env: must be NAME=path/],
  [['--env', 'hunter2!=x', '--', 'true'], /--env: the name of a variable/],
  [['--env', 'A=hunter2!', '--', 'true'], /--env A: the path of a credential may contain only/],
  [['--env', 'A=a?version=x', '--', 'true'], /--env A: behind the path only/],
  [
    ['--env-file', join(scene.home.path, '.inside'), '--', 'true'],
    /\.inside, line 1: a reference inside a value needs braces\.\n {2}Write \{\{leasehold:\/\/PATH\}\}/,
  ],
  [['nowhere', '--', 'true'], /no settings file contains \[run\.nowhere\]/],
  [['--env-file', join(scene.home.path, '.none'), '--', 'true'], /\.none: cannot be read \(ENOENT\)/],
  [[...A, '--ttl', 'x', '--', 'true'], /--ttl: must be a number of seconds or a duration such as 90s, 15m or 2h/],
];
for (const [words, says] of MISTAKES) {
  test(`a usage error exits with 1 and is not repeated: run ${words.join(' ')}`, async () => {
    writeFileSync(join(scene.home.path, '.inside'), 'A=hunter2!leasehold://prod/a\n');
    const { code, stdout, stderr } = await refuse(words);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, says);
    assert.doesNotMatch(stderr, /hunter2!/);
  });
}

test('if one value is rejected nothing starts, each rejection has the service’s message, and no lease stays active', async () => {
  const words = [...A, '--env', 'C=other/c', '--env', 'N=prod/none', '--', 'sh', '-c', 'echo started'];
  const { code, stdout, stderr } = await refuse(words);
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
    await scene.service.admin.post('/api/v1/credentials', { path, value });
    const refused = await refuse(['--env', `V=${path}`, '--', 'true']);
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.match(refused.stderr, /^leasehold: V: the value .*\n.*--files/);
    assert.doesNotMatch(refused.stderr, /hunter2/);
    const held = await run(['--files', '--no-masking', '--env', `V=${path}`, '--', 'sh', '-c', 'cat "$V"']);
    assert.equal(held.stdout, value);
  }
  assert.equal(await scene.countActive(), 0);
});

test('a value too short to be masked is named, and several names of a credential share one lease', async () => {
  const { stdout, stderr } = await run([
    '--env',
    'PIN=prod/pin',
    ...A,
    '--env',
    'B=prod/a',
    '--',
    'sh',
    '-c',
    'echo $PIN $B; sleep 1',
  ]);
  assert.deepEqual([stdout, stderr], ['123 [secret]\n', 'leasehold: too short to be masked: PIN\n']);
  const { data } = (await scene.service.admin.get('/api/v1/leases?path=prod/a&limit=1')).body;
  assert.equal(data[0].status, 'revoked');
});

test('leases last as long as requested', async () => {
  assert.equal((await run([...A, '--ttl', '7', '--', 'true'])).code, 0);
  const [lease] = (await scene.service.admin.get('/api/v1/leases?path=prod/a&limit=1')).body.data;
  assert.equal(Date.parse(lease.expires_at) - Date.parse(lease.issued_at), 7000);
});

test('a service that became unreachable is reported at the end and does not delay the exit', async (t) => {
  const own = await openScene(t);
  const words = own.run(...A, '--', 'sh', '-c', 'echo ready; read x; exit 4');
  const child = spawn(words[0] ?? '', words.slice(1), { env: own.environment });
  let stderr = '';
  child.stderr.on('data', (chunk) => (stderr += chunk));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  await own.service.stop();
  child.stdin.end('\n');
  assert.equal(await new Promise((resolve) => child.once('close', resolve)), 4);
  assert.match(stderr, /^leasehold: 1 of 1 leases were not revoked and will expire: /);
});

test('no value is in the arguments of a process or in a file that remains', async (t) => {
  const folders = ['runtime', 'temporary', 'work'].map((name) => join(scene.home.path, name));
  for (const folder of folders) mkdirSync(folder, { mode: 0o700 });
  const [XDG_RUNTIME_DIR = '', TMPDIR = '', cwd = ''] = folders;
  // Another run of the tests on this machine has another number.
  const script = `: ${process.pid}; echo ready; read x; echo "$A$B$P"`;
  for (const flags of [[], ['--files']]) {
    const words = scene.run(...flags, ...A, '--env', 'B=prod/b', '--env', 'P=prod/pem', '--', 'sh', '-c', script);
    const child = spawn(words[0] ?? '', words.slice(1), {
      env: { ...scene.environment, XDG_RUNTIME_DIR, TMPDIR },
      cwd,
    });
    t.after(() => child.kill());
    const ended = new Promise((resolve) => child.once('close', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    assert.equal(readdirSync(XDG_RUNTIME_DIR).length, flags.includes('--files') ? 1 : 0);
    assert.equal(argumentsOfAll().filter((line) => line.includes(script)).length, 2, 'the command and its program');
    for (const line of argumentsOfAll()) assertClean(line);
    child.stdin.end('\n');
    child.stdout.resume();
    await ended;
  }
  const left = readdirSync(scene.home.path, { recursive: true, withFileTypes: true });
  // The file with a value that a test put there.
  for (const entry of left.filter((one) => one.isFile() && one.name !== 'pem'))
    assertClean(readFileSync(join(entry.parentPath, entry.name), 'latin1'));
  for (const folder of folders) assert.deepEqual(readdirSync(folder), []);
});

/** The arguments of every process of this machine that can be inspected. */
function argumentsOfAll(): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')];
    } catch {
      return []; // has ended
    }
  });
}
