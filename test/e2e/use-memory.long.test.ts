// A stream of 1 GiB through a base URL, down and up, leaves the memory of the service and of the broker as it is.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startUpstream } from '../broker/upstream.ts';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';
import { childrenOf } from '../kit/processes.ts';
import { storeWithTargets } from '../kit/use.ts';

const MIB = 1024 * 1024;
const LENGTH = 1024 * MIB;
const CHUNK = Buffer.alloc(64 * 1024, 'a line of text\n');
const SAMPLE_BYTES = 16 * MIB;
/** Buffers and heaps reach their final sizes within these bytes. */
const WARM_UP_BYTES = LENGTH / 4;
/** Halfway the reader stops for that long, and then reads on. Without back-pressure some 100 MiB would pile up. */
const PAUSE_MS = 2000;
/** Maximum growth from an idle process to one that streams. */
const MAX_WARM_UP_BYTES = 192 * MIB;
/** Afterwards: what collections of garbage leave to chance. */
const MAX_GROWTH_BYTES = 48 * MIB;

function* chunks(): Generator<Buffer> {
  for (let sent = 0; sent < LENGTH; sent += CHUNK.length) yield CHUNK;
}

/** Reads all, with the pause. `passed` is called with the length of each chunk, and with 0 after the pause. */
async function readAll(stream: AsyncIterable<Uint8Array>, passed: (bytes: number) => void): Promise<number> {
  let bytes = 0;
  for await (const chunk of stream) {
    const isPause = bytes < LENGTH / 2 && bytes + chunk.length >= LENGTH / 2;
    bytes += chunk.length;
    passed(chunk.length);
    if (!isPause) continue;
    await sleep(PAUSE_MS);
    passed(0);
  }
  return bytes;
}

/** Notes what the reader of a test reads. */
let passed: (bytes: number) => void = () => undefined;
const upstream = await startUpstream({ after }, (request, response) => void answer(request, response), 'http');

async function answer(received: IncomingMessage, response: ServerResponse): Promise<void> {
  if (received.method === 'GET') await pipeline(Readable.from(chunks()), response).catch(() => undefined);
  else response.end(String(await readAll(received, (bytes) => passed(bytes))));
}

const dataDir = join(temporaryDirectory({ after }), 'data');
const service = await startProcess({ after }, dataDir);
const admin = createClient(service.address, service.adminToken);
const target = { origin: `http://127.0.0.1:${upstream.port}`, allow_networks: ['127.0.0.0/8'] };
await storeWithTargets({ admin }, 'long/key', [target]);
await admin.post('/api/v1/agents', { name: 'user' });
await admin.post('/api/v1/policies', {
  name: 'user',
  principal: 'agent:user',
  resources: ['long/*'],
  actions: ['use'],
});
const authorization = `Bearer ${await logIn(service.address, 'user', readAgentKey(dataDir, 'user'))}`;
// The first use starts the broker.
await (await request('POST', null)).toArray();
const [brokerPid = assert.fail('the service has no broker')] = childrenOf(service.pid);

const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

/** Samples the memory of both processes while bytes pass. */
class Memory {
  readonly #pids = { service: service.pid, broker: brokerPid };
  readonly #idle = { service: residentBytes(service.pid), broker: residentBytes(brokerPid) };
  readonly #early = { ...this.#idle };
  readonly #late = { ...this.#idle };
  #bytes = 0;
  #next = 0;

  passed(bytes: number): void {
    this.#bytes += bytes;
    if (bytes > 0 && this.#bytes < this.#next) return;
    this.#next += SAMPLE_BYTES;
    const most = this.#bytes < WARM_UP_BYTES ? this.#early : this.#late;
    for (const name of ['service', 'broker'] as const)
      most[name] = Math.max(most[name], residentBytes(this.#pids[name]));
  }

  assertFlat(): void {
    assert.equal(this.#bytes, LENGTH);
    for (const name of ['service', 'broker'] as const) {
      const sizes = [this.#idle[name], this.#early[name], this.#late[name]] as const;
      const [idle, early, late] = sizes;

      const isFlat = early - idle < MAX_WARM_UP_BYTES && late - early < MAX_GROWTH_BYTES;
      assert.ok(isFlat, `${name}: ${sizes.map((bytes) => `${Math.round(bytes / MIB)} MiB`).join(', ')}`);
    }
  }
}

async function request(method: string, body: Readable | null): Promise<IncomingMessage> {
  const { hostname, port } = new URL(service.address);
  const options = { hostname, port, method, path: '/use/long/key/-/stream', headers: { authorization } };
  const sent = http.request(options);
  const responded = once(sent, 'response');
  if (body === null) sent.end();
  else await pipeline(body, sent);
  const [response]: IncomingMessage[] = await responded;
  assert.equal(response?.statusCode, 200);
  return response ?? assert.fail();
}

test('1 GiB of response passes at flat memory', async () => {
  const memory = new Memory();
  await readAll(await request('GET', null), (bytes) => memory.passed(bytes));
  memory.assertFlat();
});

test('1 GiB of request passes at flat memory', async () => {
  const memory = new Memory();
  passed = (bytes) => memory.passed(bytes);
  const response = await request('POST', Readable.from(chunks()));
  assert.equal(Number(Buffer.concat(await response.toArray()).toString()), LENGTH);
  memory.assertFlat();
});
