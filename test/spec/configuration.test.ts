// Configuration, and what the service listens on. SOURCE: docs/decisions.md, "The process".

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { get, request } from 'node:http';
import { get as getSecurely } from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfiguration } from '../../src/server/configuration.ts';
import { SERVER_FLAGS } from '../../src/server/flag-table.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

test('a flag overrides the environment, which overrides the default', () => {
  const listenOf = (args: string[], environment: Record<string, string>) =>
    readConfiguration(args, environment)?.listen;
  const at = (port: number) => ({ kind: 'tcp', host: '127.0.0.1', port });
  assert.deepEqual(listenOf([], {}), at(7700));
  assert.deepEqual(listenOf([], { LEASEHOLD_LISTEN: '127.0.0.1:2' }), at(2));
  assert.deepEqual(listenOf(['--listen', '127.0.0.1:1'], { LEASEHOLD_LISTEN: '127.0.0.1:2' }), at(1));
  assert.match(readConfiguration([], {})?.dataDir ?? '', /\/\.leasehold$/);
});

test('every flag can be set in the environment', () => {
  const flags = Object.keys(SERVER_FLAGS).filter((name) => name !== 'database-file');
  const values: Record<string, string> = {
    'admin-retrieve': 'deny',
    'print-token': 'never',
    'accept-open-modes': '1',
    listen: '127.0.0.1:1',
    'denials-per-minute': '60',
    'sessions-per-hour': '60',
    'leases-per-hour': '60',
    'stored-mib-per-hour': '60',
    'versions-kept': '3',
    'trusted-proxy': '10.0.0.0/8',
    'target-networks': '10.0.0.0/8',
    'log-stream': 'file:/log.ndjson',
    'checkpoint-file': '/kept.log',
    'transit-address': 'https://transit.example',
    'aws-kms-endpoint': 'https://kms.example',
    'approval-webhook': 'https://hooks.example/approvals',
    'console-url': 'https://vault.example',
    'oidc-issuer': 'https://login.example',
    'log-level': 'error',
    'insecure-http': '1',
    'accept-clock': '1',
    'accept-rollback': '1',
    'no-migrate': '1',
    database: 'postgres://a@127.0.0.1/c',
  };
  // Mutually exclusive with --database.
  const given = Object.fromEntries(flags.map((name) => [name, values[name] ?? 'given']));
  const environment = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [`LEASEHOLD_${name.toUpperCase().replaceAll('-', '_')}`, value]),
  );
  const args = Object.entries(given).flatMap(([name, value]) => (value === '1' ? [`--${name}`] : [`--${name}`, value]));
  // AWS's own variables are read when a slot is opened.
  const withoutAws = (given: ReturnType<typeof readConfiguration>) => ({
    ...given,
    awsKms: { ...given?.awsKms, environment: null },
  });
  assert.deepEqual(withoutAws(readConfiguration([], environment)), withoutAws(readConfiguration(args, {})));
  assert.notDeepEqual(readConfiguration([], environment), readConfiguration([], {}));
});

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

test('the service listens on a Unix socket, and remote_addr is null there', async (t) => {
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

test('with a certificate the service accepts only TLS', async (t) => {
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
