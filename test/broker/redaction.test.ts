// No value passes in a response of an upstream, in any coding. redaction-splits.test.ts has all forms and divisions.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { Maskings } from '../../src/broker/maskings.ts';
import type { UpstreamRequestSpec } from '../../src/broker/protocol.ts';
import { HELD_BYTES, Redactor } from '../../src/broker/redaction.ts';
import { bodyOf, failureOf, headOf, PLAIN_VALUE, specFor, startBroker, startUpstream, VALUE } from './upstream.ts';

const broker = startBroker({ after });
let respond: (response: ServerResponse, authorization: string) => void = () => undefined;
const upstream = await startUpstream({ after }, (request, response) => {
  respond(response, request.headers.authorization ?? '');
});

const BASIC = { kind: 'basic', username: 'ann' } as const;
const FORMS: readonly (readonly [form: string, text: string])[] = [
  ['raw', VALUE],
  ['JSON', JSON.stringify(VALUE).slice(1, -1)],
  // The digits of the password. Those of the user name are no secret.
  ['Basic', Buffer.from(`ann:${VALUE}`).toString('base64').slice(5)],
];
const CODINGS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  identity: (bytes) => bytes,
  gzip: (bytes) => gzipSync(bytes),
  'x-gzip': (bytes) => gzipSync(bytes),
  deflate: (bytes) => deflateSync(bytes),
  'bare deflate': (bytes) => deflateRawSync(bytes),
  br: (bytes) => brotliCompressSync(bytes),
  zstd: (bytes) => zstdCompressSync(bytes),
  'gzip, br': (bytes) => brotliCompressSync(gzipSync(bytes)),
};

const maskings = new Maskings();
const redactorFor = async (spec: Pick<UpstreamRequestSpec, 'placement' | 'value' | 'redact'>) =>
  new Redactor(await maskings.for({ caller: 'tester', ...spec }));

test('the password alone is redacted where the value has the user too', async () => {
  const redactor = await redactorFor({
    placement: { kind: 'basic', username: null },
    value: 'ann:pa55word',
    redact: [],
  });
  const parts = [redactor.write(Buffer.from('a pa55word.')), redactor.end()];
  assert.equal(Buffer.concat(parts).toString(), 'a [secret].');
});

test('further values of the spec are redacted, and a header with a value in its name is removed', async () => {
  const redactor = await redactorFor({ placement: BASIC, value: VALUE, redact: ['old-value-1'] });
  assert.deepEqual(await redactor.headers([['X-Old-Value-1', '']]), [['X-Old-Value-1', '']]);
  assert.deepEqual(
    await redactor.headers([
      ['old-value-1', ''],
      ['set-cookie', 'a=old-value-1; b'],
    ]),
    [['set-cookie', 'a=[secret]; b']],
  );
});

test('a message is released at its end, and other bytes wait until as many as the window have followed', async () => {
  const masking = await maskings.for(specFor({ port: 1, caPem: null }, { value: 'sk-0123456789' }));
  const write = (contentType: string, ...chunks: readonly string[]): string[] => {
    const redactor = new Redactor(masking);
    redactor.setContentType(contentType);
    return chunks.map((chunk) => Buffer.from(redactor.write(Buffer.from(chunk))).toString());
  };
  const events = ['data: sk-0123456\n\n', 'data: x', '\r\n\r\n', ': ping\n', '\ndata: 1'];
  assert.deepEqual(write('text/event-stream', ...events), [events[0], '', 'data: x\r\n\r\n', '', ': ping\n\n']);
  const documents = ['{"a":"sk-0123456"}\n', '{"b":\n1}', ' \n[', 'sk-0123456789]\n'];
  assert.deepEqual(write('application/x-ndjson', ...documents), [documents[0], '', '{"b":\n1} \n', '[[secret]]\n']);
  const text = 'x'.repeat(HELD_BYTES);
  assert.deepEqual(write('text/plain', 'a}\n\n', text, 'sk-'), ['', 'a}\n\n', 'xxx']);
});

const use = (fields: Partial<UpstreamRequestSpec> = {}) =>
  broker.use(specFor(upstream, { placement: BASIC, value: VALUE, ...fields }), null);

