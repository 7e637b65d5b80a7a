// Request lines and Hosts that other servers normalise or trust.
// SOURCE: decisions, "HTTP"; security, "Node's HTTP defaults".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { startTestService } from '../kit/service.ts';
import { type RequestParts, startFixture } from './fixture.ts';

const fixture = await startFixture({ after });

test('a target that is not a plain path is rejected before it is resolved', () =>
  fixture.assertUnchangedBy(() =>
    fixture.assertCodes(
      {
        'http://localhost/api/v1/credentials': 'INVALID_REQUEST',
        'https://localhost/api/v1/credentials': 'INVALID_REQUEST',
        'http:/api/v1/credentials': 'INVALID_REQUEST',
        '//localhost/api/v1/credentials': 'INVALID_REQUEST',
        '//api/v1/credentials': 'INVALID_REQUEST',
        '/\\localhost/api/v1/credentials': 'INVALID_REQUEST',
        '\\api\\v1\\credentials': 'INVALID_REQUEST',
        '/api\\v1\\credentials': 'INVALID_REQUEST',
        '/api/v1/..\\v1/credentials': 'INVALID_REQUEST',
        '*': 'INVALID_REQUEST',
        'api/v1/credentials': 'INVALID_REQUEST',
        'localhost:80': 'INVALID_REQUEST',
        '?type=a': 'INVALID_REQUEST',
        '/api/v1/credentials#part': 'INVALID_REQUEST',
        '/api/v1/cred entials': 'INVALID_REQUEST',
        '/api/v1/cred\tentials': 'INVALID_REQUEST',
        '/api/v1/cred\u0000entials': 'INVALID_REQUEST',
        '/api/v1/cred\u007fentials': 'INVALID_REQUEST',
        '/api/v1/credentials/\u00c0\u00ae': 'INVALID_REQUEST',
        '/api/v1/credentials/\u00e9': 'INVALID_REQUEST',
      },
      (target) => ({ target }),
    ),
  ));

test('a route has one spelling: dots, slashes and case are not normalised', () =>
  fixture.assertUnchangedBy(() =>
    fixture.assertCodes(
      {
        '/api/v1//credentials': 'NOT_FOUND',
        '/api//v1/credentials': 'NOT_FOUND',
        '/api/v1/./credentials': 'NOT_FOUND',
        '/api/v1/agents/../credentials': 'NOT_FOUND',
        '/api/v1/health/../credentials': 'NOT_FOUND',
        '/api/v1/%2e%2e/v1/credentials': 'NOT_FOUND',
        '/api%2fv1%2fcredentials': 'NOT_FOUND',
        '/api/v1/credentials;a=b': 'NOT_FOUND',
        '/api/v1;/credentials': 'NOT_FOUND',
        '/api/v1/credentials%20': 'NOT_FOUND',
        '/api/v1/credentials%00': 'NOT_FOUND',
        '/api/v1/credentials%3ftype=a': 'NOT_FOUND',
        '/API/v1/credentials': 'NOT_FOUND',
        '/api/V1/CREDENTIALS': 'NOT_FOUND',
        '/api/v1/credentials.json': 'NOT_FOUND',
        // The error names the slash.
        '/api/v1/health/': 'INVALID_REQUEST',
        '/api/v1/agents/insider/': 'INVALID_REQUEST',
        '/api/v1/agents/insider/key': 'NOT_FOUND',
        '/api/v2/credentials': 'NOT_FOUND',
        '/': 'NOT_FOUND',
        '/api/v1/health%': 'INVALID_REQUEST',
        '/api/v1/health%zz': 'INVALID_REQUEST',
        '/api/v1/%ff': 'INVALID_REQUEST',
      },
      (target) => ({ target }),
    ),
  ));

test('fixed segments of a route must be literal; parameters may be percent-encoded', () =>
  fixture.assertUnchangedBy(async () => {
    const spellings = [
      ...['/api/v1/credential%73', '/%61pi/v1/credentials', '/api/v1/%61gents', '/api/v1/%63redentials/open/stored'],
      ...['/api/v1/audit/verif%79', '/api/v1/audit/export%3f', '/%6fpenapi.json', '/api/v1/%68ealth'],
    ];
    for (const token of [null, fixture.service.adminToken]) {
      for (const target of spellings) assert.equal(await fixture.codeOf({ target, token }), 'NOT_FOUND', target);
      const renew = '/api/v1/leases/01890000-0000-7000-8000-000000000000/rene%77';
      assert.equal(await fixture.codeOf({ method: 'POST', target: renew, token }), 'NOT_FOUND');
      const simulate = { method: 'POST', target: '/api/v1/policies/simulat%65', token };
      assert.equal(await fixture.codeOf(simulate), 'METHOD_NOT_ALLOWED', 'it is a policy of that name');
    }
    assert.equal(await fixture.codeOf({ target: '/api/v1/agents/%69nsider' }), '200');
  }));

