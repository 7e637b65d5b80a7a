// Where the server listens: one listener per address, on loopback on both of its addresses, and on Unix sockets.
// SOURCE: docs/decisions.md, "The process".

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, linkSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { CALLER_TIMEOUTS, setTimeouts } from '../../src/http/connections.ts';
import { StartupError } from '../../src/platform/errors.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { findPort } from '../kit/port.ts';
import { sendRaw, toResponse } from '../kit/raw.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { copyVault } from './vaults.ts';

/** Matches a StartupError of one line. */
const isOneLine = (line: RegExp) => (error: unknown) =>
  error instanceof StartupError && line.test(error.message) && !error.message.includes('\n');

test('a port in use gives one line, and no token is written', async (t) => {
  const [theirs, ours] = [await copyVault(t), await copyVault(t)];
  const { address } = await startTestService(t, [], theirs);
  const { host } = new URL(address);
  await assert.rejects(startTestService(t, ['--listen', host], ours), {
    message: `${host} is already in use. Give another --listen.`,
  });
  assert.equal(existsSync(join(ours, 'daemon.token')), false);
  const { admin } = await startTestService(t, [], ours);
  const starts = await admin.get('/api/v1/audit?event_type=service.start');
  assert.equal(starts.body.meta.total, 2);
});

test('an address of another machine gives one line', async (t) => {
  const starting = startTestService(t, ['--listen', '192.0.2.77:0', '--insecure-http']);
  await assert.rejects(starting, isOneLine(/^Cannot listen on 192\.0\.2\.77:0: /));
});

test('a public address accepts every Host, and plain HTTP only with --insecure-http', async (t) => {
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

/** The health check over a Unix socket. */
function healthOver(socketPath: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path: '/api/v1/health', headers: { host: 'localhost' } }, (response) =>
      resolve(response.resume().statusCode),
    );
    asked.on('error', reject).end();
  });
}

test('a stale socket file is replaced, and deleted when the server stops', async (t) => {
  const [path, first] = ['s', 'first'].map((name) => join(temporaryDirectory(t), name));
  assert.ok(path && first);
  const killed = createServer().listen(first);
  await once(killed, 'listening');
  // Closing deletes only the first name, so the other one is the file of a killed server.
  linkSync(first, path);
  await new Promise((resolve) => killed.close(resolve));
  assert.equal(statSync(path).isSocket(), true);
  const { address, stop } = await startTestService(t, ['--listen', `unix:${path}`]);
  assert.equal(address, `unix:${path}`);
  assert.equal(await healthOver(path), 200);
  await stop();
  assert.equal(existsSync(path), false);
});

test('a socket in use and a regular file are not replaced', async (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, 's');
  const theirs = createServer((socket) => socket.end()).listen(path);
  t.after(() => theirs.close());
  await new Promise((resolve) => theirs.once('listening', resolve));
  await assert.rejects(
    startTestService(t, ['--listen', `unix:${path}`]),
    isOneLine(/is already in use\. Give another --listen\.$/),
  );
  assert.equal(theirs.listening && existsSync(path), true);
  writeFileSync(join(directory, 'file'), 'precious');
  await assert.rejects(startTestService(t, ['--listen', `unix:${join(directory, 'file')}`]), isOneLine(/file/));
  assert.equal(readFileSync(join(directory, 'file'), 'utf8'), 'precious');
});

test('a server on loopback has its port on both addresses, with the same rules, until it stops', async (t) => {
  // The name is not printed: it may lead a command to another address.
  const forms = { 'localhost:0': '127.0.0.1', '127.0.0.1:0': '127.0.0.1', '[::1]:0': '[::1]' };
  for (const [form, printed] of Object.entries(forms)) {
    const { address, stop } = await startTestService(t, ['--listen', form]);
    const { hostname, port } = new URL(address);
    assert.equal(hostname, printed);
    for (const host of ['127.0.0.1', '[::1]']) {
      const answer = await sendRaw(`http://${host}:${port}`, 'no request\r\n\r\n');
      assertRejected(toResponse(answer), 'INVALID_REQUEST');
      assert.equal(await takePort(t, host, Number(port)), 'EADDRINUSE', `${form}: ${host}`);
      const { status } = await fetch(`http://${host}:${port}/api/v1/health`);
      assert.equal(status, 200);
    }
    await stop();
    for (const host of ['127.0.0.1', '[::1]']) assert.equal(await takePort(t, host, Number(port)), null, form);
  }
  const { address, anonymous } = await startTestService(t, ['--listen', '127.0.0.9:0']);
  assert.match(address, /^http:\/\/127\.0\.0\.9:/);
  assert.equal((await anonymous.get('/api/v1/health')).status, 200);
});

test('a server does not start where another program has its port on the other loopback address', async (t) => {
  for (const [host, other] of [['127.0.0.1', '[::1]'] as const, ['[::1]', '127.0.0.1'] as const]) {
    const port = await findPort();
    assert.equal(await takePort(t, other, port), null);
    const line = `${other}:${port} is already in use by another program`;
    await assert.rejects(startTestService(t, ['--listen', `${host}:${port}`]), (error: Error) =>
      error.message.startsWith(line),
    );
  }
});

/** Resolves to the code of the failure; null if the port was free. */
function takePort(t: TestContext, host: string, port: number): Promise<string | null> {
  const server = createServer();
  t.after(() => server.close());
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    server.listen(port, host.replaceAll(/[[\]]/g, ''), () => resolve(null));
  });
}

test('a connection that makes no progress is closed', { timeout: 60_000 }, async (t) => {
  const server = createHttpServer((_request, response) => void response.write('the beginning of a response'));
  setTimeouts(server, { ...CALLER_TIMEOUTS, silenceMs: 200 });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const socket = connect(address.port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  // The server closes it; the client reads what was sent.
  await once(socket.resume(), 'close');
});
