// The server as a process: its output, its modes with a umask of 0, one server per data directory, signals and exit
// codes. SOURCE: docs/decisions.md, "The process". test/spec tests that a started request finishes.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { ROOT } from '../conventions/source.ts';
import { createClient } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { runProgram, type ServiceProcess, startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import { photograph, photographRunning } from './vaults.ts';

const BODY = '{"agent_name":"ci"}';
const HEAD = [
  'POST /auth/challenge HTTP/1.1',
  'Host: localhost',
  'Content-Type: application/json',
  'Expect: 100-continue',
];
const HEALTH = 'GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n';
/** The files of the store in a used data directory. */
const OF_STORE = { sqlite: ['leasehold.db', 'leasehold.db-wal', 'leasehold.db-shm'], postgres: [] }[STORE];

interface Line {
  readonly socket: Socket;
  text(): string;
  /** Resolves when the response contains the text, or the connection has closed. */
  until(part: string): Promise<void>;
}

async function open({ address }: Pick<ServiceProcess, 'address'>): Promise<Line> {
  const { hostname, port } = new URL(address);
  let text = '';
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined).on('data', (chunk) => (text += chunk));
  await new Promise((resolve) => socket.once('connect', resolve));
  return {
    socket,
    text: () => text,
    async until(part) {
      while (!text.includes(part) && !socket.destroyed) {
        await new Promise((resolve) => socket.once('data', resolve).once('close', resolve));
      }
    },
  };
}

/** Sends a request with an incomplete body; resolves when the server has started to handle it. */
async function openSlow(service: Pick<ServiceProcess, 'address'>): Promise<Line> {
  const line = await open(service);
  line.socket.write(`${[...HEAD, `Content-Length: ${BODY.length}`].join('\r\n')}\r\n\r\n${BODY.slice(0, 5)}`);
  await line.until('100 Continue');
  return line;
}

/** Resolves when the program reports the signal. */
async function untilStopping({ child, output }: ServiceProcess): Promise<void> {
  while (!output().includes('Stopping')) await new Promise((resolve) => child.stdout?.once('data', resolve));
}

/** The starts and stops in the log of the data directory, without the start that reads them. */
async function lifeOf(t: Parameters<typeof startTestService>[0], dataDir: string): Promise<string[]> {
  const { admin } = await startTestService(t, [], dataDir);
  const { data } = (await admin.get('/api/v1/audit?order=asc&agent=service')).body;
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
  return data.map(({ event_type }: { event_type: string }) => event_type).slice(0, -1);
}

/** The directory and every path below it, with the permissions of other users. */
function loosePaths(dir: string): string[] {
  const found = globSync('**/{*,.*}', { cwd: dir }).map((name) => join(dir, name));
  return [dir, ...found].filter((path) => {
    const stat = statSync(path);
    return (stat.mode & 0o777) !== (stat.isDirectory() ? 0o700 : 0o600);
  });
}

/** The umask applies to this process and its children, so it is restored. */
async function withoutUmask<T>(work: () => Promise<T>): Promise<T> {
  const before = process.umask(0);
  try {
    return await work();
  } finally {
    process.umask(before);
  }
}

const scope = { after };
const dataDir = join(temporaryDirectory(scope), `new/a "$HOME" \`ls\` it's`);
const server = await withoutUmask(() => startProcess(scope, dataDir));
const printed = server.output();

test('at startup the server prints a few lines with the token and the next commands', () => {
  const lines = printed.trimEnd().split('\n');
  assert.equal(lines.length <= 16, true, printed);
  for (const part of [
    server.address,
    dataDir,
    server.adminToken,
    `${ROOT}/scripts/leasehold put openai/key --service openai`,
  ])
    assert.equal(printed.split(part).length > 1, true, part);
});

test('the printed data directory is quoted for a shell, whatever its name', () => {
  const [, line = ''] = /^ {2}(export LEASEHOLD_DATA_DIR=.*)$/m.exec(printed) ?? [];
  const read = execFileSync('sh', ['-c', `${line}\ncat "$LEASEHOLD_DATA_DIR/daemon.token"`], { encoding: 'utf8' });
  assert.equal(read.trim(), server.adminToken);
});

test('a new data directory, its write-ahead log and its keys are private even with a umask of 0', async () => {
  const admin = createClient(server.address, server.adminToken);
  assert.equal((await admin.post('/api/v1/agents', { name: 'ci' })).status, 201);
  const names = Object.keys(photograph(dataDir)).map((name) => basename(name));
  for (const name of [...OF_STORE, 'root.key', 'daemon.token', 'lock', 'rollback.marker', 'private_key.pem']) {
    assert.equal(names.includes(name), true, name);
  }
  assert.deepEqual(loosePaths(dirname(dataDir)), []);
});

test('a second server on the data directory is rejected with any flags, and changes nothing', async () => {
  const before = photographRunning(dataDir);
  const alias = join(dataDir, 'agents', '..');
  const { code, output } = await runProgram(['--data-dir', alias, '--listen', '127.0.0.1:0', '--accept-clock']);
  assert.match(output, /^leasehold: Another Leasehold runs on [^\n]*\. Stop it first[^\n]*\n$/);
  assert.equal(code, 1);
  assert.deepEqual(photographRunning(dataDir), before);
});

test('after a signal it finishes requests in flight, accepts no new ones and ignores further signals', async (t) => {
  assert.equal(server.output(), printed, 'requests print nothing');
  const slow = await openSlow(server);
  const ended = server.end('SIGTERM');
  await untilStopping(server);
  await assert.rejects(createClient(server.address, null).get('/api/v1/health'));
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) server.child.kill(signal);
  slow.socket.write(BODY.slice(5) + HEALTH);
  await slow.until('stopping');
  assert.match(slow.text(), /^HTTP\/1\.1 200 /m);
  assert.match(slow.text(), /nonce/);
  assert.equal(slow.text().split('HTTP/1.1 200 ').length, 2, slow.text());
  slow.socket.destroy();
  assert.equal(await ended, 0);
  assert.equal(server.output().slice(printed.length).trim().split('\n').length, 1);
  assert.deepEqual(await lifeOf(t, dataDir), ['service.start', 'service.stop']);
});

test('a stop closes connections of unfinished requests at its time limit', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const service = await startTestService(t, [], directory, undefined, { stopMs: 200 });
  const stuck = await openSlow(service);
  const silent = await open(service);
  await service.stop();
  for (const { socket } of [stuck, silent]) socket.destroy();
  assert.deepEqual(await lifeOf(t, directory), ['service.start', 'service.stop']);
});

test('a stop does not wait for idle connections', async (t) => {
  const service = await startTestService(t, [], undefined, undefined, { stopMs: 2 ** 31 - 1 });
  const resting = await Promise.all(Array.from({ length: 10 }, () => open(service)));
  for (const { socket } of resting) socket.write(HEALTH);
  await Promise.all(resting.map((line) => line.until('"ok"')));
  await service.stop();
  await Promise.all(resting.map(({ socket }) => socket.closed || new Promise((end) => socket.once('close', end))));
});

test('an error of usage is one line with exit code 2, and creates nothing', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const { code, output } = await runProgram(['--data-dir', directory, '--listen', 'nonsense']);
  assert.match(output, /^leasehold: [^\n]{20,}\n$/);
  assert.equal(code, 2, output);
  assert.equal(existsSync(directory), false);
});
