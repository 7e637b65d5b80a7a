// Configuration, and the addresses on which the server listens. SOURCE: docs/decisions.md, "The process".

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { get, request } from 'node:http';
import { get as getSecurely } from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfiguration } from '../../src/server/configuration.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

test('plain HTTP outside loopback is rejected unless TLS is configured or --insecure-http is given', () => {
  const start = (...args: string[]) => readConfiguration(['--listen', ...args], {});
  for (const address of ['0.0.0.0:1', '192.0.2.1:1', '[::]:1', 'vault.example:1']) {
    assert.throws(() => start(address), /Plain HTTP/);
    assert.notEqual(start(address, '--insecure-http'), null);
    assert.notEqual(start(address, '--tls-cert', 'c', '--tls-key', 'k'), null);
  }
  for (const address of ['127.0.0.1:1', '127.0.0.9:1', 'localhost:1', '[::1]:1', 'unix:s'])
    assert.notEqual(start(address), null);
});

test('the server listens on a Unix socket, and remote_addr is null there', async (t) => {
  const directory = temporaryDirectory(t);
  const socketPath = join(directory, 's');
  const service = await startTestService(t, ['--listen', `unix:${socketPath}`], join(directory, 'data'));
  const headers = { host: 'localhost', authorization: `Bearer ${service.adminToken}` };
  const fetchOver = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      request({ socketPath, path, headers }, (response) => {
        response.setEncoding('utf8').on('data', (text) => resolve(text));
      })
        .on('error', reject)
        .end();
    });
  await fetchOver('/api/v1/credentials');
  const [entry] = JSON.parse(await fetchOver('/api/v1/audit?limit=1')).data;
  assert.deepEqual([entry.event_type, entry.remote_addr], ['credential.list', null]);
});

test('with a certificate the server accepts only TLS', async (t) => {
  const { flags, certFile } = makeCertificate(t);
  const service = await startTestService(t, flags);
  assert.match(service.address, /^https:/);
  const status = await new Promise((resolve, reject) => {
    getSecurely(`${service.address}/api/v1/health`, { ca: readFileSync(certFile), agent: false }, (response) => {
      resolve(response.resume().statusCode);
    }).on('error', reject);
  });
  assert.equal(status, 200);
  await assert.rejects(
    new Promise((resolve, reject) => {
      get(`${service.address.replace('https', 'http')}/api/v1/health`, { agent: false }, resolve).on('error', reject);
    }),
  );
});
