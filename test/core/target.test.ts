// Targets and placements: what may be written on a credential, and which requests match.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  findTarget,
  nearestTarget,
  type PlacementFields,
  parseMethod,
  parsePlacement,
  parseTargets,
  type TargetFields,
} from '../../src/vault/use/target.ts';
import { parseUrl } from '../../src/vault/use/upstream-url.ts';
import { refusal } from './refusals.ts';

const request = (method: string, url: string) => ({ method: parseMethod(method), url: parseUrl(url) });

test('a target without paths and methods allows all paths and the usual methods', () => {
  const [target] = parseTargets([{ origin: 'https://api.openai.com' }]);
  assert.deepEqual(target, {
    origin: 'https://api.openai.com',
    paths: ['/*'],
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowNetworks: [],
    caPem: null,
  });
});

const matching: readonly (readonly [TargetFields, string, string, boolean])[] = [
  [{ origin: 'https://api.example.com' }, 'GET', 'https://api.example.com/any/path?x=1', true],
  [{ origin: 'https://api.example.com' }, 'OPTIONS', 'https://api.example.com/', false],
  [{ origin: 'https://api.example.com', methods: ['OPTIONS'] }, 'OPTIONS', 'https://api.example.com/', true],
  [{ origin: 'https://api.example.com' }, 'GET', 'https://api.example.com:8443/', false],
  [{ origin: 'https://api.example.com:8443' }, 'GET', 'https://api.example.com:8443/', true],
  [{ origin: 'https://api.example.com' }, 'GET', 'http://api.example.com/', false],
  [{ origin: 'https://api.example.com' }, 'GET', 'https://api.example.com.evil.example/', false],
  [{ origin: 'https://api.example.com' }, 'GET', 'https://evil-api.example.com/', false],
  [{ origin: 'https://*.example.com' }, 'GET', 'https://a.example.com/', true],
  [{ origin: 'https://*.example.com' }, 'GET', 'https://a.b.example.com/', false],
  [{ origin: 'https://*.example.com' }, 'GET', 'https://example.com/', false],
  [{ origin: 'https://*.example.com' }, 'GET', 'https://evilexample.com/', false],
  [{ origin: 'https://*.example.com' }, 'GET', 'http://xy.example.com/', false],
  [{ origin: 'https://*.example.com' }, 'GET', 'https://a.example.com:8443/', false],
  [{ origin: 'https://*.example.com:8443' }, 'GET', 'https://a.example.com:8443/', true],
  [{ origin: 'https://api.example.com', paths: ['/v1/*'] }, 'GET', 'https://api.example.com/v1/models', true],
  [{ origin: 'https://api.example.com', paths: ['/v1/*'] }, 'GET', 'https://api.example.com/v1', false],
  [{ origin: 'https://api.example.com', paths: ['/v1/*'] }, 'GET', 'https://api.example.com/v10/models', false],
  [{ origin: 'https://api.example.com', paths: ['/v1/*'] }, 'GET', 'https://api.example.com/%761/models', false],
  [{ origin: 'https://api.example.com', paths: ['/v1/models'] }, 'GET', 'https://api.example.com/v1/models?a=1', true],
  [{ origin: 'https://api.example.com', paths: ['/v1/models'] }, 'GET', 'https://api.example.com/v1/models/x', false],
  [{ origin: 'https://api.example.com', paths: ['/'] }, 'GET', 'https://api.example.com', true],
];
test('a request matches a target by origin, path and method', () => {
  for (const [fields, method, url, expected] of matching)
    assert.equal(
      findTarget(parseTargets([fields]), request(method, url)) !== null,
      expected,
      `${JSON.stringify(fields)} ${method} ${url}`,
    );
});

test('the nearest target is the one that fails last', () => {
  const targets = parseTargets([
    { origin: 'https://other.example.com' },
    { origin: 'https://api.example.com', paths: ['/v1/*'], methods: ['GET'] },
  ]);
  const lacks = (method: string, url: string) => nearestTarget(targets, request(method, url))?.lacks;
  assert.equal(lacks('POST', 'https://api.example.com/v1/models'), 'method');
  assert.equal(lacks('GET', 'https://api.example.com/v2/models'), 'path');
  assert.equal(lacks('GET', 'https://third.example.com/'), 'host');
  assert.equal(nearestTarget([], request('GET', 'https://third.example.com/')), null);
});

test('an origin is written without its default port', () => {
  const [plain, other] = parseTargets([
    { origin: 'https://a.example.com:443' },
    { origin: 'https://a.example.com:444' },
  ]);
  assert.ok(plain !== undefined && other !== undefined);
  assert.equal(plain.origin, 'https://a.example.com');
  assert.equal(other.origin, 'https://a.example.com:444');
});

