// A stream that ends early is a disconnect only if the connection of the request is gone.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import fastify from 'fastify';
import { isAbandoned } from '../../src/http/errors.ts';

/** A server whose response has sent nothing yet, with a client that waits for it. */
async function openScene(t: TestContext) {
  const app = fastify({ forceCloseConnections: true });
  const begun = Promise.withResolvers<Readable>();
  const failed = Promise.withResolvers<{ readonly code: unknown; readonly isAbandoned: boolean }>();
  app.setErrorHandler((error, request, reply) => {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    failed.resolve({ code, isAbandoned: isAbandoned(error, request.raw) });
    return reply.hijack();
  });
  // The framework knows by itself that a client has left whose request has no body.
  app.post('/', (_request, reply) => {
    const stream = new Readable({ read: () => undefined });
    setImmediate(() => begun.resolve(stream));
    return reply.send(stream);
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  t.after(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  const client = connect(port, '127.0.0.1');
  t.after(() => client.destroy());
  await once(client, 'connect');
  client.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}');
  return { client, stream: await begun.promise, failed: failed.promise };
}

test('a response whose client has disconnected is abandoned', async (t) => {
  const { client, failed } = await openScene(t);
  client.resetAndDestroy();
  assert.deepEqual(await failed, { code: 'ERR_STREAM_PREMATURE_CLOSE', isAbandoned: true });
});

test('a response whose source ends early while the client waits is not abandoned', async (t) => {
  const { stream, failed } = await openScene(t);
  stream.destroy();
  assert.deepEqual(await failed, { code: 'ERR_STREAM_PREMATURE_CLOSE', isAbandoned: false });
});

test('another error is not abandoned, even if the client has disconnected', () => {
  const gone = { socket: { destroyed: true } } as Parameters<typeof isAbandoned>[1];
  assert.equal(isAbandoned(new Error('a defect'), gone), false);
  assert.equal(isAbandoned(Object.assign(new Error('closed'), { code: 'ERR_STREAM_PREMATURE_CLOSE' }), gone), true);
});
