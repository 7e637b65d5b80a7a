// Random answers of receivers, of a provider of OpenID Connect, of KMS and of Transit fail their exchange with the
// documented error, and nothing else, in one process with the flags of the server. A server that has all of them at
// once still serves.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { randomResponse } from '../kit/hostile-bytes.ts';
import { startHostilePeer } from '../kit/hostile-peer.ts';
import { webhookStream } from '../kit/log-receivers.ts';
import { startProcess } from '../kit/process.ts';
import { scaled } from '../kit/scale.ts';
import { AUTH, openBrowser } from '../kit/sign-in.ts';
import { type Body, fuzzPeer, oddJson, wellFormed } from './hostile-receivers.ts';
import type { Job } from './peers.ts';

const seed = newSeed();
const wanted = scaled(1000, 50_000);
/** Rounds of each of four callers. WHY few: the server waits after each failure. */
const ROUNDS = scaled(2, 5);
const KINDS = ['receiver', 'kms', 'transit', 'oidc'] as const;
const AWS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'eu-west-1' };
const SECRET = Buffer.alloc(32).toString('base64');

const METADATA_REQUEST = 'GET /.well-known';

function metadataOf(url: string): Readonly<Record<string, string>> {
  const paths = { authorization_endpoint: `${url}/auth`, token_endpoint: `${url}/token`, jwks_uri: `${url}/jwks` };
  return { issuer: url, ...paths };
}

/** Sign-ins that came as far as the exchange of their code. */
let tokensAsked = 0;

const BODIES: Readonly<Record<Job['kind'], Body>> = {
  receiver: (_request, _url, dice) => oddJson(dice, { status: 'ok' }),
  kms: (_request, _url, dice) =>
    oddJson(dice, { Plaintext: SECRET, KeyId: 'a', __type: 'com.amazonaws.kms#NotFoundException' }),
  transit: (_request, _url, dice) => oddJson(dice, { data: { plaintext: SECRET }, errors: [] }),
  oidc(request, url, dice) {
    // Usually as it should be, so that the other endpoints are asked.
    if (request.startsWith(METADATA_REQUEST))
      return dice.chance(0.7) ? wellFormed(JSON.stringify(metadataOf(url))) : oddJson(dice, metadataOf(url));
    if (request.startsWith('GET /jwks'))
      return oddJson(dice, { keys: [{ kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'a' }] });
    if (request.startsWith('POST /token')) tokensAsked += 1;
    const part = (text: string): string => Buffer.from(text).toString('base64url');
    const claims = oddJson(dice, { iss: url, aud: 'leasehold', sub: 'a', nonce: 'n', exp: 4_000_000_000, iat: 1 });
    const token = [part(oddJson(dice, { alg: 'RS256', kid: 'a' })), part(claims), 'AAAA'].join('.');
    return oddJson(dice, { access_token: 'a', token_type: 'bearer', id_token: token });
  },
};

async function check(t: TestContext, kind: Job['kind'], dice: Dice): Promise<void> {
  const started = performance.now();
  const { answered, done, failed } = await fuzzPeer(t, kind, dice, wanted, BODIES[kind]);
  t.diagnostic(`${answered} answers, ${done} taken, in ${Math.round((performance.now() - started) / 1000)} s`);
  assert.equal(done + failed, wanted);
  // Otherwise the answers would be too odd to be read.
  assert.ok(kind === 'oidc' ? tokensAsked > wanted / 10 : done > 0, `${tokensAsked} codes`);
}

/**
 * A peer of the kind, which answers as in the test of its own, but always with the right metadata. WHY: a server that
 * could not read them rejects sign-ins for seconds, and none would ask the other endpoints.
 */
async function startPeer(t: TestContext, kind: Job['kind'], dice: Dice): Promise<{ url: string; answered(): number }> {
  let url = '';
  const peer = await startHostilePeer(t, (request) => {
    if (request.startsWith(METADATA_REQUEST)) return wellFormed(JSON.stringify(metadataOf(url)));
    const given = BODIES[kind](request, url, dice);
    return typeof given === 'string' ? randomResponse(dice, given) : given;
  });
  url = `http://127.0.0.1:${peer.port}`;
  return { url, answered: peer.answered };
}

test(`the same server serves, with hostile peers of every kind (SEED=${seed})`, async (t) => {
  const peers = new Map(
    await Promise.all(
      KINDS.map(async (kind, at) => [kind, await startPeer(t, kind, new Dice(seed + 10 + at))] as const),
    ),
  );
  const urlOf = (kind: Job['kind']): string => peers.get(kind)?.url ?? assert.fail(kind);
  const tokenFile = join(temporaryDirectory(t), 'token');
  writeFileSync(tokenFile, 'token', { mode: 0o600 });
  const dataDir = join(temporaryDirectory(t), 'data');
  const flags = [
    ...['--log-level', 'silent'],
    ...webhookStream(t, `${urlOf('receiver')}/`),
    ...['--oidc-issuer', urlOf('oidc'), '--oidc-client-id', 'leasehold'],
    ...['--transit-address', urlOf('transit'), '--transit-token-file', tokenFile, '--aws-kms-endpoint', urlOf('kms')],
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

for (const [index, kind] of KINDS.entries()) {
  test(`${wanted} answers of a hostile peer: ${kind} (SEED=${seed})`, (t) => check(t, kind, new Dice(seed + index)));
}
