// One service a data directory, one listener an address, and nobody is let in where others can listen.
// SOURCE: decisions, "The product".

import assert from 'node:assert/strict';
import dns from 'node:dns';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { StartupError } from '../../src/platform/errors.ts';
import { createClient } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { runProgram, startProcess } from '../kit/process.ts';
import { sendRaw, toResponse } from '../kit/raw.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { copyVault, photographRunning } from './vaults.ts';

/** Claims a reason not to start, of one line. */
const isOneLine = (line: RegExp) => (error: unknown) =>
  error instanceof StartupError && line.test(error.message) && !error.message.includes('\n');

test('a second service on the data directory is refused, whatever its flags, and changes nothing', async (t) => {
  const dataDir = await copyVault(t);
  // A process of its own: the lock of this one would end with the first look at the file.
  const { address, adminToken } = await startProcess(t, dataDir);
  const before = photographRunning(dataDir);
  const others = await Promise.all([
    runProgram(['--data-dir', dataDir, '--listen', '127.0.0.1:0', '--accept-clock']),
    runProgram(['--data-dir', join(dataDir, 'agents', '..'), '--listen', new URL(address).host]),
  ]);
  for (const { code, output } of others) {
    assert.match(output, /^leasehold: Another Leasehold runs on [^\n]*\. Stop it first[^\n]*\n$/);
    assert.equal(code, 1);
  }
  assert.deepEqual(photographRunning(dataDir), before);
  assert.equal((await createClient(address, adminToken).get('/api/v1/audit/verify')).body.data.valid, true);
});

test('the data directory is free again after a kill', async (t) => {
  const dataDir = await copyVault(t);
  const killed = await startProcess(t, dataDir);
  await killed.end('SIGKILL');
  const { admin } = await startTestService(t, [], dataDir);
  assert.equal((await admin.get('/api/v1/credentials/a/b')).body.data.value, 'kept');
});

test('a port in use is one clear line; nothing of the one who has it changes, and no token is written', async (t) => {
  const [theirs, ours] = [await copyVault(t), await copyVault(t)];
  const { address } = await startTestService(t, [], theirs);
  const before = photographRunning(theirs);
  const { host } = new URL(address);
  const { code, output } = await runProgram(['--data-dir', ours, '--listen', host]);
  assert.equal(output, `leasehold: ${host} is in use already. Give another --listen.\n`);
  assert.equal(code, 1);
  assert.deepEqual(photographRunning(theirs), before);
  assert.equal(existsSync(join(ours, 'daemon.token')), false);
  const { admin } = await startTestService(t, [], ours);
  const starts = await admin.get('/api/v1/audit?event_type=service.start');
  assert.equal(starts.body.meta.total, 2);
});

test('an address that is not here is one clear line', async (t) => {
  const starting = startTestService(t, ['--listen', '192.0.2.77:0', '--insecure-http']);
  await assert.rejects(starting, isOneLine(/^Can't listen on 192\.0\.2\.77:0: /));
});

test('every form of --listen on loopback is listened on, and printed as a client writes it', async (t) => {
  const forms = {
    '127.0.0.1:0': '127.0.0.1',
    '127.0.0.9:0': '127.0.0.9',
    'localhost:0': 'localhost',
    '[::1]:0': '[::1]',
  };
  for (const [form, host] of Object.entries(forms)) {
    const { address, anonymous, stop } = await startTestService(t, ['--listen', form]);
    assert.match(address, new RegExp(`^http://${host.replaceAll(/[.[\]]/g, '\\$&')}:\\d+$`));
    assert.equal((await anonymous.get('/api/v1/health')).status, 200, form);
    await stop();
  }
});

test('where others can listen every Host is fine, and only with --insecure-http is it plain', async (t) => {
  const { address } = await startTestService(t, ['--listen', '0.0.0.0:0', '--insecure-http']);
  const { port } = new URL(address);
  const status = await new Promise((resolve, reject) => {
    const asked = request({ port, path: '/api/v1/health', headers: { host: 'vault.example' } }, (response) =>
      resolve(response.resume().statusCode),
    );
    asked.on('error', reject).end();
  });
  assert.equal(status, 200);
});

/** Health over a Unix socket. */
function healthOver(socketPath: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path: '/api/v1/health', headers: { host: 'localhost' } }, (response) =>
      resolve(response.resume().statusCode),
    );
    asked.on('error', reject).end();
  });
}

test('a socket file that a crash left is replaced, and goes away with the service', async (t) => {
  const [dataDir, path] = [await copyVault(t), join(temporaryDirectory(t), 's')];
  const flags = ['--listen', `unix:${path}`];
  const killed = await startProcess(t, dataDir, flags);
  assert.equal(killed.address, `unix:${path}`);
  assert.equal(await healthOver(path), 200);
  await killed.end('SIGKILL');
  assert.equal(statSync(path).isSocket(), true);
  const second = await startTestService(t, flags, dataDir);
  assert.equal(await healthOver(path), 200);
  await second.stop();
  assert.equal(existsSync(path), false);
});

test('a socket that somebody listens on is not taken away, and a file is no socket', async (t) => {
  const folder = temporaryDirectory(t);
  const path = join(folder, 's');
  const theirs = createServer((socket) => socket.end()).listen(path);
  t.after(() => theirs.close());
  await new Promise((resolve) => theirs.once('listening', resolve));
  await assert.rejects(
    startTestService(t, ['--listen', `unix:${path}`]),
    isOneLine(/is in use already\. Give another --listen\.$/),
  );
  assert.equal(theirs.listening && existsSync(path), true);
  writeFileSync(join(folder, 'file'), 'precious');
  await assert.rejects(startTestService(t, ['--listen', `unix:${join(folder, 'file')}`]), isOneLine(/file/));
  assert.equal(readFileSync(join(folder, 'file'), 'utf8'), 'precious');
});

test('a localhost that has two addresses is held to the same rules on both, or listened on at one', async (t) => {
  // Whether it has two is the machine's affair; here it has.
  const both = [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ];
  const lookup = (name: string, _options: unknown, callback: (error: null, found: typeof both) => void): void =>
    callback(null, name === 'localhost' ? both : both.filter(({ address }) => address === name));
  const mocked = t.mock.method(dns, 'lookup', lookup);
  const { address } = await startTestService(t, ['--listen', 'localhost:0']);
  mocked.mock.restore();
  const { port } = new URL(address);
  const answers = await Promise.all(
    ['127.0.0.1', '[::1]'].map((host) => sendRaw(`http://${host}:${port}`, 'no request\r\n\r\n')),
  );
  for (const answer of answers) if (answer.head !== '') assertRejected(toResponse(answer), 'INVALID_REQUEST');
  assert.notEqual(answers[0]?.status, 0);
});
