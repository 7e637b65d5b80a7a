// A KV v2 mount of Vault or OpenBao, against a server that answers as their documents say: there is no real one here.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RemoteError } from '../../src/cli/errors.ts';
import { Kv2, parseVaultAddress } from '../../src/cli/import/kv2.ts';
import { readKv2 } from '../../src/cli/import/kv2-source.ts';
import { Secret } from '../../src/core/secret.ts';
import { UsageError } from '../../src/platform/errors.ts';
import type { Scope } from '../kit/directory.ts';
import { type Kv2Server, type Stored, startKv2Server } from './fake-kv2.ts';

const NEVER = new AbortController().signal;

interface Asking {
  readonly token?: string;
  readonly namespace?: string;
  readonly below?: readonly string[];
  readonly mount?: string;
  readonly signal?: AbortSignal;
}

function readFrom({ address }: Pick<Kv2Server, 'address'>, asking: Asking = {}) {
  const { token = 'hvs.test', namespace = null, below = [], mount = 'secret', signal = NEVER } = asking;
  const kv2 = new Kv2({ address, token: new Secret(token), namespace, mount });
  return readKv2(kv2, { mount, below, signal, progress: () => undefined });
}

async function read(scope: Scope, secrets: Readonly<Record<string, Stored>>, asking: Asking = {}) {
  const server = await startKv2Server(scope, secrets);
  const { drafts, leftOut } = await readFrom(server, asking);
  return {
    server,
    leftOut: leftOut.map(({ where, reason, kind }) => `${where}: ${reason} (${kind})`),
    drafts: drafts.map(({ names, value }) => `${names.join('/')} = ${value.reveal()}`),
  };
}

test('each field of a secret becomes PATH/FIELD, and PATH alone where its only field is value', async (t) => {
  const { drafts, leftOut } = await read(t, {
    'app/db': { password: 'hunter2', user: 'ann' },
    'app/token': { value: 'tok' },
    'app/nested/deep': { a: { b: 'c' }, list: [1, 2], n: 5 },
    large: '{"id":12345678901234567890}',
    'an odd/näme?&': { value: 'odd' },
    'only/object': { value: { inner: 'x' } },
    both: { value: '1', other: '2' },
  });
  assert.deepEqual(drafts, [
    'an odd/näme?& = odd',
    'app/db/password = hunter2',
    'app/db/user = ann',
    'app/nested/deep/a/b = c',
    'app/nested/deep/list = [1,2]',
    'app/nested/deep/n = 5',
    'app/token = tok',
    'both/value = 1',
    'both/other = 2',
    'large/id = 12345678901234567890',
    'only/object/value/inner = x',
  ]);
  assert.deepEqual(leftOut, []);
});

test('what was deleted, destroyed, forbidden, empty or vanished is left out, and told', async (t) => {
  const { drafts, leftOut } = await read(t, {
    a: 'deleted',
    b: 'destroyed',
    c: 'forbidden',
    d: 'vanished',
    e: {},
    f: { x: null },
    'locked/g': { value: 'never seen' },
    z: { value: 'z' },
  });
  assert.deepEqual(drafts, ['z = z']);
  assert.deepEqual(leftOut.sort(), [
    'secret/a: its newest version was deleted (empty)',
    'secret/b: its newest version was destroyed (empty)',
    'secret/c: the token may not read it (refused)',
    'secret/d: it is not there any more (empty)',
    'secret/e: it has no fields (empty)',
    'secret/f › x: it is null (empty)',
    'secret/locked/: the token may not list it (refused)',
  ]);
});

test('token and namespace go as headers, and never in the address', async (t) => {
  const { server } = await read(t, { 'a/b': { value: '1' } }, { namespace: 'team-a/' });
  assert.equal(server.asked.length, 3);
  for (const { method, url, headers } of server.asked) {
    assert.deepEqual([method, headers['x-vault-token'], headers['x-vault-namespace']], ['GET', 'hvs.test', 'team-a/']);
    assert.doesNotMatch(url, /hvs/);
  }
});

test('only what is below a folder is asked for', async (t) => {
  const { drafts, server } = await read(t, { 'a/b/c': { value: '1' }, 'x/y': { value: '2' } }, { below: ['a', 'b'] });
  assert.deepEqual(drafts, ['a/b/c = 1']);
  assert.ok(server.asked.every(({ url }) => url.includes('/a/b/')));
});

test('hundreds of secrets are read a few at a time', async (t) => {
  const secrets = Object.fromEntries(
    Array.from({ length: 300 }, (_, at) => [`f${at % 7}/s${at}`, { value: String(at) }]),
  );
  const { drafts, server } = await read(t, secrets);
  assert.equal(drafts.length, 300);
  assert.ok(server.atOnce() > 1 && server.atOnce() <= 8, String(server.atOnce()));
});

