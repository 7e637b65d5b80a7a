// Generated requests that try to reach another server than a credential's target. A canary listens on every loopback
// address, and fails the test for a single connection. Both endpoints get the same cases. `SEED=n` repeats them.
// SOURCE: docs/decisions.md, "Brokered use". Addresses and rebinding of the engine alone are in test/broker.

import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { after, test } from 'node:test';
import type { Address } from '../../src/broker/upstream-connections.ts';
import { specFor, startEngine, startUpstream } from '../broker/upstream.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { scaled } from '../kit/scale.ts';
import { startTestService } from '../kit/service.ts';
import { type Case, CLASSES, type Places } from './ssrf-cases.ts';
import { type ReceivedRequest, sendByBaseUrl } from './use-endpoints.ts';

const seed = newSeed(20261123);
/** Cases for each of nine classes. At the base URL, as many again for eight of them. */
const CASES = scaled(20, 1112);
const AT_ONCE = 8;
/** Classes whose requests are for the target, and some of which it gets. */
const ANSWERED = ['redirect', 'framing', 'hopByHop'];

/** The canary's own addresses to which connections were made. */
const reached: (string | undefined)[] = [];
const canary = await listen('0.0.0.0', 0);
const canaryPort = (canary.address() as AddressInfo).port;
await listen('::1', canaryPort);

let answerOf: (id: string) => Case['redirect'] = () => null;
const upstream = await startUpstream({ after }, (request, response) => {
  const { status, headers } = answerOf(String(request.headers['x-case'])) ?? { status: 200, headers: {} };
  request.resume();
  response.writeHead(status, headers).end('ok');
});
const service = await startTestService({ after });
const { admin } = service;
const agent = await service.agent('prober', { 'ssrf/*': ['use'] });
const placement = { kind: 'bearer' };
const ownTarget = {
  origin: `https://127.0.0.1:${upstream.port}`,
  paths: ['/v1/*'],
  allow_networks: ['127.0.0.1/32'],
  ca_pem: upstream.caPem,
};

