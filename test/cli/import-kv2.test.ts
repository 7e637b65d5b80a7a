// Tests the KV v2 source against a server that responds as the documentation of Vault and OpenBao says; no real Vault
// is used.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RemoteError } from '../../src/cli/errors.ts';
import { Kv2, readKv2 } from '../../src/cli/import/kv2.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import type { Scope } from '../kit/directory.ts';
import { type Kv2Server, type Stored, startKv2Server } from './fake-kv2.ts';

const NEVER = new AbortController().signal;

interface ReadOptions {
  readonly token?: string;
  readonly namespace?: string;
  readonly below?: readonly string[];
  readonly mount?: string;
  readonly signal?: AbortSignal;
}

function readFrom({ address }: Pick<Kv2Server, 'address'>, options: ReadOptions = {}) {
  const { token = 'hvs.test', namespace = null, below = [], mount = 'secret', signal = NEVER } = options;
  const kv2 = new Kv2({ address, token: new Secret(token), namespace, mount });
  return readKv2(kv2, { below, signal, progress: () => undefined });
}

async function read(scope: Scope, secrets: Readonly<Record<string, Stored>>, options: ReadOptions = {}) {
  const server = await startKv2Server(scope, secrets);
  const { drafts, skipped } = await readFrom(server, options);
  return {
    server,
    skipped: skipped.map(({ where, reason, kind }) => `${where}: ${reason} (${kind})`),
    drafts: drafts.map(({ names, value }) => `${names.join('/')} = ${value.reveal()}`),
  };
}

test('each field of a secret becomes PATH/FIELD, or PATH when its only field is value', async (t) => {
  const { drafts, skipped } = await read(t, {
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
  assert.deepEqual(skipped, []);
});

test('deleted, destroyed, forbidden, empty and vanished secrets are skipped and reported', async (t) => {
  const { drafts, skipped } = await read(t, {
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
  assert.deepEqual(skipped.sort(), [
    'secret/a: its newest version was deleted (empty)',
    'secret/b: its newest version was deleted (empty)',
    'secret/c: the token is not allowed to read it (rejected)',
    'secret/d: it no longer exists (empty)',
    'secret/e: it is an empty object (empty)',
    'secret/f › x: it is null (empty)',
    'secret/locked/: the token is not allowed to list it (rejected)',
  ]);
});

test('token and namespace are sent as headers, never in the URL', async (t) => {
  const { server } = await read(t, { 'a/b': { value: '1' } }, { namespace: 'team-a/' });
  assert.equal(server.requests.length, 3);
  for (const { method, url, headers } of server.requests) {
    assert.deepEqual([method, headers['x-vault-token'], headers['x-vault-namespace']], ['GET', 'hvs.test', 'team-a/']);
    assert.doesNotMatch(url, /hvs/);
  }
});

const rejects = (reading: Promise<unknown>, rule: RegExp) =>
  assert.rejects(
    reading,
    (error) => error instanceof RemoteError && rule.test(error.message) && !/hvs/.test(error.message + error.hint),
  );

test('a redirect is rejected, and the token is not sent elsewhere', async (t) => {
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
  await rejects(readFrom(server), /status 307$/);
  assert.deepEqual(other.requests, []);
});

test('an overloaded server is retried a bounded number of times', async (t) => {
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
  await rejects(readFrom(sealed), /status 503$/);
  assert.equal(sealed.requests.length, 4);
});

test('malicious responses cause an error, not an endless listing', async (t) => {
  const say = (body: string | Uint8Array) =>
    startKv2Server(
      t,
      {},
      {
        answer: (_url, response) => {
          response.end(body);
          return true;
        },
      },
    );
  const endless = await say('{"data":{"keys":["a/"]}}');
  const { drafts, skipped } = await readFrom(endless);
  assert.deepEqual([drafts.length, skipped.length], [0, 1]);
  assert.match(skipped[0]?.reason ?? '', /deeper than 32 levels/);
  assert.equal(endless.requests.length, 33);
  const upwards = await readFrom(await say('{"data":{"keys":["..","../","","/"]}}'));
  assert.deepEqual([upwards.drafts.length, upwards.skipped.length], [0, 4]);
  await rejects(readFrom(await say('hello')), /not from Vault or OpenBao/);
  await rejects(readFrom(await say(Buffer.from('{"data":{"keys":["\xe4"]}}', 'latin1'))), /not text in UTF-8/);
  await rejects(readFrom(await say('[]')), /not from Vault or OpenBao/);
  await rejects(readFrom(await say('{"data":{}}')), /not from a KV v2 mount/);
});

test('a name that is not well-formed Unicode is skipped and reported', async (t) => {
  const server = await startKv2Server(
    t,
    {},
    {
      answer: (_url, response) => {
        response.end('{"data":{"keys":["half\\ud800","half\\ud800/"]}}');
        return true;
      },
    },
  );
  const { skipped } = await readFrom(server);
  assert.deepEqual(
    skipped.map(({ where, reason }) => [where, reason]),
    Array(2).fill(['secret/half\ud800', 'its name cannot be requested']),
  );
});

test('an abort ends the read immediately', async (t) => {
  const controller = new AbortController();
  const server = await startKv2Server(t, {}, { answer: () => true });
  setTimeout(() => controller.abort(new UsageError('interrupted')), 50);
  await assert.rejects(readFrom(server, { signal: controller.signal }), new UsageError('interrupted'));
});