const refused = (reading: Promise<unknown>, rule: RegExp) =>
  assert.rejects(
    reading,
    (error) => error instanceof RemoteError && rule.test(error.message) && !/hvs/.test(error.message + error.hint),
  );

test('a token that is refused, and a mount that is not there, are named', async (t) => {
  const server = await startKv2Server(t, { a: { value: '1' } });
  await refused(readFrom(server, { token: 'hvs.other' }), /^the token may not list secret\//);
  await refused(readFrom(server, { mount: 'kv' }), /^there is nothing at kv\//);
});

test('a redirect is refused, and the token goes nowhere else', async (t) => {
  const other = await startKv2Server(t, { a: { value: '1' } });
  const server = await startKv2Server(
    t,
    {},
    {
      answer: (url, response) => {
        response.writeHead(307, { location: `${other.address}${url}` }).end();
        return true;
      },
    },
  );
  await refused(readFrom(server), /redirect \(307\), which is not followed/);
  assert.deepEqual(other.asked, []);
});

test('overload is waited out, and given up in the end', async (t) => {
  const passing = await startKv2Server(
    t,
    { a: { value: '1' } },
    {
      answer: (_url, response, count) => {
        if (count > 2) return false;
        response.writeHead(429).end();
        return true;
      },
    },
  );
  assert.equal((await readFrom(passing)).drafts.length, 1);
  const sealed = await startKv2Server(
    t,
    {},
    {
      answer: (_url, response) => {
        response.writeHead(503, { 'content-type': 'application/json' }).end('{"errors":["Vault is sealed"]}');
        return true;
      },
    },
  );
  await refused(readFrom(sealed), /sealed/);
  assert.equal(sealed.asked.length, 4);
});

test('answers made to do harm end in an error, not in an endless walk', async (t) => {
  const say = (body: string | (() => string)) =>
    startKv2Server(
      t,
      {},
      {
        answer: (_url, response) => {
          response.end(typeof body === 'string' ? body : body());
          return true;
        },
      },
    );
  const endless = await say('{"data":{"keys":["a/"]}}');
  const { drafts, leftOut } = await readFrom(endless);
  assert.deepEqual([drafts.length, leftOut.length], [0, 1]);
  assert.match(leftOut[0]?.reason ?? '', /deeper than 32 levels/);
  assert.equal(endless.asked.length, 33);
  const upwards = await readFrom(await say('{"data":{"keys":["..","../","","/"]}}'));
  assert.deepEqual([upwards.drafts.length, upwards.leftOut.length], [0, 4]);
  await refused(readFrom(await say('hello')), /no strict JSON/);
  await refused(readFrom(await say('[]')), /no Vault and no OpenBao/);
  await refused(readFrom(await say('{"data":{}}')), /no KV v2 mount/);
  await refused(readFrom(await say(() => `{"a":"${'x'.repeat(17 * 1024 * 1024)}"}`)), /too large/);
});

test('a name that is no well-formed Unicode is told with its place, and nothing is read', async (t) => {
  for (const key of ['half\\ud800', 'half\\ud800/']) {
    const server = await startKv2Server(
      t,
      {},
      {
        answer: (url, response) => {
          response.end(`{"data":{"keys":${url.includes('/team') ? `["${key}","z"]` : '["team/"]'}}}`);
          return true;
        },
      },
    );
    await refused(readFrom(server), /^secret\/team\/half\ud800: the name is no well-formed Unicode/);
    assert.equal(server.asked.length, 2);
  }
});

test('who breaks off is heard at once', async (t) => {
  const breaking = new AbortController();
  const server = await startKv2Server(t, {}, { answer: () => true });
  setTimeout(() => breaking.abort(new UsageError('broken off')), 50);
  await assert.rejects(readFrom(server, { signal: breaking.signal }), new UsageError('broken off'));
});

test('plain HTTP goes to this machine alone', () => {
  assert.equal(parseVaultAddress('http://127.0.0.1:8200/'), 'http://127.0.0.1:8200');
  assert.equal(parseVaultAddress('http://localhost:8200'), 'http://localhost:8200');
  assert.equal(parseVaultAddress('http://[::1]:8200'), 'http://[::1]:8200');
  assert.equal(parseVaultAddress('https://vault.example.org/behind/'), 'https://vault.example.org/behind');
  for (const text of [
    'http://vault.example.org',
    'http://127.0.0.1.example.org',
    'ftp://x',
    'x',
    'https://a:b@c',
    'https://c?d',
  ]) {
    assert.throws(() => parseVaultAddress(text), UsageError, text);
  }
});
