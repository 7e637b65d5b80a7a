// Fuzzing over the route table and byte by byte: no response is a 5xx, every error has
// the documented shape, and the server stays healthy. `npm run test:weekly` runs many more cases.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import { runs, wellFormedText } from '../kit/property.ts';
import { toResponse } from '../kit/raw.ts';
import { assertSound, type RequestParts, startFixture } from './fixture.ts';

const fixture = await startFixture({ after });
const { admin, anonymous, address } = fixture.service;
const { hostname, port } = new URL(address);
/** Its name is not among the known names below, so that its session stays valid. */
const lasting = await fixture.service.agent('outsider', { 'open/*': ['retrieve', 'list', 'store', 'delete'] });

/** Sends the bytes and half-closes, so that the server does not wait; resolves to everything received. */
function sendAll(bytes: Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.end(bytes));
    const timer = setTimeout(() => reject(new Error(`no end to ${JSON.stringify(String(bytes))}`)), 120_000);
    socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks).toString('utf8'));
    });
  });
}

/** Asserts the general rules for every response on the connection. */
function assertAllSound(text: string): void {
  for (const [part, status = ''] of text.matchAll(/HTTP\/1\.1 (\d{3}) .*?(?=HTTP\/1\.1 \d{3} |$)/gs)) {
    const border = part.indexOf('\r\n\r\n');
    if (status === '100' || border === -1) continue;
    const raw = { status: Number(status), head: part.slice(0, border), body: part.slice(border + 4) };
    assertSound(toResponse(raw));
  }
}

const UUID = '01890000-0000-7000-8000-000000000000';

const token = fc.constantFrom(
  undefined,
  undefined,
  undefined,
  undefined,
  lasting.token,
  lasting.token,
  null,
  'lhs_none',
);
const known = fc.constantFrom(
  ...['open/stored', 'open/*', '*', 'insider', 'insider-0', 'agent:insider', 'agent:*', 'retrieve', 'list', 'admin'],
  ...['asc', 'active'],
  ...['metadata', '1', '0', '1000', '2026-01-01', UUID, 'AAAA', '__proto__', 'constructor'],
);
const text = fc.oneof(known, fc.string({ maxLength: 20 }), wellFormedText(20));
/** WHY not fast-check's arbitrary for paths: building it takes two seconds. */
const path = fc
  .array(fc.constantFrom('a', 'Z', '9', '/', '.', '..', '%2F', '%00', '%C3%A9', '%', '-', '~', '@', ';', ':'), {
    maxLength: 12,
  })
  .map((parts) => parts.join(''));
const word = fc.oneof({ weight: 4, arbitrary: known }, fc.string({ maxLength: 8 }), path);
const spelled = word.map((value) => encodeURIComponent(value.toWellFormed()).replaceAll('%2F', '/'));
const scalar = fc.oneof(text, text, fc.integer(), fc.double(), fc.boolean(), fc.constant(null));
const value = fc.oneof(
  { weight: 6, arbitrary: known },
  { weight: 2, arbitrary: fc.array(known, { minLength: 1, maxLength: 3 }) },
  { weight: 2, arbitrary: scalar },
  fc.jsonValue({ maxDepth: 3 }),
);

/** Plausible values by the name of the field or parameter. */
const USUAL: Readonly<Record<string, unknown>> = {
  path: 'open/stored',
  value: 'v',
  type: 'token',
  description: 'd',
  name: 'insider',
  principal: 'agent:insider',
  resources: ['open/*'],
  actions: ['retrieve', 'list'],
  max_ttl: 60,
  agent: 'insider',
  resource: 'open/stored',
  action: 'retrieve',
  agent_name: 'insider',
  challenge_id: UUID,
  signature: 'AAAA',
  lease_id: UUID,
  limit: '10',
  offset: '1',
  public_key: Buffer.alloc(32, 9).toString('base64'),
  order: 'asc',
  since: '2026-01-01',
  until: '2099-01-01T00:00:00+02:00',
  status: 'active',
  version: '1',
  ttl: '60',
  view: 'metadata',
  event_type: 'auth.verify',
  result: 'denied',
};
const mostly = <T>(usual: T, other: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });
const inUrl = (name: string) => mostly(String(USUAL[name] ?? '1'), spelled);

/** A locked vault rejects every request with 503, and so does a backup while another one is taken. */
const SERVED = ROUTES.filter(({ id }) => id !== 'lockVault' && id !== 'takeBackup');

