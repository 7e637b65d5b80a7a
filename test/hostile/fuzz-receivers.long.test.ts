// A server whose webhook receiver, provider of OpenID Connect, KMS and Transit answer with random bytes still serves.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { randomResponse, type Script } from '../kit/hostile-bytes.ts';
import { startHostilePeer } from '../kit/hostile-peer.ts';
import { webhookStream } from '../kit/log-receivers.ts';
import { startProcess } from '../kit/process.ts';
import { scaled } from '../kit/scale.ts';
import { AUTH, openBrowser } from '../kit/sign-in.ts';

const seed = newSeed();
/** Rounds of each of four callers. WHY few: the server waits after each failure. */
const ROUNDS = scaled(2, 5);
const KINDS = ['receiver', 'kms', 'transit', 'oidc'] as const;
type Kind = (typeof KINDS)[number];
const AWS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'eu-west-1' };
const SECRET = Buffer.alloc(32).toString('base64');

/** JSON in which a few members have another type, or names of members of objects. */
function oddJson(dice: Dice, fields: Readonly<Record<string, unknown>>): string {
  const odd = (): unknown =>
    dice.pick<unknown>([null, 0, '', [], {}, true, { toString: 1, valueOf: 1 }, 'x'.repeat(3000), -1e99, '\u0000']);
  const entries = Object.entries(fields).map(([name, value]) => [name, dice.chance(0.1) ? odd() : value] as const);
  const text = JSON.stringify(Object.fromEntries(entries));
  if (dice.chance(0.7)) return text;
  return dice.pick([
    text.replace('{', '{"__proto__":{"status":200},"constructor":{"prototype":{}},'),
    JSON.stringify(odd()),
    text.slice(0, dice.below(text.length)),
    `${'['.repeat(20_000)}`,
    '',
  ]);
}

/** The body of the answer, which is sent as random bytes. */
type Body = (request: string, url: string, dice: Dice) => string;

function wellFormed(body: string): Script {
  const head = ['HTTP/1.1 200 OK', 'Content-Type: application/json', 'Connection: close'];
  const text = [...head, `Content-Length: ${Buffer.byteLength(body)}`, '', body].join('\r\n');
  return { pieces: [Buffer.from(text)], end: 'end' };
}

const METADATA_REQUEST = 'GET /.well-known';

function metadataOf(url: string): Readonly<Record<string, string>> {
  const paths = { authorization_endpoint: `${url}/auth`, token_endpoint: `${url}/token`, jwks_uri: `${url}/jwks` };
  return { issuer: url, ...paths };
}

const BODIES: Readonly<Record<Kind, Body>> = {
  receiver: (_request, _url, dice) => oddJson(dice, { status: 'ok' }),
  kms: (_request, _url, dice) =>
    oddJson(dice, { Plaintext: SECRET, KeyId: 'a', __type: 'com.amazonaws.kms#NotFoundException' }),
  transit: (_request, _url, dice) => oddJson(dice, { data: { plaintext: SECRET }, errors: [] }),
  oidc(request, url, dice) {
    if (request.startsWith('GET /jwks'))
      return oddJson(dice, { keys: [{ kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'a' }] });
    const part = (text: string): string => Buffer.from(text).toString('base64url');
    const claims = oddJson(dice, { iss: url, aud: 'leasehold', sub: 'a', nonce: 'n', exp: 4_000_000_000, iat: 1 });
    const token = [part(oddJson(dice, { alg: 'RS256', kid: 'a' })), part(claims), 'AAAA'].join('.');
    return oddJson(dice, { access_token: 'a', token_type: 'bearer', id_token: token });
  },
};

/**
 * A peer of the kind, which answers with random bytes, except for valid metadata. WHY: a server that could not read
 * them rejects sign-ins for seconds, and none would ask the other endpoints.
 */
async function startPeer(t: TestContext, kind: Kind, dice: Dice): Promise<{ url: string; answered(): number }> {
  let url = '';
  const peer = await startHostilePeer(t, (request) => {
    if (request.startsWith(METADATA_REQUEST)) return wellFormed(JSON.stringify(metadataOf(url)));
    return randomResponse(dice, BODIES[kind](request, url, dice));
  });
  url = `http://127.0.0.1:${peer.port}`;
  return { url, answered: peer.answered };
}

test(`random answers of peers of every kind leave the same server serving (SEED=${seed})`, async (t) => {
  const peers = new Map(
    await Promise.all(
      KINDS.map(async (kind, at) => [kind, await startPeer(t, kind, new Dice(seed + 10 + at))] as const),
    ),
  );
  const urlOf = (kind: Kind): string => peers.get(kind)?.url ?? assert.fail(kind);
  const tokenFile = join(temporaryDirectory(t), 'token');
  writeFileSync(tokenFile, 'token', { mode: 0o600 });
  const dataDir = join(temporaryDirectory(t), 'data');
  const flags = [
    '--log-level',
    'silent',
    ...webhookStream(t, `${urlOf('receiver')}/`),
    '--oidc-issuer',
    urlOf('oidc'),
    '--oidc-client-id',
    'leasehold',
    '--transit-address',
    urlOf('transit'),
    '--transit-token-file',
    tokenFile,
    '--aws-kms-endpoint',
    urlOf('kms'),
  ];
  const process = await startProcess(t, dataDir, flags, { environment: AWS });
  const admin = createClient(process.address, process.adminToken);
  const browser = openBrowser(process);
  let signIns = 0;
  const rounds = async (): Promise<void> => {
    for (let round = 0; round < ROUNDS; round++) {
      const asked = await browser.post(`${AUTH}/oidc/options`, {});
      const { state } = asked.body?.data ?? {};
      if (state !== undefined) {
        signIns += 1;
        await browser.post(`${AUTH}/oidc/verify`, { code: 'code', state });
      }
      for (const [kind, key] of [
        ['transit', 'a'],
        ['aws-kms', 'alias/a'],
      ] as const)
        await admin.post('/api/v1/key/slots', { name: `${kind}-${round}`, kind, key });
    }
  };
  await Promise.all(Array.from({ length: 4 }, rounds));
  const counts = [...peers].map(([kind, { answered }]) => `${kind} ${answered()}`);
  t.diagnostic(`${counts.join(', ')}; ${signIns} sign-ins`);
  assert.ok(signIns === 4 * ROUNDS && [...peers.values()].every(({ answered }) => answered() > 0), counts.join());
  assert.equal((await admin.get('/api/v1/health')).status, 200, process.output());
  assert.equal(process.child.exitCode, null, process.output());
});
