// Commands on agents, leases, exposure and the audit log.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { Cancelled } from '../../src/cli/errors.ts';
import { ROOT } from '../conventions/source.ts';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };
const { leasehold, path: HOME } = newHome({ after }, environment);
const put = (path: string) => leasehold(['put', path, '-'], { input: 's3cret' });
const keyFileOf = (name: string): string => join(HOME, `.config/leasehold/agents/${name}.pem`);

const POLICY = { name: 'p', principal: 'agent:*', resources: ['*'], actions: ['retrieve', 'list'], max_ttl: 60 };

test('an empty list prints a hint on standard error and an empty list to a program', async () => {
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
    const shown = await leasehold(words);
    assert.deepEqual([shown.code, shown.stdout], [0, ''], words.join(' '));
    assert.match(shown.stderr, says);
    const read = await leasehold([...words, '-o', 'json']);
    assert.deepEqual([read.code, read.stdout, read.stderr], [0, '[]\n', ''], words.join(' '));
  }
});

test('agent add keeps the private key on this machine, and the agent can log in with it', async () => {
  await put('a/b');
  const added = await leasehold(['agent', 'add', 'bot', '--description', 'a bot', '-o', 'json']);
  assert.equal(added.code, 0, added.stderr);
  const file = keyFileOf('bot');
  assert.match(added.stderr, /^The private key is in .*bot\.pem\. Use it with: leasehold --agent bot\n$/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(existsSync(join(service.dataDir, 'agents/bot')), false, 'the server has no private key');
  await service.admin.post('/api/v1/policies', POLICY);
  assert.equal((await leasehold(['get', 'a/b', '--agent', 'bot'])).stdout, 's3cret');
  const again = await leasehold(['agent', 'add', 'bot']);
  assert.equal(again.code, 1);
  assert.match(
    again.stderr,
    new RegExp(`^leasehold: ${file} already exists\\.\n {2}To register its key, use --public-key ${file}\\.`),
  );
  const deleted = await leasehold(['agent', 'delete', 'bot', '--yes']);
  assert.match(deleted.stderr, /^Deregistered bot\. Its private key is still in .*bot\.pem\.\n/);
  const anew = await leasehold(['agent', 'add', 'bot', '--public-key', file, '--field', 'public_key']);
  assert.deepEqual([anew.code, anew.stdout], [0, (await publicHalf(file)).concat('\n')]);
  assert.equal((await leasehold(['get', 'a/b', '--agent', 'bot'])).stdout, 's3cret');
});

test('agent add prints the next command and two clients’ configurations, which work from any directory', async () => {
  const [file, command] = [join(HOME, 'desk.pem'), join(ROOT, 'scripts/leasehold')];
  const { stderr } = await leasehold(['agent', 'add', 'desk', '--new-key', 'desk.pem']);
  const mcp = ['mcp', '--agent', 'desk', '--key-file', file, '--address', service.address];
  assert.equal(
    stderr,
    [
      `The private key is in ${file}. Use it with: leasehold --agent desk --key-file ${file}`,
      '',
      'Next: let it use a credential, such as openai/key:',
      `  ${command} policy put desk --principal agent:desk --resource openai/key --action use`,
      'Claude Code:',
      `  claude mcp add leasehold -- ${[command, ...mcp].join(' ')}`,
      'Codex, in ~/.codex/config.toml:',
      '  [mcp_servers.leasehold]',
      `  command = "${command}"`,
      `  args = [${mcp.map((word) => `"${word}"`).join(', ')}]`,
      '',
    ].join('\n'),
  );
  const bin = join(HOME, 'bin');
  mkdirSync(bin);
  symlinkSync(command, join(bin, 'leasehold'));
  const environment = { PATH: `${join(ROOT, 'node_modules/.bin')}:${bin}:${process.env['PATH']}` };
  const installed = await leasehold(['agent', 'add', 'other'], { environment });
  assert.match(installed.stderr, /^ {2}leasehold policy put other --principal agent:other /m);
  assert.ok(installed.stderr.includes(`  claude mcp add leasehold -- ${command} mcp --agent other --address `));
  assert.ok(installed.stderr.includes(`  command = "${command}"`));
  const flagged = await leasehold(['agent', 'add', 'third', '--address', service.address]);
  assert.ok(flagged.stderr.includes(` --resource openai/key --action use --address ${service.address}\n`));
});

/** The raw public key, as openssl prints it: the last 32 bytes of its DER. */
async function publicHalf(file: string): Promise<string> {
  const { stdout } = await promisify(execFile)('openssl', ['pkey', '-in', file, '-pubout', '-outform', 'DER'], {
    encoding: 'buffer',
  });
  return stdout.subarray(-32).toString('base64');
}

test('a rejected registration leaves no key file', async () => {
  const wrongToken = { LEASEHOLD_TOKEN: 'lha_0123456789abcdef' };
  assert.equal((await leasehold(['agent', 'add', 'nobody'], { environment: wrongToken })).code, 2);
  assert.equal(existsSync(keyFileOf('nobody')), false);
});

test('agent add registers a given public key, or one whose pair the server creates', async () => {
  assert.equal((await leasehold(['agent', 'add', 'one'])).code, 0);
  const { body } = await service.admin.get('/api/v1/agents/one');
  const input = `${body.data.public_key}\n`;
  const two = await leasehold(['agent', 'add', 'two', '--public-key', '-', '--field', 'public_key'], { input });
  assert.equal(two.stdout, input);
  const wrong = await leasehold(['agent', 'add', 'three', '--public-key', '-'], { input: 'no key' });
  assert.deepEqual([wrong.code, /--public-key: must be an Ed25519 key/.test(wrong.stderr)], [1, true]);
  assert.equal((await leasehold(['agent', 'add', 'four', '--service-key'])).code, 0);
  assert.ok(existsSync(join(service.dataDir, 'agents/four/private_key.pem')));
  const names = (await leasehold(['agent', 'list', '--field', 'name'])).stdout.split('\n');
  assert.deepEqual(
    ['one', 'two', 'three', 'four'].map((name) => names.includes(name)),
    [true, true, false, true],
  );
  assert.equal((await leasehold(['agent', 'delete', 'two', '--yes'])).code, 0);
  assert.equal((await leasehold(['agent', 'show', 'two'])).code, 2);
});

test('leases are listed, renewed and revoked, one by one or all of an agent', async () => {
  await put('leases/b');
  const get = (...flags: string[]) => leasehold(['get', 'leases/b', ...flags, '--field', 'lease_id']);
  const ids: string[] = [];
  for (let at = 0; at < 3; at++) ids.push((await get('--ttl', '1m30s')).stdout.trim());
  const [first = '', second = '', third = ''] = ids;
  const active = async () =>
    (await leasehold(['lease', 'list', '--path', 'leases/b', '--status', 'active', '--field', 'lease_id'])).stdout;
  assert.deepEqual((await active()).trim().split('\n').sort(), ids.toSorted());
  const { issued_at, expires_at } = JSON.parse((await leasehold(['lease', 'show', third, '-o', 'json'])).stdout);
  assert.equal(Date.parse(expires_at) - Date.parse(issued_at), 90_000);
  assert.equal((await leasehold(['lease', 'renew', first, '--field', 'status'])).stdout, 'active\n');
  assert.equal((await leasehold(['lease', 'revoke', first, second])).stderr, 'Revoked 2.\n');
  assert.equal(await active(), `${third}\n`);
  assert.equal((await leasehold(['lease', 'renew', first])).code, 2);
  const ended = await leasehold(['lease', 'revoke', first]);
  assert.equal(ended.stderr, `${first} has already ended (revoked).\nRevoked 0.\n`);
  const dry = await leasehold(['lease', 'revoke', '--agent-name', 'admin', '--dry-run']);
  assert.equal(dry.stderr, '1 active lease will end. Nothing was done.\n');
  assert.equal((await leasehold(['lease', 'revoke', '--path', 'leases/b', '--yes'])).stderr, 'Revoked 1.\n');
  assert.equal(await active(), '');
  for (const words of [[], [first, '--agent-name', 'admin']]) {
    assert.equal((await leasehold(['lease', 'revoke', ...words, '--yes'])).code, 1);
  }
});

test('audit list filters entries, audit verify checks them, and audit export writes them', async () => {
  await put('log/b');
  await leasehold(['get', 'log/c']);
  const filter = ['--result', 'not_found', '--since', '1h', '--limit', '1', '--field', 'resource'];
  assert.equal((await leasehold(['audit', 'list', ...filter])).stdout, 'log/c\n');
  const newest = (await leasehold(['audit', 'list', '--limit', '2', '--field', 'seq'])).stdout.split('\n').map(Number);
  const [count = 0, before = 0] = newest;
  assert.equal(before, count - 1);
  const verified = await leasehold(['audit', 'verify', '-o', 'json']);
  assert.deepEqual([verified.code, JSON.parse(verified.stdout).entries], [0, count]);
  const lines = (await leasehold(['audit', 'export'])).stdout.trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).seq),
    Array.from({ length: count }, (_, at) => at + 1),
  );
  const written = await leasehold(['audit', 'export', '--out', 'log.ndjson', '--head', 'head.txt']);
  assert.equal(written.code, 0, written.stderr);
  assert.match(written.stderr, new RegExp(`^Wrote ${count} entries to .*log\\.ndjson\\.\n$`));
  const file = join(HOME, 'log.ndjson');
  assert.equal(readFileSync(file, 'utf8'), `${lines.join('\n')}\n`);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.match(readFileSync(join(HOME, 'head.txt'), 'utf8'), /^leasehold-audit-head: \d+ \S+ \S+ \d+ \S+ \S+\n$/);
  const again = await leasehold(['audit', 'export', '--out', 'log.ndjson']);
  assert.deepEqual([again.code, /already exists/.test(again.stderr)], [1, true]);
  const other = await leasehold(['audit', 'export', '--out', 'other.ndjson', '--head', 'head.txt']);
  assert.deepEqual([other.code, /head\.txt already exists/.test(other.stderr)], [1, true]);
  assert.deepEqual([existsSync(join(HOME, 'other.ndjson')), existsSync(`${file}.unfinished`)], [false, false]);
});

