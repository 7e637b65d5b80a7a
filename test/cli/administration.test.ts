// Commands on agents, leases and the audit log.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { Cancelled } from '../../src/cli/errors.ts';
import { ROOT } from '../conventions/source.ts';
import { COMMAND, COMPILED, newHome } from '../kit/command.ts';
import { until } from '../kit/log-receivers.ts';
import { startTestService } from '../kit/service.ts';

async function scene(t: TestContext, flags: readonly string[] = []) {
  const service = await startTestService(t, flags);
  const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };
  const home = newHome(t, environment);
  const put = (path: string) => home.leasehold(['put', path, '-'], { input: 's3cret' });
  return { service, home, put, environment };
}

const POLICY = { name: 'p', principal: 'agent:*', resources: ['*'], actions: ['retrieve', 'list'], max_ttl: 60 };

test('agent add keeps the private key on this machine, and the agent can log in with it', async (t) => {
  const { service, home, put } = await scene(t);
  await put('a/b');
  const added = await home.leasehold(['agent', 'add', 'bot', '--description', 'a bot', '-o', 'json']);
  assert.equal(added.code, 0, added.stderr);
  const file = join(home.path, '.config/leasehold/agents/bot.pem');
  assert.match(added.stderr, /^The private key is in .*bot\.pem\. Use it with: leasehold --agent bot\n$/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(existsSync(join(service.dataDir, 'agents/bot')), false, 'the service has no private key');
  await service.admin.post('/api/v1/policies', POLICY);
  assert.equal((await home.leasehold(['get', 'a/b', '--agent', 'bot'])).stdout, 's3cret');
  const again = await home.leasehold(['agent', 'add', 'bot']);
  assert.equal(again.code, 1);
  assert.match(
    again.stderr,
    new RegExp(`^leasehold: ${file} already exists\\.\n {2}To register its key, use --public-key ${file}\\.`),
  );
  const deleted = await home.leasehold(['agent', 'delete', 'bot', '--yes']);
  assert.match(deleted.stderr, /^Deregistered bot\. Its private key is still in .*bot\.pem\.\n/);
  const anew = await home.leasehold(['agent', 'add', 'bot', '--public-key', file, '--field', 'public_key']);
  assert.deepEqual([anew.code, anew.stdout], [0, (await publicHalf(file)).concat('\n')]);
  assert.equal((await home.leasehold(['get', 'a/b', '--agent', 'bot'])).stdout, 's3cret');
});

test('agent add prints the next command and two clients’ configurations, which work from any directory', async (t) => {
  const { home, service } = await scene(t);
  const [file, command] = [join(home.path, 'bot.pem'), join(ROOT, 'scripts/leasehold')];
  const { stderr } = await home.leasehold(['agent', 'add', 'bot', '--new-key', 'bot.pem']);
  const mcp = ['mcp', '--agent', 'bot', '--key-file', file, '--address', service.address];
  assert.equal(
    stderr,
    [
      `The private key is in ${file}. Use it with: leasehold --agent bot --key-file ${file}`,
      '',
      'Next: let it use a credential, such as openai/key:',
      `  ${command} policy put bot --principal agent:bot --resource openai/key --action use`,
      'Claude Code:',
      `  claude mcp add leasehold -- ${[command, ...mcp].join(' ')}`,
      'Codex, in ~/.codex/config.toml:',
      '  [mcp_servers.leasehold]',
      `  command = "${command}"`,
      `  args = [${mcp.map((word) => `"${word}"`).join(', ')}]`,
      '',
    ].join('\n'),
  );
  const bin = join(home.path, 'bin');
  mkdirSync(bin);
  symlinkSync(command, join(bin, 'leasehold'));
  const environment = { PATH: `${join(ROOT, 'node_modules/.bin')}:${bin}:${process.env['PATH']}` };
  const installed = await home.leasehold(['agent', 'add', 'other'], { environment });
  assert.match(installed.stderr, /^ {2}claude mcp add leasehold -- leasehold mcp --agent other --address /m);
});

test('audit tail as a table prints the headings first', async (t) => {
  const { home, put } = await scene(t);
  await put('a/1');
  const aborting = new AbortController();
  const seen = await new Promise<string>((resolve) => {
    let text = '';
    const onStdout = (chunk: string): void => {
      text += chunk;
      if (text.split('\n').length > 2) resolve(text);
    };
    void home.leasehold(['audit', 'tail', '--last', '1'], { signal: aborting.signal, onStdout });
  });
  aborting.abort(new Cancelled());
  const [heading = '', entry = ''] = seen.split('\n');
  assert.match(heading, /^SEQ +TIMESTAMP +EVENT TYPE +AGENT NAME +RESOURCE +RESULT +REASON$/);
  assert.equal(heading.indexOf('RESOURCE'), entry.indexOf('a/1'));
});

/** The raw public key, as openssl prints it: the last 32 bytes of its DER. */
async function publicHalf(file: string): Promise<string> {
  const { stdout } = await promisify(execFile)('openssl', ['pkey', '-in', file, '-pubout', '-outform', 'DER'], {
    encoding: 'buffer',
  });
  return stdout.subarray(-32).toString('base64');
}

test('a rejected registration leaves no key file', async (t) => {
  const { home } = await scene(t);
  const file = join(home.path, '.config/leasehold/agents/bot.pem');
  const environment = { LEASEHOLD_TOKEN: 'lha_0123456789abcdef' };
  assert.equal((await home.leasehold(['agent', 'add', 'bot'], { environment })).code, 2);
  assert.equal(existsSync(file), false);
});

test('agent add registers a given public key, or one whose pair the service creates', async (t) => {
  const { service, home } = await scene(t);
  assert.equal((await home.leasehold(['agent', 'add', 'one'])).code, 0);
  const { body } = await service.admin.get('/api/v1/agents/one');
  const input = `${body.data.public_key}\n`;
  const two = await home.leasehold(['agent', 'add', 'two', '--public-key', '-', '--field', 'public_key'], { input });
  assert.equal(two.stdout, input);
  const wrong = await home.leasehold(['agent', 'add', 'three', '--public-key', '-'], { input: 'no key' });
  assert.deepEqual([wrong.code, /--public-key: must be an Ed25519 key/.test(wrong.stderr)], [1, true]);
  assert.equal((await home.leasehold(['agent', 'add', 'four', '--service-key'])).code, 0);
  assert.ok(existsSync(join(service.dataDir, 'agents/four/private_key.pem')));
  const names = await home.leasehold(['agent', 'list', '--field', 'name']);
  assert.equal(names.stdout, 'four\none\ntwo\n');
  assert.equal((await home.leasehold(['agent', 'delete', 'two', '--yes'])).code, 0);
  assert.equal((await home.leasehold(['agent', 'show', 'two'])).code, 2);
});

test('an empty list prints a hint to a person and an empty list to a program', async (t) => {
  const service = await startTestService(t);
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  const rows: readonly [words: readonly string[], says: RegExp][] = [
    [['list'], /^No credentials that you may list\. .*Store one with: leasehold put PATH\n$/],
    [['list', 'prod/'], /^No matching credentials that you may list\. To list all: leasehold list\n$/],
    [['list', '--type', 'token'], /^No matching credentials/],
    [['policy', 'list'], /^No policies, .*leasehold policy put NAME\n$/],
    [['lease', 'list'], /^No leases that you may list\.\n$/],
    [['lease', 'list', '--status', 'revoked'], /^No matching leases that you may list\.\n$/],
    [['audit', 'list', '--since', '2040-01-01T00:00:00Z'], /^No matching entries\.\n$/],
    [['agent', 'list'], /^No agents\. Register one with: leasehold agent add NAME\n$/],
  ];
  for (const [words, says] of rows) {
    const shown = await home.leasehold(words);
    assert.deepEqual([shown.code, shown.stdout], [0, ''], words.join(' '));
    assert.match(shown.stderr, says);
    const read = await home.leasehold([...words, '-o', 'json']);
    assert.deepEqual([read.code, read.stdout, read.stderr], [0, '[]\n', ''], words.join(' '));
  }
});

test('leases are listed, renewed and revoked, one by one or all of an agent', async (t) => {
  const { home, put } = await scene(t);
  await put('a/b');
  const ids: string[] = [];
  for (let at = 0; at < 3; at++) ids.push((await home.leasehold(['get', 'a/b', '--field', 'lease_id'])).stdout.trim());
  const [first = '', second = ''] = ids;
  const active = async () =>
    (await home.leasehold(['lease', 'list', '--status', 'active', '--field', 'lease_id'])).stdout.split('\n').length -
    1;
  assert.equal(await active(), 3);
  assert.equal((await home.leasehold(['lease', 'renew', first, '--field', 'status'])).stdout, 'active\n');
  assert.equal((await home.leasehold(['lease', 'revoke', first, second])).stderr, 'Revoked 2.\n');
  assert.equal(await active(), 1);
  assert.equal((await home.leasehold(['lease', 'renew', first])).code, 2);
  const ended = await home.leasehold(['lease', 'revoke', first]);
  assert.equal(ended.stderr, `${first} has already ended (revoked).\nRevoked 0.\n`);
  const dry = await home.leasehold(['lease', 'revoke', '--agent-name', 'admin', '--dry-run']);
  assert.equal(dry.stderr, '1 active lease will end. Nothing was done.\n');
  assert.equal((await home.leasehold(['lease', 'revoke', '--path', 'a/b', '--yes'])).stderr, 'Revoked 1.\n');
  assert.equal(await active(), 0);
  for (const words of [[], [first, '--agent-name', 'admin']]) {
    assert.equal((await home.leasehold(['lease', 'revoke', ...words, '--yes'])).code, 1);
  }
});

test('audit list filters entries, audit verify checks them, and audit export writes them', async (t) => {
  const { home, put } = await scene(t);
  await put('a/b');
  await home.leasehold(['get', 'a/b']);
  await home.leasehold(['get', 'a/c']);
  const { stdout } = await home.leasehold([
    'audit',
    'list',
    '--result',
    'not_found',
    '--since',
    '1h',
    '--field',
    'resource',
  ]);
  assert.equal(stdout, 'a/c\n');
  assert.equal((await home.leasehold(['audit', 'list', '--limit', '2', '--field', 'seq'])).stdout, '4\n3\n');
  const verified = await home.leasehold(['audit', 'verify', '-o', 'json']);
  assert.deepEqual([verified.code, JSON.parse(verified.stdout).entries], [0, 4]);
  const lines = (await home.leasehold(['audit', 'export'])).stdout.trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).seq),
    [1, 2, 3, 4],
  );
  const written = await home.leasehold(['audit', 'export', '--out', 'log.ndjson', '--head', 'head.txt']);
  assert.equal(written.code, 0, written.stderr);
  assert.match(written.stderr, /^Wrote 4 entries to .*log\.ndjson\.\n$/);
  const file = join(home.path, 'log.ndjson');
  assert.equal(readFileSync(file, 'utf8'), `${lines.join('\n')}\n`);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.match(readFileSync(join(home.path, 'head.txt'), 'utf8'), /^leasehold-audit-head: 4 \S+ \S+ \d+ \S+ \S+\n$/);
  const again = await home.leasehold(['audit', 'export', '--out', 'log.ndjson']);
  assert.deepEqual([again.code, /already exists/.test(again.stderr)], [1, true]);
  const other = await home.leasehold(['audit', 'export', '--out', 'other.ndjson', '--head', 'head.txt']);
  assert.deepEqual([other.code, /head\.txt already exists/.test(other.stderr)], [1, true]);
  assert.equal(existsSync(join(home.path, 'other.ndjson')), false);
  assert.equal(existsSync(`${file}.unfinished`), false);
});