test('invalid percent-encoding is 400, in a path and in a query', () =>
  fixture.assertUnchangedBy(async () => {
    for (const target of ['/api/v1/audit?resource=%zz', '/api/v1/audit?resource=%', '/api/v1/audit?%ff=a']) {
      assert.equal(await fixture.codeOf({ target }), 'INVALID_REQUEST', target);
    }
    for (const path of ['open/%c0%af', 'open/%e2%82', '%2', '%ed%a0%80']) {
      assert.equal(await fixture.codeOf({ target: `/api/v1/credentials/${path}` }), 'INVALID_REQUEST', path);
    }
  }));

test('an unsupported method is 405 with Allow, including HEAD and OPTIONS', () =>
  fixture.assertUnchangedBy(async () => {
    const methods = ['HEAD', 'OPTIONS', 'PATCH', 'TRACE', 'PUT', 'POST'];
    for (const method of methods) {
      const answer = await fixture.ask({ method, target: '/api/v1/credentials/open/stored' });
      assert.equal(answer.status, 405, method);
      assert.equal(answer.headers.get('allow'), 'GET, DELETE', method);
    }
  }));

test('a method that no route supports is rejected for every caller', () =>
  fixture.assertUnchangedBy(() =>
    fixture.assertCodes(
      {
        PROPFIND: 'METHOD_NOT_ALLOWED',
        LOCK: 'METHOD_NOT_ALLOWED',
        SEARCH: 'METHOD_NOT_ALLOWED',
        SOURCE: 'METHOD_NOT_ALLOWED',
        get: 'INVALID_REQUEST',
        GETT: 'INVALID_REQUEST',
        'G ET': 'INVALID_REQUEST',
        'GET\t': 'INVALID_REQUEST',
        '': 'INVALID_REQUEST',
        CONNECT: 'METHOD_NOT_ALLOWED',
      },
      (method) => ({ method }),
    ),
  ));

test('no header overrides the request line', () =>
  fixture.assertUnchangedBy(async () => {
    const headers = [
      'X-HTTP-Method-Override: DELETE',
      'X-HTTP-Method: DELETE',
      'X-Method-Override: DELETE',
      'X-Original-URL: /api/v1/credentials/open/stored',
      'X-Rewrite-URL: /api/v1/credentials/open/stored',
      'X-Forwarded-Host: evil.com',
      'X-Forwarded-Prefix: /api',
      'Forwarded: host=evil.com',
    ];
    const answer = await fixture.ask({ method: 'GET', target: '/api/v1/agents', headers });
    assert.deepEqual(
      answer.body.data.map(({ name }: { name: string }) => name),
      ['insider'],
    );
  }));

test('only HTTP/1.1 and HTTP/1.0 are accepted', () =>
  fixture.assertUnchangedBy(() =>
    fixture.assertCodes(
      {
        'GET /api/v1/health HTTP/1.1': '200',
        'GET /api/v1/health HTTP/1.0': '200',
        'GET /api/v1/health': 'INVALID_REQUEST',
        'GET /api/v1/health HTTP/0.9': 'INVALID_REQUEST',
        'GET /api/v1/health HTTP/2.0': 'INVALID_REQUEST',
        'GET /api/v1/health HTTP/1.2': 'INVALID_REQUEST',
        'GET /api/v1/health HTTP/11': 'INVALID_REQUEST',
        'GET /api/v1/health HTTP/1.1.1': 'INVALID_REQUEST',
        'GET /api/v1/health http/1.1': 'INVALID_REQUEST',
        'GET /api/v1/health HTTPS/1.1': 'INVALID_REQUEST',
        'GET /api/v1/health HTTP/1.1 HTTP/1.1': 'INVALID_REQUEST',
        'PRI * HTTP/2.0': 'INVALID_REQUEST',
        '\u0016\u0003\u0001\u0000\u00a5': 'INVALID_REQUEST',
      },
      (line) => ({ line }),
    ),
  ));

