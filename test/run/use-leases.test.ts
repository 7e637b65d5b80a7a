// The credentials that a program may use: its variables, and the renewals of its leases.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { LeaseholdError } from '../../src/client/errors.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import { parseBindings, parseUses, type UseBinding } from '../../src/run/bindings.ts';
import { run } from '../../src/run/run.ts';
import { keepRenewed, type UseLeaseClient, useVariables } from '../../src/run/use-variables.ts';
import { SERVICES } from '../../src/vault/catalogue/catalogue.ts';
import { sdkEnvironment, tokenPrefix } from '../../src/vault/catalogue/sdk-environment.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';

const PATH = 'a/key' as CredentialPath;
const BASE_URL = 'http://service.test/use/a/key/-';
const OWN_URL = 'https://proxy.test/vault/use/a/key/-';

function variables(
  env: Readonly<Record<string, string>>,
  token = 'lhu_x',
  { prefix = null, variable = null }: Partial<Pick<UseBinding, 'prefix' | 'variable'>> = {},
) {
  const secrets = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, new Secret(value)]));
  const lease = { lease_id: 'id', token: new Secret(token), base_url: BASE_URL, env: secrets };
  const binding: UseBinding = { name: '--use', path: PATH, prefix, variable };
  const found = useVariables([binding], new Map([[PATH, lease]]), () => OWN_URL);
  return Object.fromEntries([...found].map(([name, value]) => [name, value.reveal()]));
}

test('a use is a path, or NAME=PATH; a path with = is written as a reference', () => {
  const parse = (text: string) => parseUses([text], '--use').map(({ path, prefix }) => [prefix, path]);
  assert.deepEqual(parse('openai/key'), [[null, 'openai/key']]);
  assert.deepEqual(parse('OWN=openai/key'), [['OWN', 'openai/key']]);
  assert.deepEqual(parse('OWN=leasehold://a=b/key'), [['OWN', 'a=b/key']]);
  assert.deepEqual(parse('leasehold://a=b/key'), [[null, 'a=b/key']]);
  assert.deepEqual(parse('team/a=b'), [[null, 'team/a=b']]);
  for (const text of ['', '=openai/key', 'OWN=', '1A=a', 'A-B=a', 'LD_A=a', 'LEASEHOLD=a', 'a/b?version=1', 'a//b'])
    assert.throws(() => parseUses([text], '--use'), { name: 'UsageError' }, text);
});

test('the variables have the address of the command, not the one that the server knows', () => {
  const env = { A_URL: `${BASE_URL}/v1`, A_KEY: 'lhu_x', A_OTHER: 'fixed' };
  assert.deepEqual(variables(env), { A_URL: `${OWN_URL}/v1`, A_KEY: 'lhu_x', A_OTHER: 'fixed' });
  assert.deepEqual(variables(env, 'lhu_x', { prefix: 'OWN' }), { OWN_BASE_URL: OWN_URL, OWN_API_KEY: 'lhu_x' });
});

test('each service of the catalogue is configured completely, or must be named', () => {
  const complete: string[] = [];
  for (const service of SERVICES) {
    const token = `${tokenPrefix(service)}lhu_${'x'.repeat(43)}`;
    assert.equal(service.key.checkedBySdk?.test(token) ?? true, true, service.name);
    const kinds = new Set(service.variables.map(({ holds }) => holds));
    const env = sdkEnvironment(service, BASE_URL, token);
    if (!kinds.has('base-url') || !kinds.has('key')) {
      assert.throws(() => variables(env, token), { name: 'UsageError' }, service.name);
      continue;
    }
    complete.push(service.name);
    assert.deepEqual(Object.keys(variables(env, token)), Object.keys(env), service.name);
  }
  for (const name of ['openai', 'anthropic', 'gemini', 'github', 'sentry']) assert.ok(complete.includes(name), name);
});

