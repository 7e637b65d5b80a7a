/**
 * The address in a data directory is trusted only after the server has proved itself: after a crash, or with a forged
 * address, another listener receives no token, signature or value.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { withProof } from '../../src/cli/connect.ts';
import { LeaseholdError } from '../../src/client/errors.ts';
import { directFetch } from '../../src/client/node-fetch.ts';
import { lockDataDir } from '../../src/server/data-dir.ts';
import { challengeServer } from '../../src/server/server-files.ts';
import { newHome } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { findPort } from '../kit/port.ts';
import { startTestService } from '../kit/service.ts';

const FILES = ['daemon.address', 'daemon.token', 'daemon.proof'] as const;
const VALUE = 'the-value-that-nobody-else-gets';
type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Listens on a port of loopback, and keeps everything that it is sent. */
async function listen(
  scope: Scope,
  port: number,
  answer: Answer = (_, response) => response.end('{"data":{}}'),
  host = '127.0.0.1',
) {
  const received: string[] = [];
  const server = createServer((request, response) => {
    let text = `${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}\n`;
    request.on('data', (chunk) => (text += chunk));
    request.on('end', () => {
      received.push(text);
      void answer(request, response);
    });
  });
  scope.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const bound = server.address();
  if (typeof bound !== 'object' || bound === null) throw new Error('the listener has no port');
  return { address: `http://127.0.0.1:${bound.port}`, received };
}

/** Passes the proof of the server at the address on. */
const relayOf =
  (address: string): Answer =>
  async (request, response) => {
    const nonce = request.headers['leasehold-proof-nonce'];
    if (nonce === undefined) return response.end('{"data":[]}');
    const answer = await fetch(`${address}/api/v1/health`, { headers: { 'leasehold-proof-nonce': String(nonce) } });
    const proof = answer.headers.get('leasehold-proof');
    assert.notEqual(proof, null);
    return response.writeHead(200, { 'leasehold-proof': proof ?? '' }).end(await answer.text());
  };

const started = async (scope: Scope, flags: readonly string[] = []) => {
  // Some tests take the port after the server, or listen on it at another address.
  const service = await startTestService(scope, ['--listen', `127.0.0.1:${await findPort()}`, ...flags]);
  return { service, dataDir: service.dataDir, home: newHome(scope, { LEASEHOLD_DATA_DIR: service.dataDir }) };
};

/** The server of the tests that stop nothing. */
const { service, dataDir, home } = await started({ after });

const portOf = (address: string): number => Number(new URL(address).port);

/** Stops the server, and leaves its files as a killed one does. */
async function kill({ service, dataDir }: Pick<Awaited<ReturnType<typeof started>>, 'service' | 'dataDir'>) {
  const files = FILES.map((name) => [join(dataDir, name), readFileSync(join(dataDir, name))] as const);
  await service.stop();
  for (const [file, bytes] of files) writeFileSync(file, bytes, { mode: 0o600 });
}

test('address, token and proof key are private while the server runs, and removed when it stops', async (t) => {
  const { dataDir, service } = await started(t);
  for (const name of FILES) assert.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600, name);
  await service.stop();
  for (const name of FILES) assert.equal(existsSync(join(dataDir, name)), false, name);
});

test('a given token stays in the operator’s file', async (t) => {
  const file = join(temporaryDirectory(t), 'token');
  writeFileSync(file, 'a'.repeat(40), { mode: 0o600 });
  const { service } = await started(t, ['--admin-token-file', file]);
  await service.stop();
  assert.equal(readFileSync(file, 'utf8'), 'a'.repeat(40));
});

test('after a kill another process on the port receives no bytes', async (t) => {
  const killed = await started(t);
  await kill(killed);
  const taker = await listen(t, portOf(killed.service.address));
  for (const words of [['put', 'a/b', '-'], ['list'], ['login', '--agent', 'x'], ['status']]) {
    const { code, stderr } = await killed.home.leasehold(words, { input: VALUE });
    assert.notEqual(code, 0, words.join(' '));
    assert.equal(stderr.includes(killed.service.adminToken), false);
  }
  assert.deepEqual(taker.received, []);
});