test('audit tail prints earlier entries, then each new entry once, and ends successfully after Ctrl-C', async () => {
  for (const path of ['tail/1', 'tail/2', 'tail/3']) await put(path);
  const aborting = new AbortController();
  let seen = '';
  let check = (): void => undefined;
  const onStdout = (text: string): void => {
    seen += text;
    check();
  };
  const lines = () => seen.slice(0, seen.lastIndexOf('\n') + 1).split('\n');
  const resources = () => lines().flatMap((line) => (line === '' ? [] : [JSON.parse(line).resource]));
  const untilListed = (count: number) =>
    new Promise<void>((resolve) => {
      check = () => {
        if (resources().length >= count) resolve();
      };
      check();
    });
  const tail = leasehold(['audit', 'tail', '--last', '2', '-o', 'json'], { signal: aborting.signal, onStdout });
  await untilListed(2);
  for (const path of ['tail/4', 'tail/5']) await put(path);
  await untilListed(4);
  await put('tail/6');
  await untilListed(5);
  assert.deepEqual(
    resources(),
    [2, 3, 4, 5, 6].map((at) => `tail/${at}`),
  );
  aborting.abort(new Cancelled());
  assert.equal((await tail).code, 0);
});

test('a server on a Unix socket accepts every command', async (t) => {
  const home = newHome(t);
  const socket = join(HOME, 's');
  const onSocket = await startTestService(t, ['--listen', `unix:${socket}`]);
  const atSocket = { LEASEHOLD_DATA_DIR: onSocket.dataDir };
  assert.equal((await home.leasehold(['put', 'a/b', '-'], { environment: atSocket, input: 's3cret' })).code, 0);
  assert.equal((await home.leasehold(['get', 'a/b'], { environment: atSocket })).stdout, 's3cret');
  assert.equal((await home.leasehold(['delete', 'a/b', '--yes'], { environment: atSocket })).code, 0);
  const { stdout } = await home.leasehold(['whoami', '-o', 'json'], { environment: atSocket });
  assert.equal(JSON.parse(stdout).address, `unix:${socket}`);
});

