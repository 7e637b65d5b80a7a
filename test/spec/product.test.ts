// The product: start, stop, and the data directory. SOURCE: docs/api.md, "Agents" and "The server"; docs/decisions.md,
// "The process".

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { createClient } from '../kit/client.ts';
import { dumpDatabase, readDatabaseBytes } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { runProgram, startProcess } from '../kit/process.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const read = (...parts: string[]) => readFileSync(join(...parts), 'utf8');
const eventsOf = async ({ admin }: TestService): Promise<string[]> =>
  (await admin.get('/api/v1/audit?order=asc&limit=1000')).body.data.map(
    ({ event_type }: { event_type: string }) => event_type,
  );

suite('the service as a process', () => {
  const directory = join(temporaryDirectory({ after }), 'data');
  const first = startProcess({ after }, directory);

  test('the start prints the address, the data directory and the token, and all files are private', async () => {
    const service = await first;
    for (const shown of [service.address, directory, service.adminToken]) {
      assert.equal(service.output().includes(shown), true, shown);
    }
    assert.match(service.adminToken, /^lha_[A-Za-z0-9_-]{43}$/);
    assert.equal(read(directory, 'daemon.token').trim(), service.adminToken);
    await createClient(service.address, service.adminToken).post('/api/v1/agents', { name: 'ci' });
    const found = globSync('**/*', { cwd: directory, withFileTypes: true });
    assert.equal(found.length > 6, true);
    for (const entry of found) {
      const path = join(entry.parentPath, entry.name);
      assert.equal(statSync(path).mode & 0o777, entry.isDirectory() ? 0o700 : 0o600, path);
    }
    assert.equal(statSync(directory).mode & 0o777, 0o700);
  });

  test('a second service on the same data directory changes nothing and exits non-zero', async () => {
    const { address, adminToken } = await first;
    const { code, output } = await runProgram(['--data-dir', directory, '--listen', '127.0.0.1:0']);
    assert.notEqual(code, 0);
    assert.match(output, /^leasehold: Another Leasehold runs on [^\n]*\n$/);
    assert.equal(read(directory, 'daemon.token').trim(), adminToken);
    assert.equal((await createClient(address, adminToken).get('/api/v1/agents')).status, 200);
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${signal} completes requests in flight, waits for nothing else, and exits 0`, async (t) => {
      const service = signal === 'SIGTERM' ? await first : await startProcess(t, directory);
      const { hostname, port } = new URL(service.address);
      const body = JSON.stringify({ path: `in-flight/${signal}`, value: 'v' });
      const socket = connect(Number(port), hostname);
      let answer = '';
      socket.on('data', (chunk) => (answer += chunk));
      const head = ['POST /api/v1/credentials HTTP/1.1', 'Host: localhost', 'Content-Type: application/json'];
      head.push(`Authorization: Bearer ${service.adminToken}`, `Content-Length: ${body.length}`);
      head.push('Expect: 100-continue', '', body.slice(0, 5));
      socket.write(head.join('\r\n'));
      // The service has begun to read the body.
      await until(() => answer.endsWith('\r\n\r\n'));
      assert.match(answer, /^HTTP\/1\.1 100 /);
      answer = '';
      const ended = service.end(signal);
      await wait(200);
      socket.write(body.slice(5));
      assert.equal(await ended, 0);
      assert.match(answer, /^HTTP\/1\.1 201 /);
    });
  }

  test('requests in flight were stored, and starts and stops are recorded', async (t) => {
    const service = await startTestService(t, [], directory);
    for (const signal of ['SIGTERM', 'SIGINT']) {
      assert.equal((await service.admin.get(`/api/v1/credentials/in-flight/${signal}`)).status, 200);
    }
    const events = await eventsOf(service);
    const expected = ['start', 'stop', 'start', 'stop', 'start'].map((word) => `service.${word}`);
    assert.deepEqual(
      events.filter((event) => event.startsWith('service.')),
      expected,
    );
    assert.equal(events[events.indexOf('service.stop') - 1], 'credential.store');
  });
});

suite('the data directory', () => {
  test('each start writes a new token to daemon.token and keeps root.key, 32 bytes in base64', async (t) => {
    const directory = join(temporaryDirectory(t), 'data');
    const first = await startTestService(t, [], directory);
    const rootKey = read(directory, 'root.key');
    assert.equal(Buffer.from(rootKey, 'base64').length, 32);
    assert.equal(`${Buffer.from(rootKey, 'base64').toString('base64')}\n`, rootKey);
    assert.equal(read(directory, 'daemon.token').trim(), first.adminToken);
    await first.stop();
    const second = await startTestService(t, [], directory);
    assert.notEqual(second.adminToken, first.adminToken);
    assert.equal(read(directory, 'daemon.token').trim(), second.adminToken);
    assert.equal(read(directory, 'root.key'), rootKey);
  });

  test('--admin-token-file uses the given token and writes none', async (t) => {
    const directory = temporaryDirectory(t);
    const token = `given-${'0123456789abcdef'.repeat(4)}`;
    writeFileSync(join(directory, 'token'), `${token}\n`, { mode: 0o600 });
    const service = await startTestService(
      t,
      ['--admin-token-file', join(directory, 'token')],
      join(directory, 'data'),
    );
    assert.equal((await service.as(token).get('/api/v1/agents')).status, 200);
    assert.equal(existsSync(join(directory, 'data', 'daemon.token')), false);
  });

  test('tokens are stored as hashes, and values only encrypted', async (t) => {
    const service = await startTestService(t);
    const agent = await service.agent('ci', { '*': ['retrieve'] });
    await service.admin.post('/api/v1/credentials', { path: 'a', value: 'a-value-in-the-clear' });
    assert.equal((await agent.get('/api/v1/credentials/a')).status, 200);
    const stored = await readDatabaseBytes(service.dataDir);
    assert.equal(stored.includes('credential.retrieve'), true, 'nothing was looked at');
    for (const secret of ['a-value-in-the-clear', agent.token, service.adminToken, agent.token.slice(4)]) {
      assert.equal(stored.includes(secret), false);
    }
  });

  test('without its root.key an existing vault is not opened: one error line, a non-zero exit, no new key', async (t) => {
    const directory = join(temporaryDirectory(t), 'data');
    const service = await startTestService(t, [], directory);
    await service.stop();
    const keyFile = join(directory, 'root.key');
    renameSync(keyFile, `${keyFile}.away`);
    const { code, output } = await runProgram(['--data-dir', directory, '--listen', '127.0.0.1:0']);
    assert.notEqual(code, 0);
    assert.match(output, /^leasehold: The root key is missing: [^\n]*\n$/);
    assert.equal(existsSync(keyFile), false);
  });

  test('a wrong or invalid root.key is rejected and nothing changes', async (t) => {
    const directory = join(temporaryDirectory(t), 'data');
    const service = await startTestService(t, [], directory);
    await service.stop();
    const [right, database] = [read(directory, 'root.key'), await dumpDatabase(directory)];
    for (const wrong of [`${Buffer.alloc(32, 7).toString('base64')}\n`, 'not a key\n', '']) {
      writeFileSync(join(directory, 'root.key'), wrong);
      await assert.rejects(startTestService(t, [], directory), /root key/);
      assert.equal(read(directory, 'root.key'), wrong);
    }
    assert.deepEqual(await dumpDatabase(directory), database);
    writeFileSync(join(directory, 'root.key'), right);
    assert.deepEqual(await eventsOf(await startTestService(t, [], directory)), [
      'service.start',
      'service.stop',
      'service.start',
    ]);
  });

  test('--root-key-file sets the key’s path; the key is created only with a new vault', async (t) => {
    const directory = temporaryDirectory(t);
    const [keyFile, dataDir] = [join(directory, 'elsewhere.key'), join(directory, 'data')];
    const flags = ['--root-key-file', keyFile];
    const first = await startTestService(t, flags, dataDir);
    await first.admin.post('/api/v1/credentials', { path: 'a', value: 'v' });
    await first.stop();
    assert.equal(Buffer.from(readFileSync(keyFile, 'utf8'), 'base64').length, 32);
    assert.equal(existsSync(join(dataDir, 'root.key')), false);
    const second = await startTestService(t, flags, dataDir);
    assert.equal((await second.admin.get('/api/v1/credentials/a')).body.data.value, 'v');
    await second.stop();
    rmSync(keyFile);
    await assert.rejects(startTestService(t, flags, dataDir), /root key is missing/);
    assert.equal(existsSync(keyFile), false);
  });
});
