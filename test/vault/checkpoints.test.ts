// Signed checkpoints and the proofs against them, on each store.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkpointSigner, openCheckpoint, signCheckpoint } from '../../src/crypto/checkpoint.ts';
import { CompactRange, decodeHash, isConsistent } from '../../src/crypto/tree.ts';
import { readVaultState } from '../../src/ledger/vault-state.ts';
import { readHead, readNewestCheckpoint } from '../../src/store/audit-log.ts';
import { CheckpointConflictError, Checkpoints } from '../../src/vault/audit/checkpoints.ts';
import { serviceEvent } from '../../src/vault/audit/lifecycle.ts';
import { LogTree } from '../../src/vault/audit/log-tree.ts';
import { proveConsistency, proveEntry, readCheckpoint } from '../../src/vault/audit/receipts.ts';
import { newSigningKey, rotateKey } from '../../src/vault/keys/keys.ts';
import { openDirectDb } from '../kit/direct-db.ts';
import { openReceipt } from '../kit/receipts.ts';
import { admin, inFrontOfReads, type OpenedVault, openVault, outcomeOf, put, readLog } from './fixture.ts';
import { lengthenLog } from './verification-log.ts';

async function treeOfLog(vault: OpenedVault, size: number): Promise<CompactRange> {
  const tree = CompactRange.empty();
  for (const { hmac } of (await readLog(vault.real)).slice(0, size)) tree.append(hmac, []);
  return tree;
}

test('a checkpoint is a signed note about the size and the root of the log', async (t) => {
  const vault = await openVault(t);
  for (const path of ['a', 'b', 'c']) await put(vault, path);
  const { note, size, root, signedAt, verifierKey, origin } = await vault.checkpoints.sign();
  assert.equal(size, 3);
  assert.equal(root, (await treeOfLog(vault, 3)).root);
  const signer = checkpointSigner(vault.keys);
  assert.deepEqual(openCheckpoint(note, signer), { origin, size, root });
  assert.equal(origin, `leasehold/${vault.keys.vaultId}`);
  assert.match(verifierKey, /^leasehold\/[A-Za-z0-9_-]{22}\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}$/);
  const stored = await vault.real.run(readNewestCheckpoint());
  assert.deepEqual(stored, { generation: 1, size, signedAt, note });
});

test('a log that has not grown is not signed again, and a restart signs the same note', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const signed: string[] = [];
  const others = new Checkpoints({ ...vault, onSigned: ({ note }) => signed.push(note) });
  const [first, again] = [await others.sign(), await others.sign()];
  assert.equal(again, first);
  const restarted = await new Checkpoints({ ...vault, onSigned: ({ note }) => signed.push(note) }).sign();
  assert.equal(restarted.note, first.note);
  assert.deepEqual(signed, [first.note, first.note]);
});

test('no checkpoint is signed for a log that ends before the newest one, or has another root at its size', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const signer = checkpointSigner(vault.keys);
  const forks = () => new Checkpoints({ ...vault, onSigned: () => assert.fail('published') });
  const { note } = await vault.checkpoints.sign();
  const outside = await openDirectDb(vault.directory);
  await outside.run(`UPDATE checkpoints SET note = '${note.replace(/\n1\n.*\n/, `\n1\n${'A'.repeat(43)}=\n`)}'`);
  await assert.rejects(forks().sign(), CheckpointConflictError);
  const longer = signCheckpoint({ size: 2, root: 'r'.repeat(32) }, signer);
  await outside.run(`UPDATE checkpoints SET note = '${longer}', size = 2`);
  await assert.rejects(forks().sign(), /ends at entry 1, before the checkpoint of 2 entries/);
  await outside.run('DELETE FROM checkpoints; UPDATE audit_head SET mac = hmac');
  await assert.rejects(forks().sign(), /head record is missing or not authentic/);
  await outside.close();
  assert.ok(openCheckpoint(note, signer));
});

test('a node signs nothing under a former signing key, or a log that does not extend what it has signed', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const late = new Checkpoints({ ...vault, keys: vault.keys.fork(), onSigned: () => assert.fail('published') });
  const other = new Checkpoints({ ...vault, keys: vault.keys.fork(), onSigned: () => undefined });
  assert.equal((await other.sign()).size, 1);
  await vault.ledger.submit(serviceEvent('service.start', null, [newSigningKey()]));
  const { origin, size } = await vault.checkpoints.sign();
  assert.deepEqual([origin.endsWith('/2'), size], [true, 2]);
  assert.equal((await other.sign()).origin, origin);
  const outside = await openDirectDb(vault.directory);
  t.after(() => outside.close());
  await outside.run('UPDATE checkpoints SET generation = 3 WHERE generation = 2');
  await assert.rejects(late.sign(), /a later signing key/);
});

test('a stored checkpoint that the vault has not signed is reported, and signing goes on', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const { note } = await vault.checkpoints.sign();
  const outside = await openDirectDb(vault.directory);
  t.after(() => outside.close());
  // The second note is the vault's own, for another size.
  for (const [size, forged] of [
    [Number.MAX_SAFE_INTEGER, 'x'],
    [1000, note],
  ] as const) {
    await outside.run(`DELETE FROM checkpoints; INSERT INTO checkpoints VALUES (1, ${size}, 0, '${forged}')`);
    await put(vault, `b/${size}`);
    const signed = await vault.checkpoints.sign();
    assert.equal(signed.root, (await treeOfLog(vault, signed.size)).root);
    const expected = `The database has a checkpoint of ${size} entries that this vault has not signed; it is ignored.`;
    assert.deepEqual(vault.failures.splice(0), [expected]);
  }
});

