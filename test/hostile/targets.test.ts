// Request lines and Hosts that other servers normalise or trust.
// SOURCE: decisions, "HTTP"; security, "Node's HTTP defaults".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { assertInvalid } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { type RequestParts, startFixture, words } from './fixture.ts';

const fixture = await startFixture({ after });

test('a target that is not a plain path is rejected before it is resolved', () =>
  fixture.assertUnchangedBy(() =>
    fixture.assertCodes(
      {
        INVALID_REQUEST: [
          ...words`
            http://localhost/api/v1/credentials https://localhost/api/v1/credentials http:/api/v1/credentials
            //localhost/api/v1/credentials //api/v1/credentials /\\localhost/api/v1/credentials
            \\api\\v1\\credentials /api\\v1\\credentials /api/v1/..\\v1/credentials * api/v1/credentials
            localhost:80 ?type=a /api/v1/credentials#part /api/v1/cred\u007fentials
            /api/v1/credentials/\u00c0\u00ae /api/v1/credentials/\u00e9
          `,
          '/api/v1/cred entials',
          '/api/v1/cred\u0009entials',
          '/api/v1/cred\u0000entials',
        ],
      },
      (target) => ({ target }),
    ),
  ));

test('a route has one spelling: dots, slashes and case are not normalised', () =>
  fixture.assertUnchangedBy(() =>
    fixture.assertCodes(
      {
        NOT_FOUND: words`
            /api/v1//credentials /api//v1/credentials /api/v1/./credentials /api/v1/agents/../credentials
            /api/v1/health/../credentials /api/v1/%2e%2e/v1/credentials /api%2fv1%2fcredentials
            /api/v1/credentials;a=b /api/v1;/credentials /api/v1/credentials%20 /api/v1/credentials%00
            /api/v1/credentials%3ftype=a /API/v1/credentials /api/V1/CREDENTIALS /api/v1/credentials.json
            /api/v1/agents/insider/key /api/v2/credentials /
          `,
        INVALID_REQUEST: [
          '/api/v1/health/',
          '/api/v1/agents/insider/',
          '/api/v1/health%',
          '/api/v1/health%zz',
          '/api/v1/%ff',
        ],
      },
      (target) => ({ target }),
    ),
  ));

test('fixed segments of a route must be literal; parameters may be percent-encoded', () =>
  fixture.assertUnchangedBy(async () => {
    const spellings = [
      '/api/v1/credential%73',
      '/%61pi/v1/credentials',
      '/api/v1/%61gents',
      '/api/v1/%63redentials/open/stored',
      '/api/v1/audit/verif%79',
      '/api/v1/audit/export%3f',
      '/%6fpenapi.json',
      '/api/v1/%68ealth',
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
      assertInvalid(await fixture.ask({ target }), 'target');
    }
    for (const path of ['open/%c0%af', 'open/%e2%82', '%2', '%ed%a0%80']) {
      assertInvalid(await fixture.ask({ target: `/api/v1/credentials/${path}` }), 'target');
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
        METHOD_NOT_ALLOWED: ['PROPFIND', 'LOCK', 'SEARCH', 'SOURCE', 'CONNECT'],
        INVALID_REQUEST: ['get', 'GETT', 'G ET', 'GET\u0009', ''],
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
        '200': ['GET /api/v1/health HTTP/1.1', 'GET /api/v1/health HTTP/1.0'],
        INVALID_REQUEST: [
          'GET /api/v1/health',
          'GET /api/v1/health HTTP/0.9',
          'GET /api/v1/health HTTP/2.0',
          'GET /api/v1/health HTTP/1.2',
          'GET /api/v1/health HTTP/11',
          'GET /api/v1/health HTTP/1.1.1',
          'GET /api/v1/health http/1.1',
          'GET /api/v1/health HTTPS/1.1',
          'GET /api/v1/health HTTP/1.1 HTTP/1.1',
          'PRI * HTTP/2.0',
          '\u0016\u0003\u0001\u0000\u00a5',
        ],
      },
      (line) => ({ line }),
    ),
  ));

test('a Host name that DNS rebinding could use is 421 in every spelling', () =>
  fixture.assertUnchangedBy(() =>
    fixture.assertCodes(
      {
        '200': ['localhost', 'LocalHost:7700', '127.0.0.1', '127.0.0.1:65535', '[::1]', '[::1]:7700'],
        MISDIRECTED_REQUEST: [
          ...words`
            2130706433 evil.com evil.com:7700 localhost.evil.com localhost:7700.evil.com 127.0.0.1.nip.io
            127.0.0.1. localhost. localhost: localhost:port localhost:1:2 localhost:999999 0x7f.1 127.1
            0177.0.0.1 ::1 [::1 [::1].evil.com [127.0.0.1] localhost@evil.com evil.com@localhost
            user:word@127.0.0.1 localhost#evil.com localhost/evil.com http://localhost l\u00f6calhost
          `,
          'localhost, evil.com',
          'localhost evil.com',
          '',
        ],
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