async function listen(host: string, port: number): Promise<Server> {
  const server = createServer((socket) => {
    reached.push(socket.localAddress);
    socket.destroy();
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen({ host, port, ipv6Only: host.includes(':') }, resolve);
  await promise;
  after(() => server.close());
  return server;
}

/** Leaves none for the test that follows, also if this one fails. */
function takeReached(): typeof reached {
  return reached.splice(0);
}

async function store(path: string, targets: readonly unknown[]): Promise<number> {
  await admin.post('/api/v1/credentials', { path, value: 'sk-test-0123456789abcdefghijklmnop' });
  return (await admin.put(`/api/v1/targets/${path}`, { targets, placement })).status;
}

/** Runs the cases, a few at a time. */
async function runAll(count: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

test('the canary notices a connection', async () => {
  await fetch(`http://127.0.0.1:${canaryPort}/`).catch(() => undefined);
  await fetch(`http://[::1]:${canaryPort}/`).catch(() => undefined);
  assert.deepEqual(takeReached(), ['127.0.0.1', '::1']);
});

interface Attempt {
  readonly status: number;
  /** Whether the caller got the upstream's response. */
  readonly isAnswered: boolean;
}

/** Each endpoint takes the same call. `index` varies how a base URL, which names no host, expresses it. */
const ENDPOINTS: Readonly<Record<string, (call: ReceivedRequest, origin: string, index: number) => Promise<Attempt>>> =
  {
    async 'one call'(call) {
      const { status, text } = await agent.post('/api/v1/use', call);
      assert.ok([200, 400, 403, 502].includes(status), text);
      return { status, isAnswered: status === 200 };
    },
    async 'base URL'(call, origin, index) {
      const { status, isUpstream } = await sendByBaseUrl({ ...service, token: agent.token }, call, origin, index);
      return { status, isAnswered: isUpstream };
    },
  };

for (const [endpoint, send] of Object.entries(ENDPOINTS)) {
  for (const [name, generate] of Object.entries(CLASSES)) {
    test(`${name} by ${endpoint}: none of ${CASES} generated requests reaches another server (SEED=${seed})`, async () => {
      assert.ok((await store('ssrf/own', [ownTarget])) === 200);
      const dice = new Dice(seed);
      const places: Places = { targetPort: upstream.port, canaryPort };
      const cases = Array.from({ length: CASES }, () => generate(dice, places));
      answerOf = (id) => cases[Number(id)]?.redirect ?? null;
      const before = upstream.requests.length;
      let answered = 0;
      await runAll(cases.length, async (index) => {
        const { call, isSendable } = cases[index] ?? assert.fail();
        const headers = { ...call.headers, 'x-case': String(index) };
        const { isAnswered } = await send({ path: 'ssrf/own', ...call, headers }, ownTarget.origin, index);
        if (isAnswered) answered++;
        // A base URL can have another URL in its path, which is the target's own.
        assert.ok(isSendable || !isAnswered || endpoint === 'base URL', `${call.url} was sent`);
      });
      assert.deepEqual(takeReached(), []);
      const requests = upstream.requests.slice(before);
      // Every answered use is one request, to the target's host and paths, with the vault's own authority.
      assert.equal(requests.length, answered);
      if (ANSWERED.includes(name)) assert.ok(answered > 0);
      for (const { url = '', headers } of requests) {
        assert.match(url, /^\/v1\/(?!own)/);
        assert.equal(headers.host, `127.0.0.1:${upstream.port}`);
        assert.match(headers.authorization ?? '', /^Bearer sk-test-\w+$/);
        assert.equal(JSON.stringify([headers.via, headers.forwarded, headers['x-forwarded-host']]), '[null,null,null]');
      }
    });
  }

  test(`targets by ${endpoint}: none of ${CASES} targets at this machine reaches it without an allowed network`, async () => {
    const dice = new Dice(seed);
    let allowed = 0;
    await runAll(CASES, async (index) => {
      const { call } = CLASSES.spelling(dice, { targetPort: canaryPort, canaryPort });
      const origin = /^[^/]*\/\/[^/]*/.exec(call.url)?.[0] ?? '';
      const networks = dice.pick([[], ['10.0.0.0/8'], ['::/96'], ['64:ff9b::/96'], ['2002::/16'], ['fd00::/8']]);
      const path = `ssrf/inside-${endpoint.replace(' ', '-')}-${index}`;
      if ((await store(path, [{ origin, allow_networks: networks, ca_pem: upstream.caPem }])) !== 200) return;
      // `::/96` has two addresses of this machine. The IPv4 addresses that are written in it are not allowed by it.
      const { hostname, port } = new URL(origin);
      const isAllowed = networks.includes('::/96') && ['[::]', '[::1]'].includes(hostname);
      if (isAllowed && port === String(canaryPort)) allowed++;
      const { status } = await send({ path, method: 'GET', url: `${origin}/`, headers: {} }, origin, index);
      assert.ok([400, 403, 502].includes(status), origin);
    });
    assert.deepEqual(takeReached(), Array<string>(allowed).fill('::1'));
  });
}

// 127.0.0.1 is allowed here, so that some sequences are permitted.
test(`rebinding: none of ${CASES} sequences of DNS answers leads to an address that is not allowed`, async (t) => {
  const dice = new Dice(seed);
  const inside = ['127.0.0.2', '0.0.0.0', '::1', '::ffff:127.0.0.2', '::', '10.0.0.1', '169.254.169.254', '127.0.0.3'];
  const answer = (): Address[] => {
    const addresses = Array.from({ length: 1 + dice.below(3) }, () =>
      dice.chance(0.4) ? '127.0.0.1' : dice.pick(inside),
    );
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  };
  /** The last for each name. */
  const answers = new Map<string, Address[]>();
  const engine = startEngine(t, {
    resolve: async (name) => {
      const addresses = answer();
      answers.set(name, addresses);
      return addresses;
    },
  });
  let permitted = 0;
  await runAll(CASES, async (index) => {
    const host = `name-${index}.upstream.test`;
    const fields = { host, scheme: 'http', allowNetworks: ['127.0.0.1/32'] } as const;
    const head = await engine.use(specFor({ port: canaryPort, caPem: null }, fields), null).head;
    const isAllowed = answers.get(host)?.every(({ address }) => address === '127.0.0.1') === true;
    if (isAllowed) permitted++;
    assert.equal(head.kind === 'error' && head.failure === 'refused_address', !isAllowed);
  });
  assert.ok(permitted > 0);
  assert.deepEqual(takeReached(), Array<string>(permitted).fill('127.0.0.1'));
});
