// The output of the program at start and stop, client addresses behind a proxy, and the audit key.
// SOURCE: docs/decisions.md, "The process", "Agents and sessions" and "The audit log".

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ROOT } from '../conventions/source.ts';
import { createClient } from '../kit/client.ts';
import { COMPILED } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { runCommand, runProgram, startProcess, storeVariables } from '../kit/process.ts';
import { openPseudoTerminal } from '../kit/pseudo-terminal.ts';
import { startTestService } from '../kit/service.ts';
import { databaseUrlOf } from '../kit/stores.ts';
import { copyVault, photograph, photographRunning } from './vaults.ts';

test('at startup the server prints a few lines with the token and the next commands, and logs nothing', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  const service = await startProcess(t, dataDir);
  const said = service.output();
  const lines = said.trimEnd().split('\n');
  assert.equal(lines.length <= 16, true, said);
  assert.equal(
    lines.every((line) => line.length <= 160),
    true,
    said,
  );
  for (const part of [
    service.address,
    dataDir,
    service.adminToken,
    `${ROOT}/scripts/leasehold put openai/key --service openai`,
  ])
    assert.equal(said.split(part).length > 1, true, part);
  const admin = createClient(service.address, service.adminToken);
  assert.equal((await admin.post('/api/v1/credentials', { path: 'a', value: 'v' })).status, 201);
  assert.equal((await admin.get('/api/v1/credentials/a')).status, 200);
  assert.equal(service.output(), said);
  assert.equal(await service.end('SIGTERM'), 0);
  assert.equal(service.output().slice(said.length).trim().split('\n').length, 1);
});

test('a terminal shows the token', async (t) => {
  const { terminal, token } = await startOnTerminal(t, []);
  assert.equal(terminal.screen().split(token).length, 2);
});

test('with --print-token=never or its variable the file is named, also on a terminal', async (t) => {
  const { terminal, token, dataDir } = await startOnTerminal(t, ['--print-token=never']);
  assert.equal(terminal.screen().includes(token), false);
  const service = await startProcess(t, join(temporaryDirectory(t), 'data'), [], {
    environment: { LEASEHOLD_PRINT_TOKEN: 'never' },
  });
  assert.equal(service.output().includes(service.adminToken), false);
  assert.ok(terminal.screen().includes(join(dataDir, 'daemon.token')));
  const { code, output } = await runProgram(['--data-dir', dataDir, '--print-token=no']);
  assert.deepEqual([code, output.trim()], [2, 'leasehold: --print-token: must be one of always, never.']);
});

test('a token that the operator supplied is not printed', async (t) => {
  const file = join(temporaryDirectory(t), 'token');
  writeFileSync(file, 'a'.repeat(40), { mode: 0o600 });
  const service = await startProcess(t, join(temporaryDirectory(t), 'data'), ['--admin-token-file', file]);
  assert.equal(service.output().includes('a'.repeat(40)), false);
});

test('the image, whose output is kept, prints no token', () => {
  assert.match(readFileSync(join(ROOT, 'deploy/Containerfile'), 'utf8'), /^ENV LEASEHOLD_PRINT_TOKEN=never /m);
});

/** Starts the program on a terminal, and stops it when its output is complete. */
async function startOnTerminal(scope: TestContext, flags: readonly string[]) {
  const directory = temporaryDirectory(scope);
  const dataDir = join(directory, 'data');
  const words = ['--data-dir', dataDir, '--listen', '127.0.0.1:0', ...flags];
  const environment = { HOME: directory, ...COMPILED, ...(await storeVariables(dataDir, [])) };
  const command = [process.execPath, join(ROOT, 'src/bin/server.ts'), ...words];
  const terminal = openPseudoTerminal(scope, command, { cwd: directory, environment, columns: 200 });
  await terminal.shows(/Ctrl-C stops/);
  const token = readFileSync(join(dataDir, 'daemon.token'), 'utf8').trim();
  terminal.type('\u0003');
  assert.equal((await terminal.ended).exitCode, 0);
  return { terminal, token, dataDir };
}

test('the printed data directory is quoted for a shell, whatever its name', async (t) => {
  const dataDir = join(temporaryDirectory(t), `a "$HOME" \`ls\` it's`);
  const service = await startProcess(t, dataDir);
  const [, line = ''] = /^ {2}(export LEASEHOLD_DATA_DIR=.*)$/m.exec(service.output()) ?? [];
  const printed = execFileSync('sh', ['-c', `${line}\ncat "$LEASEHOLD_DATA_DIR/daemon.token"`], { encoding: 'utf8' });
  assert.equal(printed.trim(), service.adminToken);
});

