// Credential paths that other servers decode twice or normalise: use the raw target, decode once, check the grammar,
// reject. SOURCE: docs/decisions.md, "Names and paths".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertInvalid, dataOf } from '../kit/responses.ts';
import { share, startFixture, words } from './fixture.ts';

const CREDENTIALS = '/api/v1/credentials';
const fixture = await startFixture({ after });
const { admin } = fixture.service;

/** Targets after `/api/v1/credentials/`. Normalised, nearly all would be `open/stored`. */
const IN_THE_TARGET = [
  ...words`
    . .. ./open/stored open/./stored x/../open/stored open/stored/.. open/stored/. ../../../etc/passwd %2e %2e%2e
    %2E%2E/open/stored .%2e/open/stored x/%2e%2e/open/stored x%2f..%2fopen%2fstored x%2F%2e%2e%2Fopen%2Fstored
    %2e%2e%2f%2e%2e%2fdaemon.token open/%2e/stored open%2f.%2fstored %252e%252e x/%252e%252e/open/stored
    open%252fstored open%25252fstored %256fpen/stored open/stored%25 open//stored open/stored/ open/stored//
    /open/stored //open/stored open%2f%2fstored open/stored%2f %2fopen/stored open/%2fstored / %2f open;/stored
    open/stored; open/stored;a=b ;/open/stored x/..;/open/stored open/stored%3b open%5cstored x%5c..%5copen%5cstored
    ..%5copen/stored %5c%5chost%5cshare open/stored%5c C:%5copen open%09/stored open/stored%09 .%09./open/stored
    open%0a/stored open/stored%0d%0a %20open/stored open/stored%20 open/stor%20ed open/stored%00 %00open/stored
    open%00/stored open/stored%00.json %c0%ae%c0%ae/open/stored %c0%af open%c0%afstored %e0%80%ae %f0%80%80%ae
    open/stored%c0%80 %fe %ff %ed%a0%80 %ed%b0%80 %f4%90%80%80 %c3 open/stored%80 %u002e%u002e %u2215 % open/stored%
    open/stored%2 open/stored%zz %2%65 %%32%65 %-1 %+2 %ef%bc%8e%ef%bc%8e open%ef%bc%8fstored open%e2%88%95stored
    open/stored%e2%80%8b %ef%bb%bfopen/stored open/st%c3%b8red open/s%ce%bfred open/stored%cc%81 open/stored%e2%80%ae
    * open/* open/%2a open/stored%3f open/stored%23 open/stored! open/stored' open/(x) open/stored, open/$stored
    open/stored&x open/{stored} open/stored%7c open/[stored] open/stored%22
  `,
  '',
  'a'.repeat(129),
  `${'a/'.repeat(32)}a`,
  'a/'.repeat(256).slice(0, -1),
  `${'abc/'.repeat(128)}d`,
  '%61'.repeat(513),
];

test('an invalid credential path is rejected before lookup, never normalised, and not recorded', () =>
  fixture.assertUnchangedBy(async () => {
    const callers = [{ method: 'DELETE' }, { method: 'GET' }, { token: fixture.agent.token }];
    for (const [index, caller] of callers.entries()) {
      const targets = share(IN_THE_TARGET, index, index === 0 ? 1 : 4);
      const toRequest = (target: string) => ({ ...caller, target: `${CREDENTIALS}/${target}` });
      await fixture.assertCodes({ INVALID_REQUEST: targets }, toRequest);
    }
  }));

test('a path is decoded exactly once', async () => {
  const spellings = ['open/stored', 'open%2fstored', 'open%2Fstored', '%6f%70%65n/s%74ored', 'ope%6E%2Fstore%64'];
  for (const spelling of spellings) {
    const answer = await fixture.ask({ target: `${CREDENTIALS}/${spelling}` });
    assert.equal(dataOf(answer, 200, 'path value lease_id expires_at').path, 'open/stored', spelling);
  }
});

test('a plus sign in a path is literal and not a space', async () => {
  assert.equal((await admin.post(CREDENTIALS, { path: 'open/a+b', value: 'plus' })).status, 201);
  for (const spelling of ['open/a+b', 'open/a%2bb']) {
    assert.equal((await fixture.ask({ target: `${CREDENTIALS}/${spelling}` })).body.data.value, 'plus', spelling);
  }
});