test('the programs for a database take flags of their own', async (t) => {
  const home = newHome(t);
  assert.match((await home.leasehold(['schema', '--print'])).stdout, /CREATE SCHEMA/);
  assert.match((await home.leasehold(['restore', '--data-dir', 'nowhere'])).stderr, /^leasehold: FILE is missing/);
});

test('audit checkpoint --out writes a new file completely, replaces none, and leaves none without a response', async () => {
  const out = (name: string, ...more: string[]) => leasehold(['audit', 'checkpoint', '--out', name, ...more]);
  const read = (name: string) => readFileSync(join(HOME, name), 'utf8');
  assert.deepEqual((await out('kept.txt')).code, 0);
  assert.match(read('kept.txt'), /^leasehold\/\S+\n\d+\n/);
  assert.equal((await out('log.pub', '--public-key')).code, 0);
  assert.match(read('log.pub'), /^leasehold\/\S+\+\S+\n$/);
  const [kept, files] = [read('kept.txt'), readdirSync(HOME)];
  assert.match((await out('kept.txt')).stderr, /kept\.txt already exists\.\n.*A file is never replaced/);
  assert.equal((await out('other.txt', '--address', 'http://127.0.0.1:1')).code === 0, false);
  assert.match((await out('missing/other.txt')).stderr, /cannot be written \(ENOENT\)/);
  assert.equal(read('kept.txt'), kept);
  assert.deepEqual(readdirSync(HOME), files, 'nothing else is left');
});

