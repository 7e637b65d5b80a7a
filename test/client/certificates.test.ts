/** A server whose certificate a private authority issued: trusted only where the caller names the authority. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Leasehold } from '../../src/client/leasehold.ts';
import { caFetch } from '../../src/client/node-fetch.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { startTestService } from '../kit/service.ts';
import { withCode } from './fixture.ts';

test('with the authority every kind of call works, and with another authority it is rejected', async (t) => {
  const certificate = makeCertificate(t);
  const service = await startTestService(t, certificate.flags);
  const ca = readFileSync(certificate.certFile, 'utf8');
  const options = { address: service.address, token: service.adminToken };
  const vault = new Leasehold({ ...options, ca });
  await vault.credentials.store({ path: 'a/b', value: 'zwölf' });
  assert.equal((await vault.credentials.retrieve('a/b')).value.reveal(), 'zwölf');
  const exported = await Array.fromAsync((await vault.audit.export()).entries);
  assert.equal(exported.at(-1)?.event_type, 'credential.retrieve');
  await vault.credentials.delete('a/b');
  await assert.rejects(vault.credentials.retrieve('a/b'), withCode('NOT_FOUND', 404));
  await assert.rejects(vault.policies.list({}, { signal: AbortSignal.abort(new Error('enough')) }), /enough/);

  const other = readFileSync(makeCertificate(t).certFile, 'utf8');
  for (const client of [new Leasehold(options), new Leasehold({ ...options, ca: other })]) {
    await assert.rejects(client.health(), withCode('BAD_CERTIFICATE', null));
  }
});

test('a certificate for another name is rejected, and the error says so', async (t) => {
  const certificate = makeCertificate(t, 'DNS:vault.example.org');
  const { address } = await startTestService(t, certificate.flags);
  const vault = new Leasehold({ address, ca: readFileSync(certificate.certFile, 'utf8') });
  await assert.rejects(vault.health(), /the certificate of \S+ is not trusted \(ERR_TLS_CERT_ALTNAME_INVALID\)/);
});

test('an unusable authority is rejected before any call', () => {
  const ca = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  const wrong = (options: object) => () => new Leasehold({ address: 'https://127.0.0.1:1', ...options });
  assert.throws(wrong({ ca: 'no certificate' }), /ca: must be one or more certificates in PEM/);
  assert.throws(wrong({ ca, fetch }), /give ca or fetch, not both/);
  assert.throws(wrong({ ca, address: 'http://127.0.0.1:1' }), /ca: requires an https:\/\/ address/);
});

test('with an authority a request is never sent in plain text', async (t) => {
  const { address } = await startTestService(t);
  const fetchWithCa = caFetch(readFileSync(makeCertificate(t).certFile, 'utf8'));
  assert.equal((await fetch(`${address}/livez`)).status, 200);
  // Before a connection is made.
  await assert.rejects(async () => fetchWithCa(`${address}/livez`), { code: 'ERR_INVALID_PROTOCOL' });
});
