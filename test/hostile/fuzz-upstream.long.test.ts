// Random answers of upstreams to 50,000 brokered requests leave the same server and the same broker serving.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeCertificate } from '../kit/certificate.ts';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { randomResponse, type Script } from '../kit/hostile-bytes.ts';
import { startHostilePeer } from '../kit/hostile-peer.ts';
import { startProcess } from '../kit/process.ts';
import { childrenOf } from '../kit/processes.ts';
import { scaled } from '../kit/scale.ts';

interface Scene {
  /** Makes that many brokered requests, 48 at a time. */
  fuzz(dice: Dice, wanted: number): Promise<void>;
  /** Makes one request to an upstream that behaves, and asserts that the same processes serve it. */
  assertServes(): Promise<void>;
}

const WELL: Script = {
  pieces: [Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}')],
  end: 'end',
};
const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';

async function startScene(scope: Scope): Promise<Scene> {
  const dataDir = join(temporaryDirectory(scope), 'data');
  const process = await startProcess(scope, dataDir, ['--log-level', 'silent']);
  const { address } = process;
  const admin = createClient(address, process.adminToken);
  let dice: Dice | null = null;
  const answer = (request: string): Script => {
    if (dice === null || request.startsWith('GET /well ')) return WELL;
    if (/\r\nupgrade:/i.test(request) && dice.chance(0.5)) {
      const odd = dice.chance(0.5) ? '__proto__: x\r\n' : '';
      const frames = dice.chance(0.5) ? Buffer.from('8105hello', 'hex') : dice.bytes(60);
      return { pieces: [Buffer.from(`${SWITCHING}${odd}\r\n`), frames], end: dice.pick(['reset', 'destroy', 'end']) };
    }
    return randomResponse(dice, '{"a":"sk-test-0123456789abcdefghijklmnop"}');
  };
  const { certFile, keyFile } = makeCertificate(scope);
  const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')];
  const plain = await startHostilePeer(scope, answer);
  const secure = await startHostilePeer(scope, answer, { cert, key });
  const done = async (answer: ReturnType<typeof admin.post>): Promise<void> => {
    const { status, text } = await answer;
    assert.ok(status < 300, text);
  };
  await done(admin.post('/api/v1/agents', { name: 'agent' }));
  const policy = { name: 'agent', principal: 'agent:agent', resources: ['api/*'], actions: ['use'] };
  await done(admin.post('/api/v1/policies', policy));
  await done(admin.post('/api/v1/credentials', { path: 'api/key', value: 'sk-test-0123456789abcdefghijklmnop' }));
  const allow_networks = ['127.0.0.0/8'];
  const targets = [
    { origin: `http://127.0.0.1:${plain.port}`, allow_networks },
    { origin: `https://127.0.0.1:${secure.port}`, allow_networks, ca_pem: cert },
  ];
  await done(admin.put('/api/v1/targets/api/key', { targets, placement: { kind: 'bearer' } }));
  const token = await logIn(address, 'agent', readAgentKey(dataDir, 'agent'));
  const agent = new http.Agent({ keepAlive: true, maxSockets: 48 });
  scope.after(() => agent.destroy());
  const url = new URL(address);

  /** Resolves when the exchange has ended, to its status; null without a response. */
  function ask(path: string, options: http.RequestOptions = {}, body = ''): Promise<number | null> {
    const { promise, resolve } = Promise.withResolvers<number | null>();
    const call = http.request({
      host: url.hostname,
      port: url.port,
      agent,
      path: `/use/api/key/${path}`,
      ...options,
      headers: { authorization: `Bearer ${token}`, ...options.headers },
    });
    call.on('error', () => resolve(null));
    let isAnswered = false;
    call.on('close', () => {
      if (!isAnswered) resolve(null);
    });
    call.on('response', (response) => {
      isAnswered = true;
      response.on('error', () => undefined);
      response.on('close', () => resolve(response.statusCode ?? null));
      response.resume();
    });
    call.on('upgrade', (_response, socket) => {
      isAnswered = true;
      socket.on('error', () => undefined);
      socket.on('close', () => resolve(101));
      socket.resume();
      socket.end();
    });
    call.end(body);
    return promise;
  }

  const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
  const nonce = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };
  assert.equal(await ask('-/well'), 200);
  const brokerPids = childrenOf(process.pid);
  return {
    async fuzz(given, wanted) {
      dice = given;
      let asked = 0;
      const work = async (): Promise<void> => {
        while (asked < wanted) {
          asked += 1;
          const path = given.pick(['-/v1', '-2/v1']);
          if (given.chance(0.1)) await ask(path, { headers: { ...upgrade, ...nonce }, agent: false });
          else if (given.chance(0.3)) await ask(path, { method: 'POST' }, 'x'.repeat(given.below(40_000)));
          else await ask(path, { method: given.pick(['GET', 'GET', 'HEAD', 'DELETE']) });
        }
      };
      await Promise.all(Array.from({ length: 48 }, work));
    },
    async assertServes() {
      for (const path of ['-/well', '-2/well']) assert.equal(await ask(path), 200, process.output());
      assert.equal(process.child.exitCode, null, process.output());
      assert.deepEqual(childrenOf(process.pid), brokerPids, process.output());
    },
  };
}

const seed = newSeed();
const wanted = scaled(1000, 50_000);

test(`${wanted} brokered requests to hostile upstreams (SEED=${seed})`, async (t) => {
  const scene = await startScene(t);
  await scene.fuzz(new Dice(seed), wanted);
  await scene.assertServes();
});