test('audit checkpoint prints a note that audit verify accepts later, and rejects if the log does not extend it', async () => {
  const note = (await leasehold(['audit', 'checkpoint'])).stdout;
  assert.match(note, /^leasehold\/[A-Za-z0-9_-]{22}\n\d+\n\S{44}\n\n— leasehold\/\S+ \S+\n$/);
  writeFileSync(join(HOME, 'kept.txt'), note);
  await put('a/b');
  const receipt = (await leasehold(['audit', 'receipt', '2'])).stdout;
  assert.match(receipt, /^c2sp\.org\/tlog-proof@v1\nextra \S{44}\nindex 1\n/);
  const key = (await leasehold(['audit', 'checkpoint', '--public-key'])).stdout;
  assert.equal(key.startsWith(`${note.split('\n')[0]}+`), true);
  const verify = (file: string) => leasehold(['audit', 'verify', '--checkpoint', file, '-o', 'json']);
  const extended = await verify('kept.txt');
  assert.deepEqual([extended.code, JSON.parse(extended.stdout).extends_checkpoint], [0, true], extended.stderr);
  const [origin, size = '', root, ...rest] = note.split('\n');
  const variants: readonly (readonly [string, RegExp])[] = [
    [[origin, '9999', root, ...rest].join('\n'), /the audit log was truncated/],
    [[origin, size, `${'A'.repeat(43)}=`, ...rest].join('\n'), /the audit log was replaced/],
    [['leasehold/other', size, root, ...rest].join('\n'), /the checkpoint is of another one/],
  ];
  for (const [text, problem] of variants) {
    writeFileSync(join(HOME, 'other.txt'), text);
    const found = await verify('other.txt');
    assert.deepEqual([found.code, JSON.parse(found.stdout).extends_checkpoint], [3, false]);
    assert.match(found.stderr, problem);
  }
  writeFileSync(join(HOME, 'other.txt'), 'no checkpoint');
  assert.equal((await verify('other.txt')).code, 1);
});

test('exposure prints a row for each agent and version; panic asks, ends all that the agent has, and prints what to rotate', async () => {
  for (const path of ['seen/1', 'seen/2']) await put(path);
  const agent = await service.agent('seer', { 'seen/*': ['retrieve'] });
  for (const path of ['seen/1', 'seen/2', 'seen/1'])
    assert.equal((await agent.get(`/api/v1/credentials/${path}`)).status, 200);
  const byPath = await leasehold(['exposure', 'seen/1', '-o', 'json']);
  assert.equal(byPath.code, 0, byPath.stderr);
  const [row] = JSON.parse(byPath.stdout);
  const { path, version, agent_name, exposure, times, live, deleted } = row;
  assert.deepEqual(
    [path, version, agent_name, exposure, times, live, deleted],
    ['seen/1', 1, 'seer', 'seen', 2, true, false],
  );
  const byAgent = await leasehold(['exposure', '--agent-name', 'seer', '--field', 'path']);
  assert.equal(byAgent.stdout, 'seen/1\nseen/2\n');
  assert.match((await leasehold(['exposure', '--agent-name', 'nobody'])).stderr, /Nothing was seen or used/);
  for (const both of [['exposure'], ['exposure', 'seen/1', '--agent-name', 'seer']]) {
    const { code, stderr } = await leasehold(both);
    assert.equal(code, 1);
    assert.match(stderr, /give either PATH or --agent-name/);
  }
  const unconfirmed = await leasehold(['panic', '--agent-name', 'seer']);
  assert.equal(unconfirmed.code, 1);
  assert.match(unconfirmed.stderr, /--yes/);
  const dry = await leasehold(['panic', '--agent-name', 'seer', '--dry-run']);
  assert.match(
    dry.stderr,
    /^3 active leases and every session and brokered request of seer will end\. Nothing was done\./,
  );
  assert.equal((await agent.get('/api/v1/credentials/seen/1')).status, 200);
  await leasehold(['put', 'seen/2', '-'], { input: 'a new s3cret' });
  const ended = await leasehold(['panic', '--agent-name', 'seer', '--yes', '-o', 'json']);
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stderr, /^Revoked 4 leases, ended 1 session, aborted 0 requests\.\n$/);
  assert.deepEqual(JSON.parse(ended.stdout), [
    { path: 'seen/1', version: 1, current: true, advice: 'rotate' },
    { path: 'seen/2', version: 1, current: false, advice: 'replaced' },
  ]);
  assert.equal((await agent.get('/api/v1/credentials/seen/1')).status, 401);
});