for (const [coding, encode] of Object.entries(CODINGS)) {
  test(`a body in ${coding} arrives redacted and without a coding`, async () => {
    const plain = FORMS.map(([form, text]) => `${form}: ${text}\n`).join('');
    const expected = FORMS.map(([form]) => `${form}: [secret]\n`).join('');
    const body = encode(Buffer.from(plain));
    respond = async (response, authorization) => {
      response.setHeader('content-encoding', coding.replace('bare ', ''));
      for (const name of ['digest', 'content-md5', 'accept-ranges']) response.setHeader(name, 'x');
      response.setHeader('x-credential', authorization);
      response.write(body.subarray(0, body.length / 3));
      await new Promise(setImmediate);
      response.end(body.subarray(body.length / 3));
    };
    const own = use();
    const { headers } = await headOf(own);
    assert.deepEqual(
      headers.map(([name]) => name.toLowerCase()),
      ['x-credential', 'date'],
    );
    assert.equal(new Map(headers).get('x-credential'), 'Basic YW5uO[secret]');
    assert.equal((await bodyOf(own)).toString(), expected);
    assert.equal((await own.result).redactions, FORMS.length + 1);
  });
}

test('an unknown coding is refused, and a broken one ends the body', async () => {
  for (const coding of ['compress', 'aes128gcm', 'gzip, gzip, gzip', 'gzip;q=1']) {
    respond = (response) => response.writeHead(200, { 'content-encoding': coding }).end('x');
    assert.equal(await failureOf(use()), 'coding');
  }
  respond = (response) => response.writeHead(200, { 'transfer-encoding': 'gzip, chunked' }).end('x');
  assert.equal(await failureOf(use()), 'coding');
  for (const coding of ['gzip', 'deflate', 'br', 'zstd']) {
    respond = (response) => response.writeHead(200, { 'content-encoding': coding }).end('this is not compressed');
    const own = use();
    await headOf(own);
    await assert.rejects(bodyOf(own));
    assert.equal((await own.result).ended, 'upstream');
  }
});

test('the start of a value at the end of a body is not lost', async () => {
  respond = (response) => response.end('a sk-t3st+Val');
  const own = use();
  await headOf(own);
  assert.equal((await bodyOf(own)).toString(), 'a sk-t3st+Val');
});

test('a response without a body is complete, whatever coding it names', async () => {
  for (const [method, status] of [
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ] as const) {
    respond = (response) => response.writeHead(status, { 'content-encoding': 'unknown' }).end();
    const own = use({ method });
    assert.equal((await headOf(own)).status, status);
    assert.equal((await bodyOf(own)).length, 0);
    assert.equal((await own.result).ended, 'complete');
  }
});

test('an upstream cannot speak for the vault', async () => {
  const names = ['x-leasehold-error', 'X-Leasehold-Lease', 'x-named'];
  respond = (response) => {
    for (const name of names) response.setHeader(name, '1');
    response.setHeader('connection', 'keep-alive, x-named');
    response.setHeader('set-cookie', ['a=1', `b=${PLAIN_VALUE}`]);
    response.end();
  };
  const own = use({ redact: [PLAIN_VALUE] });
  const { headers } = await headOf(own);
  await bodyOf(own);
  assert.deepEqual(
    headers.filter(([name]) => name.toLowerCase() !== 'date'),
    [
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=[secret]'],
    ],
  );
});

test('an event passes before the next one is sent, compressed or not', async () => {
  const events = 20;
  for (const isMessageEnd of [true, false]) {
    let next: () => void = () => undefined;
    respond = async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let event = 0; event < events; event++) {
        const { promise, resolve } = Promise.withResolvers<void>();
        next = resolve;
        // Each ends like the start of the value, or of its base64.
        response.write(`data: ${event} ${isMessageEnd ? 's' : '. '}\n\n`);
        await promise;
      }
      response.end();
    };
    const own = use({ value: PLAIN_VALUE });
    await headOf(own);
    for (let event = 0; event < events; event++) {
      const [chunk] = await once(own.body, 'data');
      assert.match(String(chunk), new RegExp(`^data: ${event} `));
      next();
    }
    await once(own.body, 'end');
    assert.equal((await own.result).ended, 'complete');
  }
});