test('a checkpoint is signed although another node adds entries and signs them meanwhile', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const other = new Checkpoints({ ...vault, onSigned: () => undefined });
  let isFirst = true;
  const afterwards = async <T>(read: T): Promise<T> => {
    if (!isFirst) return read;
    isFirst = false;
    await put(vault, 'b');
    assert.equal((await other.sign()).size, 2);
    return read;
  };
  const store = inFrontOfReads(
    inFrontOfReads(vault.store, readHead, async (read) => afterwards(await read())),
    readNewestCheckpoint,
    async (read) => afterwards(await read()),
  );
  const signed = await new Checkpoints({ ...vault, store, onSigned: () => undefined }).sign();
  assert.equal(signed.root, (await treeOfLog(vault, signed.size)).root);
});

test('a node signs under an audit key that another node has made since its last batch', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const former = vault.keys.fork();
  await rotateKey(vault, admin(), 'audit');
  await put(vault, 'b');
  const { size } = await new Checkpoints({ ...vault, keys: former, onSigned: () => undefined }).sign();
  assert.equal(size, 3);
});

const LENGTH = 1500;

test('every entry of a long log has a receipt, and every earlier size is extended', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a/b');
  await lengthenLog(vault.real, vault.keys, LENGTH);
  Object.assign(vault.ledger.memory, await tipOf(vault));
  await put(vault, 'a/c');
  const newest = await vault.checkpoints.sign();
  assert.equal(newest.size, LENGTH + 1);
  const verifier = checkpointSigner(vault.keys);
  for (const seq of [1, 2, 255, 256, 257, 512, 513, 1024, 1280, 1281, LENGTH, LENGTH + 1]) {
    const proof = await proveEntry(vault, admin(), seq);
    assert.deepEqual(openReceipt(proof.receipt, verifier), { seq, hmac: proof.hmac, size: newest.size });
  }
  for (const from of [0, 1, 255, 256, 257, 1000, 1024, 1281, LENGTH, LENGTH + 1]) {
    const found = await proveConsistency(vault, admin(), from, null);
    const [earlier, later] = [found.fromRoot, found.toRoot].map((root) => decodeHash(root) ?? '');
    assert.equal(earlier, (await treeOfLog(vault, from)).root, `size ${from}`);
    const proof = found.proof.map((hash) => decodeHash(hash) ?? '');
    const [a, b] = [
      { size: from, root: earlier ?? '' },
      { size: found.to, root: later ?? '' },
    ];
    assert.equal(isConsistent(a, b, proof), true, `from ${from}`);
    assert.equal(b.root, newest.root);
  }
  assert.equal((await proveConsistency(vault, admin(), 3, 300)).toRoot, base64((await treeOfLog(vault, 300)).root));
});

const base64 = (hash: string): string => Buffer.from(hash, 'latin1').toString('base64');

async function tipOf({ real, keys }: OpenedVault) {
  const { tip, lastEntryAt, lastSeenEntry, unstoredNodes } = await readVaultState(real, keys);
  return { tip, lastEntryAt, lastSeenEntry, unstoredNodes };
}

test('a receipt of the newest entry is signed when it is requested, and an unknown entry has none', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  assert.equal((await readCheckpoint(vault, admin())).size, 1);
  await put(vault, 'b');
  assert.equal((await proveEntry(vault, admin(), 2)).size, 2);
  assert.equal(await outcomeOf(proveEntry(vault, admin(), 3)), 'NOT_FOUND');
  assert.equal(await outcomeOf(proveConsistency(vault, admin(), 1, 3)), 'INVALID_REQUEST');
  assert.equal(await outcomeOf(proveConsistency(vault, admin(), 2, 1)), 'INVALID_REQUEST');
});

test('no receipt and no consistency proof is issued from an altered log or altered nodes', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a/b');
  await lengthenLog(vault.real, vault.keys, 600);
  Object.assign(vault.ledger.memory, await tipOf(vault));
  await put(vault, 'a/c');
  await vault.checkpoints.sign();
  const outside = await openDirectDb(vault.directory);
  await outside.run(`UPDATE audit_entries SET hmac = (SELECT hmac FROM audit_entries WHERE seq = 7) WHERE seq = 9`);
  assert.equal(await outcomeOf(proveEntry(vault, admin(), 9)), 'INTEGRITY_FAILURE');
  assert.equal(await outcomeOf(proveEntry(vault, admin(), 10)), 'INTEGRITY_FAILURE');
  for (const from of [16, 20]) {
    assert.equal(await outcomeOf(proveConsistency(vault, admin(), from, null)), 'INTEGRITY_FAILURE', `from ${from}`);
  }
  await outside.run('DELETE FROM audit_tree WHERE position = 1');
  assert.equal(await outcomeOf(proveEntry(vault, admin(), 600)), 'INTEGRITY_FAILURE');
  await outside.close();
  await assert.rejects(new LogTree(vault.real, 600).root(), /missing|lacks/);
});
