/** Idle connections: the client ends them first, because a request could meet their end by the server. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { Leasehold } from '../../src/client/leasehold.ts';
import { startTestService } from '../kit/service.ts';

test('the client closes an idle connection before the server does', async (t) => {
  const { address } = await startTestService(t);
  const ended = Promise.withResolvers<string>();
  const relay = createServer((client: Socket) => {
    const service = connect(Number(new URL(address).port), '127.0.0.1');
    client.pipe(service).pipe(client);
    for (const [name, socket] of Object.entries({ client, service })) {
      socket.on('error', () => undefined).once('end', () => ended.resolve(name));
    }
  }).listen(0, '127.0.0.1');
  t.after(() => relay.close());
  await once(relay, 'listening');
  const { port } = relay.address() as AddressInfo;
  await new Leasehold({ address: `http://127.0.0.1:${port}` }).health();
  assert.equal(await ended.promise, 'client');
});
