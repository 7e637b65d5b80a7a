// Random answers of receivers, of a provider of OpenID Connect, of KMS and of Transit fail their exchange with the
// documented error, and nothing else, in one process with the flags of the server.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Dice, newSeed } from '../kit/dice.ts';
import { scaled } from '../kit/scale.ts';
import { type Body, fuzzPeer, oddJson, wellFormed } from './hostile-receivers.ts';
import type { Job } from './peers.ts';

const seed = newSeed();
const wanted = scaled(1000, 50_000);
const SECRET = Buffer.alloc(32).toString('base64');

/** Sign-ins that came as far as the exchange of their code. */
let tokensAsked = 0;

const BODIES: Readonly<Record<Job['kind'], Body>> = {
  receiver: (_request, _url, dice) => oddJson(dice, { partialSuccess: { rejectedLogRecords: '0' } }),
  kms: (_request, _url, dice) =>
    oddJson(dice, { Plaintext: SECRET, KeyId: 'a', __type: 'com.amazonaws.kms#NotFoundException' }),
  transit: (_request, _url, dice) => oddJson(dice, { data: { plaintext: SECRET }, errors: [] }),
  oidc(request, url, dice) {
    const paths = { authorization_endpoint: `${url}/auth`, token_endpoint: `${url}/token`, jwks_uri: `${url}/jwks` };
    const metadata = { issuer: url, ...paths };
    // Usually as it should be, so that the other endpoints are asked.
    if (request.startsWith('GET /.well-known'))
      return dice.chance(0.7) ? wellFormed(JSON.stringify(metadata)) : oddJson(dice, metadata);
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

for (const [index, kind] of (['receiver', 'kms', 'transit', 'oidc'] as const).entries()) {
  test(`${wanted} answers of a hostile peer: ${kind} (SEED=${seed})`, (t) => check(t, kind, new Dice(seed + index)));
}