test('a Host name that DNS rebinding could use is 421 in every spelling', () =>
  fixture.assertUnchangedBy(() =>
    fixture.assertCodes(
      {
        localhost: '200',
        'LocalHost:7700': '200',
        '127.0.0.1': '200',
        '127.0.0.1:65535': '200',
        '[::1]': '200',
        '[::1]:7700': '200',
        'evil.com': 'MISDIRECTED_REQUEST',
        'evil.com:7700': 'MISDIRECTED_REQUEST',
        'localhost.evil.com': 'MISDIRECTED_REQUEST',
        'localhost:7700.evil.com': 'MISDIRECTED_REQUEST',
        '127.0.0.1.nip.io': 'MISDIRECTED_REQUEST',
        '127.0.0.1.': 'MISDIRECTED_REQUEST',
        'localhost.': 'MISDIRECTED_REQUEST',
        'localhost:': 'MISDIRECTED_REQUEST',
        'localhost:port': 'MISDIRECTED_REQUEST',
        'localhost:1:2': 'MISDIRECTED_REQUEST',
        'localhost:999999': 'MISDIRECTED_REQUEST',
        '0x7f.1': 'MISDIRECTED_REQUEST',
        '127.1': 'MISDIRECTED_REQUEST',
        '2130706433': 'MISDIRECTED_REQUEST',
        '0177.0.0.1': 'MISDIRECTED_REQUEST',
        '::1': 'MISDIRECTED_REQUEST',
        '[::1': 'MISDIRECTED_REQUEST',
        '[::1].evil.com': 'MISDIRECTED_REQUEST',
        '[127.0.0.1]': 'MISDIRECTED_REQUEST',
        'localhost@evil.com': 'MISDIRECTED_REQUEST',
        'evil.com@localhost': 'MISDIRECTED_REQUEST',
        'user:word@127.0.0.1': 'MISDIRECTED_REQUEST',
        'localhost, evil.com': 'MISDIRECTED_REQUEST',
        'localhost evil.com': 'MISDIRECTED_REQUEST',
        'localhost#evil.com': 'MISDIRECTED_REQUEST',
        'localhost/evil.com': 'MISDIRECTED_REQUEST',
        'http://localhost': 'MISDIRECTED_REQUEST',
        'l\u00f6calhost': 'MISDIRECTED_REQUEST',
        '': 'MISDIRECTED_REQUEST',
      },
      (host) => ({ target: '/api/v1/health', token: null, host }),
    ),
  ));

test('a missing or repeated Host is 400, in HTTP/1.0 too', () =>
  fixture.assertUnchangedBy(async () => {
    const line = 'GET /api/v1/credentials HTTP/1.0';
    assert.equal(await fixture.codeOf({ host: null }), 'INVALID_REQUEST');
    assert.equal(await fixture.codeOf({ host: null, line }), 'INVALID_REQUEST');
    for (const second of ['Host: localhost', 'HOST: localhost', 'host: evil.com']) {
      assert.equal(await fixture.codeOf({ headers: [second] }), 'INVALID_REQUEST', second);
    }
    for (const line of ['Host : localhost', ' Host: localhost', 'Host\t: localhost']) {
      assert.equal(await fixture.codeOf({ host: null, headers: [line] }), 'INVALID_REQUEST', line);
    }
  }));

test('a configured public name is accepted, but no part or extension of it', async (t) => {
  const named = await startFixture(t, ['--public-name', 'vault.example, Keys.Example']);
  const codes = async (hosts: readonly string[]) =>
    Promise.all(hosts.map((host) => named.codeOf({ target: '/api/v1/health', token: null, host })));
  assert.deepEqual(await codes(['vault.example', 'VAULT.example:7700', 'keys.example']), ['200', '200', '200']);
  assert.deepEqual(
    new Set(await codes(['example', 'a.vault.example', 'vault.example.com', 'vaultXexample'])),
    new Set(['MISDIRECTED_REQUEST']),
  );
});

test('a target over 8192 characters is 414, and headers over 16 KiB are 431', () =>
  fixture.assertUnchangedBy(async () => {
    const codes = async (asking: RequestParts) => fixture.codeOf({ token: null, ...asking });
    assert.equal(await codes({ target: `/${'a'.repeat(8191)}` }), 'NOT_FOUND');
    assert.equal(await codes({ target: `/${'a'.repeat(8192)}` }), 'URI_TOO_LONG');
    assert.equal(await codes({ target: `/api/v1/health?${'a'.repeat(8192)}` }), 'URI_TOO_LONG');
    assert.equal(await codes({ target: `/${'a'.repeat(100_000)}` }), 'HEADERS_TOO_LARGE');
    assert.equal(await codes({ headers: [`X-Long: ${'a'.repeat(17_000)}`] }), 'HEADERS_TOO_LARGE');
    assert.equal(await codes({ headers: [`${'X'.repeat(17_000)}: a`] }), 'HEADERS_TOO_LARGE');
    const many = Array.from({ length: 2000 }, (_, n) => `X-${n}: 1`);
    assert.equal(await codes({ headers: many }), 'HEADERS_TOO_LARGE');
  }));

test('an empty Host is rejected, also as the first request', async (t) => {
  const { address } = await startTestService(t);
  const { status } = await sendRaw(address, rawRequest(['GET /api/v1/health HTTP/1.1', 'Host:']));
  assert.equal(status, 421);
});
