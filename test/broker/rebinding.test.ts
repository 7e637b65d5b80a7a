// Names that resolve to addresses to which no connection may be made, on the first query or a later one.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../src/broker/upstream-connections.ts';
import { bodyOf, failureOf, headOf, specFor, startEngine, startUpstream } from './upstream.ts';

const LOCAL: Address = { address: '127.0.0.1', family: 4 };
const PRIVATE: Address = { address: '10.0.0.1', family: 4 };
const PUBLIC: Address = { address: '2606:4700::1', family: 6 };
const host = 'upstream.test';

test('rebinding: the address that is dialled is the one that was checked', async (t) => {
  const upstream = await startUpstream(t, (_, response) => response.writeHead(200, { connection: 'close' }).end('ok'));
  const answers = [[LOCAL], [PRIVATE], [LOCAL]];
  let queries = 0;
  const engine = startEngine(t, { resolve: async () => answers[queries++] ?? [] });
  const first = engine.use(specFor(upstream, { host }), null);
  await headOf(first);
  await bodyOf(first);
  assert.equal(queries, 1);
  // The connection was closed, so that the name is resolved again.
  assert.equal(await failureOf(engine.use(specFor(upstream, { host }), null)), 'refused_address');
  assert.equal(queries, 2);
  assert.equal(upstream.requests.length, 1);
});

test('rebinding: a connection that was checked for one rule is not used for another', async (t) => {
  const upstream = await startUpstream(t, (_, response) => response.end('ok'));
  let queries = 0;
  const engine = startEngine(t, {
    resolve: async () => {
      queries++;
      return [LOCAL];
    },
  });
  for (let round = 0; round < 3; round++) await bodyOf(await opened(engine.use(specFor(upstream, { host }), null)));
  assert.equal(queries, 1);
  assert.equal(
    upstream.requests.every(({ socket }) => socket === upstream.requests[0]?.socket),
    true,
  );
  const refused = specFor(upstream, { host, allowNetworks: [] });
  assert.equal(await failureOf(engine.use(refused, null)), 'refused_address');
  const other = specFor(upstream, { host, allowNetworks: ['127.0.0.1/32'] });
  await bodyOf(await opened(engine.use(other, null)));
  assert.equal(queries, 3);
  assert.equal(await failureOf(engine.use(specFor(upstream, { host, caPem: null }), null)), 'tls');
});

test('SSRF: a name is refused if any of its addresses is', async (t) => {
  const upstream = await startUpstream(t, (_, response) => response.end('ok'));
  for (const addresses of [
    [PUBLIC, PRIVATE],
    [PRIVATE, PUBLIC],
    [LOCAL, PRIVATE],
  ]) {
    const engine = startEngine(t, { resolve: async () => addresses });
    assert.equal(await failureOf(engine.use(specFor(upstream, { host }), null)), 'refused_address');
  }
  const none = startEngine(t, { resolve: async () => [] });
  assert.equal(await failureOf(none.use(specFor(upstream, { host }), null)), 'dns');
  assert.equal(upstream.requests.length, 0);
});

test('without TLS a request is made only within an allowed network', async (t) => {
  const upstream = await startUpstream(t, (_, response) => response.end('ok'), 'http');
  const engine = startEngine(t, { resolve: async () => [PUBLIC] });
  await bodyOf(await opened(engine.use(specFor(upstream), null)));
  assert.equal(await failureOf(engine.use(specFor(upstream, { host }), null)), 'refused_address');
});

async function opened(use: ReturnType<ReturnType<typeof startEngine>['use']>): Promise<typeof use> {
  await headOf(use);
  return use;
}