test('a server that cannot prove itself receives only a nonce, even if it relays the proof of another server', async (t) => {
  const file = join(dataDir, 'daemon.address');
  t.after(() => writeFileSync(file, `${service.address}\n`));
  for (const answer of [undefined, relayOf(service.address)]) {
    const other = await listen(t, 0, answer);
    writeFileSync(file, `${other.address}\n`);
    const { code, stderr } = await home.leasehold(['put', 'a/b', '-'], { input: VALUE });
    assert.equal(code, 2);
    assert.match(stderr, /the server on http:\/\/127\.0\.0\.1:\d+ is not the server of .*; nothing was sent/);
    assert.equal(other.received.length, 1);
    const [said = ''] = other.received;
    assert.match(said, /^GET \/api\/v1\/health /);
    for (const secret of [VALUE, service.adminToken, 'authorization']) {
      assert.equal(said.toLowerCase().includes(secret.toLowerCase()), false, secret);
    }
  }
});

test('another listener on loopback with the same port receives no token by relaying the proof', async (t) => {
  const port = portOf(service.address);
  const other = await listen(t, port, relayOf(service.address), '127.0.0.2');
  const { code, stderr } = await home.leasehold(['list', '--address', `http://127.0.0.2:${port}`]);
  assert.equal(other.received.join('').includes(service.adminToken), false, 'the token was sent');
  assert.equal(stderr.includes(service.adminToken), false);
  assert.notEqual(code, 0);
  // The name is another spelling of the server's address, and leads there whatever it resolves to.
  assert.equal((await home.leasehold(['list', '--address', `http://localhost:${port}`])).code, 0);
});

const isReset = ({ cause }: Error): boolean => cause instanceof Error && 'code' in cause && cause.code === 'ECONNRESET';

test('every connection proves itself: a listener that takes the port between two calls receives only a nonce', async (t) => {
  const killed = await started(t);
  const { dataDir, service } = killed;
  const { address } = service;
  const own = { dataDir, address, challengeServer: async (asked: string, of: string) => challengeServer(asked, of) };
  const fetchOwn = directFetch({ setUp: withProof(own) });
  const health = () => fetchOwn(`${address}/api/v1/health`);
  assert.equal((await health()).status, 200);
  /** The first call may be the one that finds the connection to the killed server closed. */
  const healthAfterReset = () => health().catch((error) => (isReset(error) ? health() : Promise.reject(error)));
  // The lock stays held, so that a challenge exists and only the connection differs from the first one.
  await kill(killed);
  const lock = lockDataDir(dataDir);
  t.after(() => lock.release());
  const taker = await listen(t, portOf(address));
  await assert.rejects(
    healthAfterReset,
    (error) => error instanceof LeaseholdError && error.code === 'INVALID_RESPONSE',
  );
  assert.equal(taker.received.length, 1);
  assert.match(taker.received.join(''), /^GET \/api\/v1\/health .*leasehold-proof-nonce/);
});

test('calls of one client at once share no connection that has not proved itself', async () => {
  const { address } = service;
  const asked: string[] = [];
  const own = {
    dataDir,
    address,
    challengeServer: async (of: string, at: string) => {
      asked.push(at);
      return challengeServer(of, at);
    },
  };
  const fetchOwn = directFetch({ setUp: withProof(own) });
  const read = async () => (await fetchOwn(`${address}/api/v1/health`)).text();
  await Promise.all([read(), read(), read()]);
  assert.equal(asked.length, 3);
  await read();
  assert.equal(asked.length, 3, 'a connection that has proved itself is used again');
});

test('health returns a proof only for a nonce of 32 bytes, and otherwise the usual response', async () => {
  const ask = (nonce: string) =>
    fetch(`${service.address}/api/v1/health`, { headers: { 'leasehold-proof-nonce': nonce } });
  const nonce = Buffer.alloc(32, 7).toString('base64');
  const [first, again] = [await ask(nonce), await ask(nonce)];
  // SOURCE: docs/formats.md, the proof of a data directory.
  const key = Buffer.from(readFileSync(join(dataDir, 'daemon.proof'), 'utf8'), 'base64');
  const covered = JSON.stringify(['leasehold-data-dir-proof-v1', nonce, service.address]);
  assert.equal(first.headers.get('leasehold-proof'), createHmac('sha256', key).update(covered).digest('base64'));
  assert.equal(first.headers.get('leasehold-proof'), again.headers.get('leasehold-proof'));
  assert.deepEqual(await first.json(), { data: { status: 'ok' } });
  for (const wrong of ['', 'x', nonce.slice(1), `${nonce}A`, nonce.replace(/.=$/, 'B='), `${nonce}, ${nonce}`]) {
    const answer = await ask(wrong);
    assert.deepEqual([answer.status, answer.headers.get('leasehold-proof')], [200, null], wrong);
  }
});
