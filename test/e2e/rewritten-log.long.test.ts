// A log that was written again with all keys of its vault is valid under all of them. An auditor who kept a checkpoint
// and has only the public key finds every such attack in each of three ways.

import assert from 'node:assert/strict';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { exportAuditKeys } from '../../src/crypto/chain.ts';
import { newId } from '../../src/crypto/primitives.ts';
import type { EntryWithoutMac } from '../../src/vault/audit/audit-entry.ts';
import { runVerifier, runVerifierWith } from '../crypto/python-verifier.ts';
import { newHome } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { copyDatabaseOf } from '../kit/stores.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';
import { type Rewriting, rewriteLog } from './rewrite-log.ts';

/** Entries before each checkpoint, enough for stored nodes of the tree. */
const ENTRIES = 300;
const scope = { after };

async function copyOf(dataDir: string, of: Scope): Promise<string> {
  const copy = join(temporaryDirectory(of), 'data');
  cpSync(dataDir, copy, { recursive: true });
  await copyDatabaseOf(dataDir, copy);
  return copy;
}

/** Adds copies of the last entry, each with another id. */
const lengthened =
  (count: number): Rewriting =>
  (entries) => [...entries, ...Array.from({ length: count }, () => entries.slice(-1).map(withNewId)).flat()];
const withNewId = (entry: EntryWithoutMac): EntryWithoutMac => ({ ...entry, id: newId() });

/** Starts the vault, stores a value in it, and stops it. Returns the checkpoint that an auditor keeps. */
async function keepCheckpoint(dataDir: string, path: string): Promise<{ note: string; verifier_key: string }> {
  const service = await startTestService(scope, [], dataDir);
  await service.admin.post('/api/v1/credentials', { path, value: 'v' });
  const { data } = (await service.admin.get('/api/v1/audit/checkpoint')).body;
  await service.stop();
  return data;
}

const late = join(temporaryDirectory(scope), 'data');
await (await startTestService(scope, [], late)).stop();
await rewriteLog(late, lengthened(ENTRIES));
const { note: EARLY_NOTE, verifier_key: PUBLIC_KEY } = await keepCheckpoint(late, 'a');
const early = await copyOf(late, scope);
await rewriteLog(late, lengthened(ENTRIES));
const { note: KEPT_NOTE } = await keepCheckpoint(late, 'b');
const sizeOf = (note: string): number => Number(note.split('\n')[1]);

/** What an auditor finds with a kept checkpoint: by the command, by a proof, and by an export. */
async function judge({ address, adminToken, admin }: TestService, of: Scope, note: string) {
  const home = newHome(of, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: adminToken });
  const lay = (name: string, text: string): string => {
    writeFileSync(join(home.path, name), text);
    return join(home.path, name);
  };
  const [pub, kept] = [lay('log.pub', `${PUBLIC_KEY}\n`), lay('kept.txt', note)];
  const command = await home.leasehold(['audit', 'verify', '--checkpoint', kept, '-o', 'json']);
  const exported = lay('audit.ndjson', (await admin.get('/api/v1/audit/export')).text);
  const newer = (await admin.get('/api/v1/audit/checkpoint')).body.data;
  const answer = await admin.get(`/api/v1/audit/consistency?from=${sizeOf(note)}&to=${newer.size}`);
  // The service has no proof from a size that its log does not have.
  const proof = lay('proof.json', answer.status === 200 ? answer.text : '{"proof":[]}');
  const [byProof, byExport] = await runVerifierWith([
    [
      '--consistency',
      proof,
      '--public-key-file',
      pub,
      '--checkpoint',
      kept,
      '--checkpoint',
      lay('new.txt', newer.note),
    ],
    [exported, '--public-key-file', pub, '--checkpoint', kept],
  ]);
  return [command.code, byProof?.status, byExport?.status];
}

const [EXTENDS, CONTRADICTS] = [
  [0, 0, 0],
  [3, 1, 1],
];

async function assertAllKeysFindNothing({ admin, dataDir }: TestService, of: Scope): Promise<void> {
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
  const exported = await admin.get('/api/v1/audit/export');
  const head = exported.headers.get('leasehold-audit-head');
  const auditKey = exportAuditKeys(await vaultKeysOf(dataDir));
  const { status, errors } = await runVerifier(of, { text: exported.text, head, auditKey });
  assert.equal(status, 0, errors);
}

test('without an attack the log extends both checkpoints', async (t) => {
  const service = await startTestService(t, [], await copyOf(late, t));
  await assertAllKeysFindNothing(service, t);
  assert.deepEqual(await judge(service, t, EARLY_NOTE), EXTENDS);
  assert.deepEqual(await judge(service, t, KEPT_NOTE), EXTENDS);
});

/** A place after the early checkpoint and before the late one. */
const PLACE = ENTRIES + 200;
const otherwise = (entry: EntryWithoutMac): EntryWithoutMac => ({ ...entry, resource: 'another' });
/** The entries keep the order of their times. */
const swapped: Rewriting = (entries) =>
  entries.map((entry, at) => {
    const other = at === PLACE ? entries[PLACE + 1] : at === PLACE + 1 ? entries[PLACE] : undefined;
    return { ...(other ?? entry), timestamp: entry.timestamp };
  });

const REWRITINGS: Readonly<Record<string, Rewriting>> = {
  'its end was cut off': (entries) => entries.slice(0, PLACE),
  'it forks, and is as long': (entries) => entries.map((entry, at) => (at < PLACE ? entry : otherwise(entry))),
  'two entries are in the other order': swapped,
  'one entry was altered': (entries) => entries.map((entry, at) => (at === PLACE ? otherwise(entry) : entry)),
  'one entry was removed, and one was added': (entries) => [
    ...entries.slice(0, PLACE),
    ...entries.slice(PLACE + 1),
    ...entries.slice(-1),
  ],
};

for (const [what, rewriting] of Object.entries(REWRITINGS)) {
  test(`a kept checkpoint shows that ${what}`, async (t) => {
    const dataDir = await copyOf(late, t);
    await rewriteLog(dataDir, rewriting);
    const service = await startTestService(t, [], dataDir);
    await assertAllKeysFindNothing(service, t);
    assert.deepEqual(await judge(service, t, KEPT_NOTE), CONTRADICTS);
  });
}

test('a kept checkpoint shows that the vault was rolled back, also when its log is longer again', async (t) => {
  const dataDir = await copyOf(early, t);
  const rolledBack = await startTestService(t, [], dataDir);
  assert.deepEqual(await judge(rolledBack, t, KEPT_NOTE), CONTRADICTS);
  await rolledBack.stop();
  await rewriteLog(dataDir, lengthened(2 * ENTRIES));
  const service = await startTestService(t, [], dataDir);
  await assertAllKeysFindNothing(service, t);
  assert.deepEqual(await judge(service, t, KEPT_NOTE), CONTRADICTS);
  assert.deepEqual(await judge(service, t, EARLY_NOTE), EXTENDS);
});