/** A route's request with random parts, often nearly valid so that it passes early checks. */
const fromTheTable = fc.constantFrom(...SERVED).chain((route) => {
  const fields = Object.keys(route.body?.properties ?? {});
  const filled = Object.fromEntries(fields.map((field) => [field, mostly(USUAL[field], value)]));
  const pairs = [...Object.keys(route.query.properties), 'extra'].map((name) =>
    inUrl(name).map((given) => `${name}=${given}`),
  );
  const params = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => inUrl(name));
  const query = fc.oneof(
    fc.constant([]),
    fc.oneof(...pairs).map((pair) => [pair]),
    fc.array(fc.oneof(...pairs), { maxLength: 3 }),
  );
  return fc.record({
    method: mostly<string>(route.method, fc.constantFrom('GET', 'HEAD', 'PUT', 'PATCH', 'DELETE')),
    target: fc
      .tuple(fc.constantFrom(route.path, ...route.aliases), fc.tuple(...params), query)
      .map(
        ([path, [part = ''], given]) =>
          path.replace(/\{\w+\}/, () => part) + (given.length === 0 ? '' : `?${given.join('&')}`),
      ),
    token,
    body: mostly(
      route.method === 'GET'
        ? fc.constant('')
        : fc.record(filled).map((all) => (fields.length === 0 ? '' : JSON.stringify(all))),
      fc.constantFrom(
        fc.record(filled, { requiredKeys: [] }).map((some) => JSON.stringify(some)),
        fc.json({ maxDepth: 4 }),
        wellFormedText(60),
      ),
    ).chain((body) => body),
    type: mostly<string | null | undefined>(
      undefined,
      fc.constantFrom(null, 'text/plain', 'application/json;charset=utf-8', 'application/json,'),
    ),
    headers: mostly<string[]>(
      [],
      fc.constantFrom(['If-None-Match: *'], ['If-None-Match: "a"'], ['Expect: 100-continue'], ['Accept: text/html']),
    ),
  });
});

async function assertWell(): Promise<void> {
  assert.deepEqual((await anonymous.get('/api/v1/health')).body, { data: { status: 'ok' } });
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
}

test('no generated request to any route gets a 5xx or a malformed response', async () => {
  await fc.assert(
    fc.asyncProperty(fromTheTable, async (asking) => {
      assertAllSound(await sendAll(fixture.bytesOf(asking as RequestParts)));
    }),
    runs(150, 2000),
  );
  await assertWell();
});

const HONEST = SERVED.map((route) => {
  const target = route.path.replace('{path}', 'open/stored').replaceAll(/\{\w+\}/g, 'insider');
  return fixture.bytesOf({ method: route.method, target, body: route.method === 'GET' ? '' : '{"agent":"insider"}' });
});

/** A mutation of a valid request's bytes: `at` and `count` are fractions of its length. */
const mutation = fc.record({
  kind: fc.constantFrom('cut', 'flip', 'insert', 'repeat', 'replace'),
  at: fc.nat({ max: 10_000 }).map((n) => n / 10_000),
  count: fc.nat(12),
  bytes: fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 12 }),
    fc.constantFrom(
      '\r\n',
      '\r\n\r\n',
      '\u0000',
      ' ',
      ':',
      '%',
      '../',
      'HTTP/1.1',
      'Content-Length: 5\r\n',
      'Transfer-Encoding: chunked\r\n',
    ),
  ),
});

function mutate(
  bytes: Buffer,
  { kind, at, count, bytes: given }: typeof mutation extends fc.Arbitrary<infer M> ? M : never,
) {
  const start = Math.floor(at * bytes.length);
  const [head, tail] = [bytes.subarray(0, start), bytes.subarray(start)];
  const inserted = Buffer.from(given as Uint8Array);
  if (kind === 'cut') return Buffer.concat([head, tail.subarray(count)]);
  if (kind === 'flip')
    return Buffer.concat([head, tail.subarray(0, 1).map((byte) => byte ^ (1 << (count % 8))), tail.subarray(1)]);
  if (kind === 'repeat') return Buffer.concat([head, ...Array<Buffer>(count).fill(tail.subarray(0, 20)), tail]);
  return Buffer.concat([head, inserted, kind === 'insert' ? tail : tail.subarray(inserted.length)]);
}

test('no mutation of a valid request gets a 5xx or a malformed response', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...HONEST),
      fc.array(mutation, { minLength: 1, maxLength: 4 }),
      async (honest, mutations) => {
        const bytes = mutations.reduce(mutate, honest);
        fc.pre(!bytes.includes('/api/v1/lock')); // which /unlock is without two of its letters
        assertAllSound(await sendAll(bytes));
      },
    ),
    runs(80, 1000),
  );
  await assertWell();
});

test('arbitrary bytes get a response or a closed connection', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => assertAllSound(await sendAll(bytes))),
    runs(60, 300),
  );
  await assertWell();
});