/** The address that the log records for a request with these values of X-Forwarded-For. */
async function recordedFor(flags: readonly string[], values: readonly string[]): Promise<(string | null)[]> {
  const cleanUps: (() => unknown)[] = [];
  const scope = { after: (cleanUp: () => unknown) => void cleanUps.unshift(cleanUp) };
  try {
    const { admin } = await startTestService(scope, flags);
    for (const value of values) await admin.call('GET', '/api/v1/credentials', undefined, { 'x-forwarded-for': value });
    const { data } = (await admin.get('/api/v1/audit?event_type=credential.list&order=asc')).body;
    return data.map(({ remote_addr }: { remote_addr: string | null }) => remote_addr);
  } finally {
    for (const cleanUp of cleanUps) await cleanUp();
  }
}

test('the address comes from X-Forwarded-For only behind a trusted proxy, and is the last one that is not a trusted proxy', async () => {
  const chains = [
    '203.0.113.9',
    '198.51.100.1, 203.0.113.9',
    '2001:db8::1',
    '203.0.113.9, 10.1.2.3',
    '::ffff:203.0.113.9',
  ];
  assert.deepEqual(
    await recordedFor([], chains),
    chains.map(() => '127.0.0.1'),
  );
  assert.deepEqual(
    await recordedFor(['--trusted-proxy', '192.0.2.1'], chains),
    chains.map(() => '127.0.0.1'),
  );
  assert.deepEqual(await recordedFor(['--trusted-proxy', '127.0.0.1,10.0.0.0/8'], chains), [
    ...['203.0.113.9', '203.0.113.9', '2001:db8::1', '203.0.113.9', '203.0.113.9'],
  ]);
});

test('a malformed header is never recorded as an address, even behind a trusted proxy', async () => {
  const nonsense = [
    'unknown',
    '_hidden',
    'localhost',
    "'; DROP TABLE audit_entries; --",
    '<script>',
    'a'.repeat(4000),
    '1.2.3.4:80',
    ',,,',
    '[::1]',
  ];
  const recorded = await recordedFor(['--trusted-proxy', '127.0.0.1'], nonsense);
  assert.equal(recorded.length, nonsense.length);
  for (const [index, address] of recorded.entries())
    assert.notEqual(isIP(address ?? ''), 0, `${nonsense[index]}: ${address}`);
});

const auditKeyCommand = (...flags: string[]) => runCommand(['audit', 'key', ...flags]);

/** The flags that name the vault of a data directory. */
async function vaultFlags(dataDir: string): Promise<string[]> {
  const url = await databaseUrlOf(dataDir);
  return ['--data-dir', dataDir, ...(url === null ? [] : ['--database', url])];
}

test('audit key prints the key of the entry MACs, also while the service runs, and changes no file', async (t) => {
  const dataDir = await copyVault(t);
  const service = await startProcess(t, dataDir);
  const before = photographRunning(dataDir);
  const { code, output } = await auditKeyCommand(...(await vaultFlags(dataDir)));
  assert.equal(code, 0);
  assert.match(output, /^[A-Za-z0-9+/]{43}=\n$/);
  assert.deepEqual(photographRunning(dataDir), before);

  assert.notEqual(output.trim(), readFileSync(join(dataDir, 'root.key'), 'utf8').trim());
  const answer = await createClient(service.address, service.adminToken).get('/api/v1/audit/export');
  const [seq, hmac, mac, epoch, tree, control] = answer.headers.get('leasehold-audit-head')?.split(' ') ?? [];
  const fields = [Number(seq), hmac, Number(epoch), tree, control === '-' ? null : control];
  const sealed = JSON.stringify(['leasehold-head-v2', ...fields]);
  assert.equal(createHmac('sha256', Buffer.from(output, 'base64')).update(sealed).digest('base64'), mac);
});

test('audit key creates neither a key nor a directory: one line and 1', async (t) => {
  const [dataDir, directory] = [await copyVault(t), temporaryDirectory(t)];
  const keyFile = join(directory, 'key');
  renameSync(join(dataDir, 'root.key'), keyFile);
  const before = photograph(dataDir);
  const vault = await vaultFlags(dataDir);
  const [missing, nowhere, elsewhere] = await Promise.all([
    auditKeyCommand(...vault),
    auditKeyCommand('--data-dir', join(directory, 'none')),
    auditKeyCommand(...vault, '--root-key-file', keyFile),
  ]);
  assert.match(missing.output, /^leasehold: The root key is missing: [^\n]+\n$/);
  assert.match(nowhere.output, /^leasehold: [^\n]*none contains no vault[^\n]*\n$/);
  assert.deepEqual([missing.code, nowhere.code], [1, 1]);
  assert.match(elsewhere.output, /^[A-Za-z0-9+/]{43}=\n$/);
  assert.equal(elsewhere.code, 0);
  assert.equal(existsSync(join(directory, 'none')), false);
  assert.deepEqual(photograph(dataDir), before);

  writeFileSync(keyFile, 'no key');
  const malformed = await auditKeyCommand(...vault, '--root-key-file', keyFile);
  assert.match(malformed.output, /^leasehold: [^\n]* is not a root key[^\n]*\n$/);
  rmSync(keyFile);
});
