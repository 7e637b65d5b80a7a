// Four key slots of different kinds: whichever of them remain, each one opens the vault alone, and a removed one never.
// Requests are served while slots change.

import assert from 'node:assert/strict';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import {
  newPassphraseParameters,
  passphraseSecret,
  slotPrivateKey,
  slotPublicKey,
} from '../../src/crypto/key-slots.ts';
import { newShares } from '../../src/crypto/shares.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import type { TestResponse } from '../kit/client.ts';
import { temporaryDirectory, withScope } from '../kit/directory.ts';
import { startTransit, TRANSIT_TOKEN } from '../kit/key-services.ts';
import { until } from '../kit/log-receivers.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { copyDatabaseOf } from '../kit/stores.ts';
import { copyVault } from './vaults.ts';

const scope = { after };
const SLOTS = '/api/v1/key/slots';
const publicKeyOf = (secret: Uint8Array) => slotPublicKey(slotPrivateKey(secret));

const words = newPassphraseParameters();
const typed = await passphraseSecret(new Secret('correct horse battery'), words);
assert.ok(typed);
const quorum = await newShares(3, 2);
const tokenFile = join(temporaryDirectory(scope), 'token');
writeFileSync(tokenFile, TRANSIT_TOKEN, { mode: 0o600 });
const TRANSIT = ['--transit-token-file', tokenFile, '--transit-address', await startTransit(scope)];

/** A vault with the four slots. Its slot `file` is that of `root.key`. */
const original = await copyVault(scope);
const first = await startTestService(scope, TRANSIT, original);
const ATTENDED = [
  { name: 'words', kind: 'passphrase', public_key: publicKeyOf(typed), parameters: words },
  {
    name: 'quorum',
    kind: 'shamir',
    public_key: publicKeyOf(quorum.secret),
    parameters: { group: quorum.group, threshold: 2, shares: 3, digests: quorum.digests },
  },
];
for (const slot of [...ATTENDED, { name: 'bao', kind: 'transit', key: 'leasehold' }]) {
  assert.equal((await first.admin.post(SLOTS, slot)).status, 201);
}
await first.stop();

/** Whether the vault opens with this slot's secret, and none of the others. */
const OPENS_WITH: Readonly<Record<string, (dataDir: string) => Promise<boolean>>> = {
  file: (dataDir) => opensAtStart(dataDir, [], false),
  words: (dataDir) => opensByUnlocking(dataDir, [Buffer.from(typed).toString('base64')]),
  quorum: (dataDir) =>
    opensByUnlocking(
      dataDir,
      quorum.shares.slice(1).map((share) => share.reveal()),
    ),
  bao: (dataDir) => opensAtStart(dataDir, TRANSIT, true),
};
const NAMES = Object.keys(OPENS_WITH);

async function isOpen({ admin }: TestService): Promise<boolean> {
  const { status, body } = await admin.get('/api/v1/credentials/a/b');
  assert.ok(status === 200 || body.error.code === 'VAULT_LOCKED', `${status}`);
  return body.data?.value === 'kept';
}

/** Works on a copy, because a startup is recorded. A rejected startup opens nothing. */
function onCopy(
  dataDir: string,
  losesRootKey: boolean,
  flags: readonly string[],
  opens: (service: TestService) => Promise<boolean>,
): Promise<boolean> {
  return withScope(async (within) => {
    const copy = join(temporaryDirectory(within), 'data');
    cpSync(dataDir, copy, { recursive: true });
    await copyDatabaseOf(dataDir, copy);
    if (losesRootKey) rmSync(join(copy, 'root.key'));
    const service = await startTestService(within, flags, copy).catch((error: Error) => error.message);
    if (typeof service !== 'string') return opens(service);
    assert.match(service, /key slot|root key/i);
    return false;
  });
}

const opensAtStart = (dataDir: string, flags: readonly string[], losesRootKey: boolean) =>
  onCopy(dataDir, losesRootKey, flags, isOpen);

const opensByUnlocking = (dataDir: string, secrets: readonly string[]) =>
  onCopy(dataDir, true, [], async (service) => {
    assert.equal(await isOpen(service), false);
    for (const secret of secrets) await service.anonymous.post('/api/v1/unlock', { secret });
    return isOpen(service);
  });

/** The 15 combinations of the slots that remain. */
const combinations = Array.from({ length: 15 }, (_, bits) => NAMES.filter((_, at) => ((bits + 1) >> at) % 2 === 1));

for (const remaining of combinations) {
  test(`of the slots ${remaining.join(', ')} each one opens the vault alone, and no other one does`, async (t) => {
    const dataDir = await withScope(async (within) => {
      const directory = join(temporaryDirectory(t), 'data');
      cpSync(original, directory, { recursive: true });
      await copyDatabaseOf(original, directory);
      const { admin, stop } = await startTestService(within, TRANSIT, directory);
      for (const name of NAMES.filter((each) => !remaining.includes(each)))
        assert.equal((await admin.delete(`${SLOTS}/${name}`)).status, 204);
      await stop();
      return directory;
    });
    const opening = [];
    for (const name of NAMES) if (await OPENS_WITH[name]?.(dataDir)) opening.push(name);
    assert.deepEqual(opening, remaining);
  });
}

test('slots are added, tested and removed while the server serves, without a failed request', async (t) => {
  const service = await startTestService(t, [], await copyVault(t));
  const agent = await service.agent('ci', { 'a/*': ['retrieve'] });
  let [isOver, served] = [false, 0];
  const failures: string[] = [];
  const requests = [
    () => service.admin.get('/api/v1/credentials/a/b'),
    () => agent.get('/api/v1/credentials/a/b'),
    () => service.admin.post('/api/v1/credentials', { path: 'a/c', value: 'v' }),
    () => service.anonymous.get('/api/v1/health'),
  ];
  const callers = [...requests, ...requests].map(async (request) => {
    for (; !isOver; served++) {
      const { status, text } = await request();
      if (status !== 200 && status !== 201) failures.push(`${status}: ${text}`);
    }
  });
  /** Requests are served during each change. */
  const during = async (change: Promise<TestResponse>, expected: number, opens?: boolean): Promise<void> => {
    const { status, body } = await change;
    assert.deepEqual([status, body?.data?.opens], [expected, opens]);
    const enough = served + 2 * callers.length;
    await until(() => served >= enough);
  };
  const { admin } = service;
  for (let round = 0; round < 2; round++) {
    for (const slot of ATTENDED) await during(admin.post(SLOTS, slot), 201);
    await during(admin.post(`${SLOTS}/words/test`, { public_key: publicKeyOf(typed) }), 200, true);
    await during(admin.post(`${SLOTS}/quorum/test`, { public_key: publicKeyOf(new Uint8Array(32)) }), 200, false);
    await during(admin.post(`${SLOTS}/file/test`, {}), 200, true);
    await during(admin.post('/api/v1/key/rotate', { key: round % 2 === 0 ? 'root' : 'data' }), 200);
    for (const slot of ['words', 'quorum']) await during(admin.delete(`${SLOTS}/${slot}`), 204);
  }
  isOver = true;
  await Promise.all(callers);
  t.diagnostic(`${served} requests`);
  assert.deepEqual(failures, []);
});