test('a variable of a .env file gets the token; the base URL is in the variable of the SDK that reads both, or next to it', () => {
  const env = { OPENAI_BASE_URL: `${BASE_URL}/v1`, OPENAI_API_KEY: 'lhu_x', OPENAI_OTHER: 'fixed' };
  assert.deepEqual(variables(env, 'lhu_x', { variable: 'OPENAI_API_KEY' }), {
    ...env,
    OPENAI_BASE_URL: `${OWN_URL}/v1`,
  });
  const rows: readonly [variable: string, baseUrl: string][] = [
    ['STRIPE_SECRET_KEY', 'STRIPE_BASE_URL'],
    ['STRIPE_API_KEY', 'STRIPE_BASE_URL'],
    ['EVAL_OPENAI_KEY', 'EVAL_OPENAI_BASE_URL'],
    ['SLACK_BOT_TOKEN', 'SLACK_BOT_BASE_URL'],
    ['TOKEN', 'TOKEN_BASE_URL'],
    ['monkey', 'monkey_BASE_URL'],
  ];
  for (const [variable, name] of rows) {
    assert.deepEqual(variables(env, 'lhu_x', { variable }), { [name]: OWN_URL, [variable]: 'lhu_x' });
    assert.deepEqual(variables({}, 'lhu_x', { variable }), { [name]: OWN_URL, [variable]: 'lhu_x' });
  }
});

test('a server that names a variable of loaders is not trusted', () => {
  for (const name of ['LD_PRELOAD', 'NODE_OPTIONS', 'PATH', 'LEASEHOLD_TOKEN', 'A B', '', '__proto__'])
    assert.throws(
      () => variables({ A_URL: BASE_URL, A_KEY: 'lhu_x', [name]: 'x' }),
      { code: 'INVALID_RESPONSE' },
      name,
    );
});

/** Use leases of 200 ms. The one on `bad` is renewed once. */
function openBook() {
  const renewals = new Map<string, number>();
  const revoked: string[] = [];
  const times = async () => ({ issued_at: new Date(0).toISOString(), expires_at: new Date(200).toISOString() });
  const client: UseLeaseClient = {
    issueUse: async (path) => ({ lease_id: path, token: new Secret('lhu_token'), base_url: 'http://x', env: {} }),
    baseUrl: (path) => `http://127.0.0.1:1/use/${path}/-`,
    retrieve: () => assert.fail(),
    read: times,
    renew: async (leaseId) => {
      const renewed = (renewals.get(leaseId) ?? 0) + 1;
      renewals.set(leaseId, renewed);
      if (leaseId === 'bad' && renewed > 1) throw new LeaseholdError('ACCESS_DENIED', 'Access denied', { status: 403 });
      return times();
    },
    revoke: async (leaseId) => void revoked.push(leaseId),
  };
  return { client, renewals, revoked };
}

test('use leases are renewed while the program runs, a rejection is reported, and a fixed time is not exceeded', async (t) => {
  const { client, renewals, revoked } = openBook();
  const end = join(temporaryDirectory(t), 'end');
  const said: string[] = [];
  const start = async (uses: readonly string[], ttlSeconds: number | null) =>
    run(
      {
        ...(await parseBindings({ mapping: [], envFiles: [], env: [] })),
        uses: parseUses(uses, '--use'),
        command: ['sh', '-c', 'while [ ! -e "$0" ]; do sleep 0.05; done', end],
        keep: [],
        hasFiles: false,
        isMasked: true,
        ttlSeconds,
      },
      client,
      {
        streams: { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() },
        environment: { PATH: process.env['PATH'] },
        umask: null,
        ignored: [],
        say: (line) => void said.push(line),
      },
    );
  const running = [start(['A=good', 'B=bad'], null), start(['C=fixed'], 1)];
  await until(() => (renewals.get('good') ?? 0) >= 3 && said.length > 0);
  writeFileSync(end, '');
  assert.deepEqual(await Promise.all(running), [{ code: 0 }, { code: 0 }]);
  assert.deepEqual(said, ['bad: the use lease was not renewed: Access denied']);
  assert.deepEqual([renewals.get('bad'), renewals.get('fixed')], [2, undefined]);
  assert.deepEqual(revoked.toSorted(), ['bad', 'fixed', 'good']);
});

test('a lease without times is reported once, and never renewed without a pause', async () => {
  const said: string[] = [];
  const times = { issued_at: '2026-01-01T00:00:00.000Z' } as Awaited<ReturnType<UseLeaseClient['read']>>;
  const client = {
    read: async () => times,
    renew: async () => assert.fail('it was renewed'),
  };
  await keepRenewed(client, new Map([[PATH, { lease_id: 'id' }]]), new AbortController().signal, (line) =>
    said.push(line),
  );
  assert.deepEqual(said, [`${PATH}: the use lease was not renewed: the lease has no times`]);
});
