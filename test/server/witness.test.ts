// A witness cosigns the checkpoints of a log that extends what it has cosigned, and of no other one.

import assert from 'node:assert/strict';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseReceipt } from '../../src/crypto/receipt.ts';
import { type NoteVerifier, parseVerifierKey } from '../../src/crypto/signed-note.ts';
import { rewriteLog } from '../e2e/rewrite-log.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { copyDatabaseOf } from '../kit/stores.ts';
import { startWitness, type Witness } from '../kit/witness.ts';

const CHECKPOINT = '/api/v1/audit/checkpoint';

/** A vault, and a witness that knows its public key. */
async function scene(
  t: TestContext,
): Promise<{ dataDir: string; witness: Witness; flags: string[]; log: NoteVerifier }> {
  const dataDir = join(temporaryDirectory(t), 'data');
  const service = await startTestService(t, [], dataDir);
  const log = parseVerifierKey((await service.admin.get(CHECKPOINT)).body.data.verifier_key);
  assert.ok(log);
  await service.stop();
  const witness = await startWitness(t, log);
  return { dataDir, witness, flags: ['--anchor', witness.anchor], log };
}

async function copyOf(t: TestContext, dataDir: string): Promise<string> {
  const copy = join(temporaryDirectory(t), 'data');
  cpSync(dataDir, copy, { recursive: true });
  await copyDatabaseOf(dataDir, copy);
  return copy;
}

/** Adds an entry, and has it signed. Resolves to its receipt's checkpoint. */
async function sign({ admin }: TestService): Promise<string> {
  assert.equal((await admin.post('/api/v1/credentials', { path: 'a', value: 'v' })).status, 201);
  const { total } = (await admin.get('/api/v1/audit?limit=1')).body.meta;
  return parseReceipt((await admin.get(`/api/v1/audit/entries/${total}/proof`)).body.data.receipt)?.checkpoint ?? '';
}

const newestNote = async ({ admin }: TestService): Promise<string> => (await admin.get(CHECKPOINT)).body.data.note;
const cosigns = (service: TestService, { hasCosigned }: Witness) =>
  until(async () => hasCosigned(await newestNote(service)));

test('a checkpoint is cosigned, with a proof that it extends the one before, and is handed out so', async (t) => {
  const { dataDir, witness, flags } = await scene(t);
  const service = await startTestService(t, flags, dataDir);
  await cosigns(service, witness);
  const first = Number((await newestNote(service)).split('\n')[1]);
  const note = await sign(service);
  assert.notEqual(note.split('\n')[1], String(first));
  await cosigns(service, witness);
  assert.deepEqual(witness.answers, [
    [200, 0],
    [200, first],
  ]);
  const receipt = (await service.admin.get('/api/v1/audit/entries/1/proof')).body.data.receipt;
  assert.equal(witness.hasCosigned(parseReceipt(receipt)?.checkpoint ?? ''), true);
  // The line is written after the note is handed out. What follows the last line end is not complete.
  await until(() => {
    const line = readFileSync(join(dataDir, 'anchors.log'), 'utf8').split('\n').at(-2);
    return line !== undefined && witness.hasCosigned(JSON.parse(line).note);
  });
  await service.stop();
  const cosigned = witness.answers.length;
  const restarted = await startTestService(t, flags, dataDir);
  await cosigns(restarted, witness);
  // The restarted service does not know what the witness has.
  assert.deepEqual(
    witness.answers.slice(cosigned).map(([status]) => status),
    [409, 200],
  );
});

test('a log that was rolled back or written again is not cosigned', async (t) => {
  const { dataDir, witness, flags } = await scene(t);
  const early = await copyOf(t, dataDir);
  const service = await startTestService(t, flags, dataDir);
  for (let entry = 0; entry < 5; entry++) await sign(service);
  await cosigns(service, witness);
  await service.stop();
  const isRefused = async (directory: string, statuses: readonly number[]): Promise<void> => {
    const before = witness.answers.length;
    const refused = await startTestService(t, flags, directory);
    await until(() => witness.answers.length >= before + statuses.length);
    const answers = witness.answers.slice(before, before + statuses.length);
    assert.deepEqual(
      answers.map(([status]) => status),
      statuses,
    );
    assert.equal(witness.hasCosigned(await newestNote(refused)), false);
    await refused.stop();
  };
  await isRefused(early, [409]);
  await rewriteLog(dataDir, (entries) => entries.map((entry, at) => (at === 1 ? { ...entry, reason: 'x' } : entry)));
  await isRefused(dataDir, [409, 422]);
});

test('a signature of a witness that is not about the checkpoint is not taken over', async (t) => {
  const { dataDir, witness, flags } = await scene(t);
  witness.lies = true;
  const service = await startTestService(t, flags, dataDir);
  await until(() => witness.answers.length > 0);
  const note = await newestNote(service);
  witness.lies = false;
  assert.doesNotMatch(note, /witness\.example/);
  await cosigns(service, witness);
});

test('a checkpoint has the cosignatures of all witnesses', async (t) => {
  const { dataDir, witness, flags, log } = await scene(t);
  const other = await startWitness(t, log);
  const service = await startTestService(t, ['--anchor', `${flags.at(-1)},${other.anchor}`], dataDir);
  await until(async () => {
    const note = await newestNote(service);
    return witness.hasCosigned(note) && other.hasCosigned(note);
  });
});