/** Paths in a body, where nothing is decoded. */
const IN_A_BODY = [
  ...words`
    / . .. ../a a/.. a/../b a/./b /a a/ a//b //a a/b/ ./a %2e%2e a%2fb a%00 ..\\a \\\\host\\share a;b a;/b ..;/a a?b
    a#b a&b a,b a|b a"b a'b $a a<b> a(b) a[b] a{b} a! a^b a%b \uff0e\uff0e/a a\uff0fb a\u2215b a\u200bb \u0430dmin
    a\u0301 st\u00f8red \ud800 a\udc00b \u202ea
  `,
  '',
  'a\u0000',
  '\u0000',
  'a\u0000/b',
  'a\tb',
  'a\nb',
  'a\r\nb',
  ' a',
  'a ',
  'a b',
  '\u007f',
  'a\\b',
  'a`b',
  '\ufeffa',
  'a'.repeat(129),
  'a/'.repeat(32).concat('a'),
  'abc/'.repeat(128).concat('d'),
  'a'.repeat(100_000),
];

/** Every entry point that takes a path, and the field that its error names. */
const ENTRY_POINTS: Readonly<Record<string, { field: string; send: (path: string) => ReturnType<typeof admin.get> }>> =
  {
    'a store': { field: 'path', send: (path) => admin.post(CREDENTIALS, { path, value: 'v' }) },
    'a pattern': { field: 'resources', send: (path) => createPolicy([path]) },
    'a pattern among good ones': { field: 'resources', send: (path) => createPolicy(['a/*', path, 'b']) },
    'the prefix of a pattern': { field: 'resources', send: (path) => createPolicy([`${path}/*`]) },
    'a replaced policy': { field: 'resources', send: (path) => admin.put('/api/v1/policies/p', policyOf([path])) },
    'a simulation': {
      field: 'resource',
      send: (resource) => admin.post('/api/v1/policies/simulate', { agent: 'insider', resource, action: 'retrieve' }),
    },
    'a revocation': { field: 'path', send: (path) => admin.post('/api/v1/leases/revoke', { path }) },
    'a filter of leases': {
      field: 'path',
      send: (path) => admin.get(`/api/v1/leases?path=${encodeURIComponent(path.toWellFormed().slice(0, 2000))}`),
    },
  };

function policyOf(resources: readonly string[]) {
  return { principal: 'agent:insider', resources, actions: ['retrieve'] };
}

function createPolicy(resources: readonly string[]) {
  return admin.post('/api/v1/policies', { name: 'p', ...policyOf(resources) });
}

test('every entry point enforces the same path grammar', () =>
  fixture.assertUnchangedBy(async () => {
    for (const [index, { field, send }] of Object.values(ENTRY_POINTS).entries())
      for (const path of share(IN_A_BODY, index, 4)) assertInvalid(await send(path), field);
  }));

test('a * in a pattern must be the whole pattern or the last segment', () =>
  fixture.assertUnchangedBy(async () => {
    const patterns = [
      ...words`
        a* *a */a a/*/b ** a/** a/*/* /* a//* a/? a/%2a */*
      `,
      'a/ *',
      'a/*\u0000',
    ];
    for (const pattern of patterns) assertInvalid(await createPolicy([pattern]), 'resources');
  }));

test('names that are special in JavaScript are ordinary names', async () => {
  for (const name of [
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'prototype',
    'valueOf',
    '__defineGetter__',
  ]) {
    const missing = await admin.get(`${CREDENTIALS}/${name}`);
    assert.equal(missing.body.error.code, 'NOT_FOUND', name);
    assert.equal((await admin.post(CREDENTIALS, { path: name, value: name })).status, 201, name);
    assert.equal((await admin.get(`${CREDENTIALS}/${name}`)).body.data.value, name);
    const question = { agent: 'insider', resource: name, action: name };
    assert.equal((await admin.post('/api/v1/policies/simulate', question)).body.data.allowed, false, name);
    assert.equal((await fixture.agent.get(`${CREDENTIALS}/${name}`)).body.error.code, 'ACCESS_DENIED', name);
    if (name.startsWith('_')) continue;
    assert.equal((await admin.get(`/api/v1/agents/${name}`)).body.error.code, 'NOT_FOUND', name);
    assert.equal((await admin.get(`/api/v1/policies/${name}`)).body.error.code, 'NOT_FOUND', name);
    const agent = await fixture.service.agent(name, { [`${name}/*`]: ['list'] });
    assert.deepEqual((await agent.get(CREDENTIALS)).body.data, []);
  }
  assert.deepEqual(Object.keys(Object.prototype), []);
});