const badTargets: readonly (readonly [TargetFields, string])[] = [
  [{ origin: 'https://api.example.com/' }, 'origin'],
  [{ origin: 'https://user@api.example.com' }, 'origin'],
  [{ origin: 'https://*.com' }, 'origin'],
  [{ origin: 'https://*' }, 'origin'],
  [{ origin: 'https://a.*.example.com' }, 'origin'],
  [{ origin: 'https://*.*.example.com' }, 'origin'],
  [{ origin: 'https://*.10.0.0.1' }, 'origin'],
  [{ origin: 'http://api.example.com' }, 'origin'],
  [{ origin: 'https://api.example.com:70000' }, 'origin'],
  [{ origin: 'https://api.example.com', paths: [] }, 'paths'],
  [{ origin: 'https://api.example.com', paths: ['v1/*'] }, 'paths[0]'],
  [{ origin: 'https://api.example.com', paths: ['/*', '/v1*'] }, 'paths[1]'],
  [{ origin: 'https://api.example.com', paths: ['/../*'] }, 'paths[0]'],
  [{ origin: 'https://api.example.com', paths: ['//*'] }, 'paths[0]'],
  [{ origin: 'https://api.example.com', methods: [] }, 'methods'],
  [{ origin: 'https://api.example.com', methods: ['get'] }, 'methods[0]'],
  [{ origin: 'https://api.example.com', methods: ['CONNECT'] }, 'methods[0]'],
  [{ origin: 'https://api.example.com', methods: ['TRACE'] }, 'methods[0]'],
  [{ origin: 'https://api.example.com', allow_networks: ['10.0.0.0'] }, 'allow_networks[0]'],
  [{ origin: 'https://api.example.com', allow_networks: ['10.0.0.0/33'] }, 'allow_networks[0]'],
  [{ origin: 'https://api.example.com', ca_pem: 'x' }, 'ca_pem'],
  [{ origin: 'https://api.example.com', ca_pem: '-----BEGIN CERTIFICATE-----\u0000' }, 'ca_pem'],
  [{ origin: 'https://api.example.com', ca_pem: '-----BEGIN CERTIFICATE-----\udc00' }, 'ca_pem'],
];
test('a target that is not valid is rejected with the name of the field', () => {
  for (const [fields, field] of badTargets) refusal(`targets[0].${field}`, () => parseTargets([fields]), fields);
});

test('a credential has 1 to 16 targets', () => {
  const target = { origin: 'https://api.example.com' };
  assert.equal(parseTargets(Array(16).fill(target)).length, 16);
  for (const targets of [[], Array(17).fill(target)]) refusal('targets', () => parseTargets(targets), targets);
});

test('placements are parsed with their defaults', () => {
  assert.deepEqual(parsePlacement({ kind: 'bearer' }), { kind: 'bearer' });
  assert.deepEqual(parsePlacement({ kind: 'basic' }), { kind: 'basic', username: null });
  assert.deepEqual(parsePlacement({ kind: 'query', name: 'key' }), { kind: 'query', name: 'key' });
  const header = { kind: 'header', name: 'x-api-key', template: '{value}' };
  assert.deepEqual(parsePlacement({ kind: 'header', name: 'x-api-key' }), header);
});

const badPlacements: readonly (readonly [object, string])[] = [
  [{ kind: 'header' }, 'name'],
  [{ kind: 'query' }, 'name'],
  [{ kind: 'bearer', name: 'x' }, 'name'],
  [{ kind: 'header', name: 'Host' }, 'name'],
  [{ kind: 'header', name: 'transfer-encoding' }, 'name'],
  [{ kind: 'header', name: 'x y' }, 'name'],
  [{ kind: 'header', name: 'x:y' }, 'name'],
  [{ kind: 'header', name: 'x-key', template: 'token' }, 'template'],
  [{ kind: 'header', name: 'x-key', template: '{value}{value}' }, 'template'],
  [{ kind: 'header', name: 'x-key', template: '{value}\r\nx: y' }, 'template'],
  [{ kind: 'bearer', template: '{value}' }, 'template'],
  [{ kind: 'basic', username: 'a:b' }, 'username'],
  [{ kind: 'bearer', username: 'a' }, 'username'],
  [{ kind: 'query', name: 'a&b' }, 'name'],
];
test('a placement that is not valid is rejected with the name of the field', () => {
  for (const [fields, field] of badPlacements)
    refusal(`placement.${field}`, () => parsePlacement(fields as PlacementFields), fields);
});
