// Addresses of the base URL, and the request that each means.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toldOf } from '../../src/core/denials.ts';
import { parsePath } from '../../src/core/path.ts';
import { ApiError } from '../../src/engine/errors.ts';
import {
  type BaseUrlRequest,
  baseUrlOf,
  parseBaseUrl,
  resolveRequest,
  useFieldsOf,
} from '../../src/vault/use/base-url.ts';
import { type Method, parseTargets, type TargetFields } from '../../src/vault/use/target.ts';
import type { UrlPath } from '../../src/vault/use/upstream-url.ts';

const requestTo = (path: string, targetNumber: number | null = null, method = 'GET'): BaseUrlRequest => ({
  method: method as Method,
  path: path as UrlPath,
  query: '?a=b',
  targetNumber,
});

/** The origin and the selector; the violated rule as text. */
function resolved(fields: readonly TargetFields[], request: BaseUrlRequest): string {
  const found = resolveRequest(parseTargets(fields), request);
  if ('code' in found) return toldOf(found);
  const { scheme, host, port, path, query } = found.request.url;
  assert.deepEqual([path, query, found.request.method], [request.path, request.query, request.method]);
  return `${scheme}://${host}:${port} ${found.selector}`;
}

test('the first segment that is a selector parts the path of the credential and the rest', () => {
  const cases: readonly [target: string, path: string, number: number | null, rest: string, query: string][] = [
    ['/use/a/-/v1', 'a', null, '/v1', ''],
    ['/use/a/b/-/-/c', 'a/b', null, '/-/c', ''],
    ['/use/a/-2/v1?x=/-/', 'a', 2, '/v1', '?x=/-/'],
    ['/use/a/-', 'a', null, '/', ''],
    ['/use/a/-/', 'a', null, '/', ''],
    ['/use/a/-b/-1/v1/', 'a/-b', 1, '/v1/', ''],
    ['/use/a/-1a/-/%2D', 'a/-1a', null, '/%2D', ''],
  ];
  for (const [target, credentialPath, targetNumber, path, query] of cases)
    assert.deepEqual(parseBaseUrl(target), { credentialPath, targetNumber, path, query }, target);
});

test('an address without a selector or a path is rejected, and so is one that servers read differently', () => {
  const all = ['/use/', '/use/a', '/use/-/v1', '/use//-/v1', '/use/a/-/../b', '/use/../-/v1', '/use/a/-/%2e%2e/b'];
  for (const target of [...all, '/use/a%62/-/v1', '/use/a/-/b//c', '/use/a/-/b#c', '/use/a b/-/', '/use/a/%2D/b'])
    assert.throws(() => parseBaseUrl(target), ApiError, target);
});

test('a path with a selector has no base URL', () => {
  assert.equal(baseUrlOf('https://vault:7700', parsePath('a/-b')), 'https://vault:7700/use/a/-b');
  for (const path of ['-', 'a/-', '-1/a', 'a/-22/b'])
    assert.throws(() => baseUrlOf('https://vault', parsePath(path)), ApiError, path);
});

test('the origin is that of the first target that matches by path and method', () => {
  const targets = [
    { origin: 'https://a.example', paths: ['/v1/*'], methods: ['GET'] },
    { origin: 'https://b.example:8443', paths: ['/v2/*'] },
    { origin: 'https://a.example', paths: ['/v3'] },
  ];
  assert.equal(resolved(targets, requestTo('/v1/x')), 'https://a.example:443 -1');
  assert.equal(resolved(targets, requestTo('/v2/x')), 'https://b.example:8443 -2');
  assert.equal(resolved(targets, requestTo('/v3')), 'https://a.example:443 -1');
  assert.equal(resolved(targets, requestTo('/v1/x', 2)), 'https://b.example:8443 -2');
  assert.equal(resolved(targets, requestTo('/v1/x', 3)), 'https://a.example:443 -3');
  assert.equal(resolved(targets, requestTo('/v1/x', 4)), 'the credential has no target with this number');
  assert.equal(resolved(targets, requestTo('/v1/x', 0)), 'the credential has no target with this number');
});

test('a request that no target matches gets an origin, so that it is denied for its path or method', () => {
  const targets = [
    { origin: 'https://a.example', paths: ['/v1/*'] },
    { origin: 'https://b.example', paths: ['/v2/*'] },
  ];
  assert.equal(resolved(targets, requestTo('/v3')), 'https://a.example:443 -1');
  assert.equal(resolved(targets, requestTo('/v2/x', null, 'OPTIONS')), 'https://b.example:443 -2');
});

test('links of a credential with one origin have no number', () => {
  const targets = [
    { origin: 'https://a.example', paths: ['/v1/*'], methods: ['GET'] },
    { origin: 'https://a.example', paths: ['/v1/*'], methods: ['POST'] },
  ];
  assert.equal(resolved(targets, requestTo('/v1/x', null, 'POST')), 'https://a.example:443 -');
  assert.equal(resolved(targets, requestTo('/v1/x', 1, 'POST')), 'https://a.example:443 -1');
});

test('a wildcard host is never chosen', () => {
  const wild = { origin: 'https://*.example.com', paths: ['/v1/*'] };
  const exact = { origin: 'https://a.example.com', paths: ['/v1/x'] };
  const rule = /wildcard host needs the whole URL/;
  assert.match(resolved([wild], requestTo('/v1/x')), rule);
  assert.match(resolved([wild], requestTo('/v2/x')), rule);
  assert.match(resolved([exact, wild], requestTo('/v1/y')), rule);
  const longest = `${`${'a'.repeat(63)}.`.repeat(4).slice(0, 251)}`.replace(/.$/, 'b');
  assert.match(resolved([{ origin: `https://*.${longest}` }], requestTo('/v1/y')), rule);
  assert.match(resolved([wild, exact], requestTo('/v1/x', 1)), rule);
  assert.equal(resolved([wild, exact], requestTo('/v1/x')), 'https://a.example.com:443 -2');
  assert.equal(resolved([wild, exact], requestTo('/v3')), 'https://a.example.com:443 -2');
});

test('the entry has no host where the request has none', () => {
  const request = requestTo('/v1/x', 9);
  assert.deepEqual(useFieldsOf(request, { code: 'no_target_with_number' }), {
    method: 'GET',
    host: null,
    target_path: '/v1/x',
  });
});