test('audit tail prints earlier entries, then each new entry once, and ends successfully after Ctrl-C', async (t) => {
  const { home, put, environment } = await scene(t);
  for (const path of ['a/1', 'a/2', 'a/3']) await put(path);
  const [program, ...first] = COMMAND;
  const child = spawn(program, [...first, 'audit', 'tail', '--last', '2', '-o', 'json'], {
    env: { ...environment, ...COMPILED, HOME: home.path, PATH: process.env['PATH'] ?? '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let seen = '';
  child.stdout.on('data', (chunk) => (seen += chunk));
  // A line may have arrived in part.
  const lines = () => seen.slice(0, seen.lastIndexOf('\n') + 1).split('\n');
  const resources = () => lines().flatMap((line) => (line === '' ? [] : [JSON.parse(line).resource]));
  const untilListed = (count: number): Promise<void> => until(() => resources().length >= count);
  await untilListed(2);
  for (const path of ['b/1', 'b/2']) await put(path);
  await untilListed(4);
  await put('b/3');
  await untilListed(5);
  assert.deepEqual(resources(), ['a/2', 'a/3', 'b/1', 'b/2', 'b/3']);
  child.kill('SIGINT');
  assert.deepEqual(await new Promise((resolve) => child.on('close', (...ended) => resolve(ended))), [0, null]);
});

test('a service on a Unix socket accepts every command', async (t) => {
  const home = newHome(t);
  const socket = join(home.path, 's');
  const service = await startTestService(t, ['--listen', `unix:${socket}`]);
  const environment = { LEASEHOLD_DATA_DIR: service.dataDir };
  assert.equal((await home.leasehold(['put', 'a/b', '-'], { environment, input: 's3cret' })).code, 0);
  assert.equal((await home.leasehold(['get', 'a/b'], { environment })).stdout, 's3cret');
  assert.equal((await home.leasehold(['delete', 'a/b', '--yes'], { environment })).code, 0);
  const { stdout } = await home.leasehold(['whoami', '-o', 'json'], { environment });
  assert.equal(JSON.parse(stdout).address, `unix:${socket}`);
});

test('the service and its database programs are started with their own flags', async (t) => {
  const home = newHome(t);
  const server = await home.leasehold(['server', '--help']);
  assert.deepEqual([server.code, /--listen ADDRESS/.test(server.stdout)], [0, true]);
  assert.equal((await home.leasehold(['server', '--listen', 'nowhere'])).code, 2);
  assert.match((await home.leasehold(['schema', '--print'])).stdout, /CREATE SCHEMA/);
  assert.equal((await home.leasehold(['migrate', '--from', 'nowhere'])).code, 2);
});

test('audit checkpoint --out writes a new file completely, replaces none, and leaves none without a response', async (t) => {
  const { home } = await scene(t);
  const out = (name: string, ...more: string[]) => home.leasehold(['audit', 'checkpoint', '--out', name, ...more]);
  const read = (name: string) => readFileSync(join(home.path, name), 'utf8');
  assert.deepEqual((await out('kept.txt')).code, 0);
  assert.match(read('kept.txt'), /^leasehold\/\S+\n\d+\n/);
  assert.equal((await out('log.pub', '--public-key')).code, 0);
  assert.match(read('log.pub'), /^leasehold\/\S+\+\S+\n$/);
  const [kept, files] = [read('kept.txt'), readdirSync(home.path)];
  assert.match((await out('kept.txt')).stderr, /kept\.txt already exists\.\n.*A file is never replaced/);
  assert.equal((await out('other.txt', '--address', 'http://127.0.0.1:1')).code === 0, false);
  assert.match((await out('missing/other.txt')).stderr, /cannot be written \(ENOENT\)/);
  assert.equal(read('kept.txt'), kept);
  assert.deepEqual(readdirSync(home.path), files, 'nothing else is left');
});

test('audit checkpoint prints a note that audit verify accepts later, and rejects if the log does not extend it', async (t) => {
  const { home, put } = await scene(t);
  const note = (await home.leasehold(['audit', 'checkpoint'])).stdout;
  assert.match(note, /^leasehold\/[A-Za-z0-9_-]{22}\n\d+\n\S{44}\n\n— leasehold\/\S+ \S+\n$/);
  writeFileSync(join(home.path, 'kept.txt'), note);
  await put('a/b');
  const receipt = (await home.leasehold(['audit', 'receipt', '2'])).stdout;
  assert.match(receipt, /^c2sp\.org\/tlog-proof@v1\nextra \S{44}\nindex 1\n/);
  const key = (await home.leasehold(['audit', 'checkpoint', '--public-key'])).stdout;
  assert.equal(key.startsWith(`${note.split('\n')[0]}+`), true);
  const verify = (file: string) => home.leasehold(['audit', 'verify', '--checkpoint', file, '-o', 'json']);
  const extended = await verify('kept.txt');
  assert.deepEqual([extended.code, JSON.parse(extended.stdout).extends_checkpoint], [0, true], extended.stderr);
  const [origin, size = '', root, ...rest] = note.split('\n');
  const variants: readonly (readonly [string, RegExp])[] = [
    [[origin, '9999', root, ...rest].join('\n'), /the end of the log was cut off/],
    [[origin, size, `${'A'.repeat(43)}=`, ...rest].join('\n'), /the log was replaced/],
    [['leasehold/other', size, root, ...rest].join('\n'), /it is another log/],
  ];
  for (const [text, problem] of variants) {
    writeFileSync(join(home.path, 'other.txt'), text);
    const found = await verify('other.txt');
    assert.deepEqual([found.code, JSON.parse(found.stdout).extends_checkpoint], [3, false]);
    assert.match(found.stderr, problem);
  }
  writeFileSync(join(home.path, 'other.txt'), 'no checkpoint');
  assert.equal((await verify('other.txt')).code, 1);
});
