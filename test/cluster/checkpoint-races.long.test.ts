// Nodes that sign the same log at the same time: wherever their checkpoints are kept, a size has one root.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openCheckpoint, parseVerifierKey } from '../../src/crypto/checkpoint.ts';
import { CompactRange } from '../../src/crypto/tree.ts';
import type { TestResponse } from '../kit/client.ts';
import { type Node, startCluster } from '../kit/cluster.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { querySql } from '../kit/postmaster.ts';
import { noteOf } from '../kit/receipts.ts';
import { scaled } from '../kit/scale.ts';

const NODES = 3;
const ROUNDS = scaled(12, 400);
/** In the middle of other rounds, a node replaces the audit key that authenticates the head record. */
const ROTATION_INTERVAL = scaled(6, 40);

const notesIn = (lines: string): string[] =>
  lines
    .split('\n')
    .filter((line) => line.includes('"note"'))
    .map((line) => JSON.parse(line).note);

test('nodes that race to sign never sign two roots for one size, and each root is that of the log', async (t) => {
  const { url, start } = await startCluster(t, { nodes: 0 });
  const files = Array.from({ length: NODES }, () => join(temporaryDirectory(t), 'kept.log'));
  const nodes: Node[] = [];
  for (const file of files) nodes.push(await start(undefined, ['--checkpoint-file', file]));
  const [first] = nodes;
  assert.ok(first);
  let entries: number = (await first.admin.get('/api/v1/audit?limit=1')).body.meta.total;
  const inReceipts: string[][] = nodes.map(() => []);
  for (let round = 0; round < ROUNDS; round++) {
    // A receipt of an entry that no checkpoint of the node covers makes the node sign.
    const path = `/api/v1/audit/entries/${entries}/proof`;
    const proofs: Promise<TestResponse>[] = nodes.map(({ admin }) => admin.get(path));
    // In every other round the log grows while it is signed.
    if (round % 2 === 0) await Promise.all(proofs);
    const changes: Promise<TestResponse>[] = nodes.map(({ admin }, node) =>
      admin.post('/api/v1/credentials', { path: `race/${node}`, value: `${round}` }),
    );
    const rotating = round % ROTATION_INTERVAL === 1 ? nodes[round % NODES] : undefined;
    if (rotating !== undefined) changes.push(rotating.admin.post('/api/v1/key/rotate', { key: 'audit' }));
    for (const [node, { status, text, body }] of (await Promise.all(proofs)).entries()) {
      assert.equal(status, 200, text);
      inReceipts[node]?.push(noteOf(body.data.receipt));
    }
    for (const { status, text } of await Promise.all(changes)) assert.ok(status === 200 || status === 201, text);
    entries += changes.length;
  }
  const log = (await first.admin.get('/api/v1/audit/export')).text.trimEnd().split('\n');
  assert.equal(log.length, entries);
  const verifier = parseVerifierKey((await first.admin.get('/api/v1/audit/checkpoint')).body.data.verifier_key);
  assert.ok(verifier);
  for (const node of nodes) await node.end('SIGTERM');

  const inDatabase = await querySql(url, 'SELECT note FROM leasehold.checkpoints');
  const kept = [
    ...inReceipts,
    ...nodes.map(({ dataDir }) => notesIn(readFileSync(join(dataDir, 'checkpoints.log'), 'utf8'))),
    ...files.map((file) => notesIn(readFileSync(file, 'utf8'))),
    inDatabase.map(({ note }) => String(note)),
  ];
  const rootOf = new Map<number, string>();
  for (const [place, notes] of kept.entries()) {
    assert.ok(notes.length > 0, `place ${place} has no checkpoint`);
    for (const note of notes) {
      const checkpoint = openCheckpoint(note, verifier);
      assert.ok(checkpoint, note);
      const known = rootOf.get(checkpoint.size) ?? checkpoint.root;
      assert.equal(checkpoint.root, known, `two roots for ${checkpoint.size} entries`);
      rootOf.set(checkpoint.size, known);
    }
  }
  const tree = CompactRange.empty();
  let compared = 0;
  for (const line of log) {
    tree.append(JSON.parse(line).hmac, []);
    const root = rootOf.get(tree.size);
    if (root === undefined) continue;
    assert.equal(root, tree.root, `the first ${tree.size} entries`);
    compared += 1;
  }
  const [one, two, three] = inReceipts.map((notes) => new Set(notes));
  const signedByAll = one?.intersection(two ?? new Set()).intersection(three ?? new Set());
  t.diagnostic(`${rootOf.size} sizes, ${signedByAll?.size} of them signed by all nodes, ${kept.flat().length} copies`);
  assert.ok(compared >= ROUNDS / 2, `only ${compared} sizes were signed`);
});
