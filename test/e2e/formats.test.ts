/** Compares docs/formats.md with the code: each example is recomputed. Its tables are tested in test/sqlite. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { parseIdempotencyKey } from '../../src/core/idempotency.ts';
import type { ChallengeId } from '../../src/core/names.ts';
import type { Resource } from '../../src/core/resources.ts';
import { entryMac, headMac } from '../../src/crypto/chain.ts';
import { fieldsMac, rowMac } from '../../src/crypto/row-mac.ts';
import { decodeChallengeId, deriveNonce, hashToken } from '../../src/crypto/tokens.ts';
import { CompactRange, encodeHash } from '../../src/crypto/tree.ts';
import { decryptValue } from '../../src/crypto/value-encryption.ts';
import { APPROVALS } from '../../src/store/schema.ts';
import type { Head } from '../../src/store/stored-data.ts';
import type { Approval } from '../../src/vault/approvals/approval.ts';
import {
  type AuditEntry,
  canonicalEntry,
  canonicalHead,
  GENESIS_MAC,
  headWords,
  USE_FIELDS,
} from '../../src/vault/audit/audit-entry.ts';
import type { AssociatedData } from '../../src/vault/credentials/credential.ts';
import { ROOT } from '../conventions/source.ts';
import { CHECKPOINTS } from '../crypto/checkpoint-vectors.ts';
import { keysOf, readVectors } from '../crypto/vectors.ts';
import { startTestService } from '../kit/service.ts';

const page = readFileSync(join(ROOT, 'docs/formats.md'), 'utf8');
const ROOT_KEY = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';
const keys = keysOf(ROOT_KEY);

function shows(...parts: readonly (string | number)[]): void {
  const text = parts.join('');
  assert.ok(page.includes(text), `docs/formats.md does not show ${text}`);
}

test('the keys of the examples are those of the vectors', () => {
  const { currentDataKey: data, audit, challenge, row } = keys;
  for (const [purpose, key] of Object.entries({ data, audit, challenge, row }))
    shows(`| ${purpose} | \`${key.export().toString('base64')}\` |`);
});

test('the encrypted value on the page has the documented layout and can be decrypted', () => {
  interface ValueVectors {
    readonly sealed: readonly {
      name: string;
      credential_id: string;
      path: string;
      type: string;
      version: number;
      value: string;
      sealed: string;
    }[];
  }
  const [example] = readVectors<ValueVectors>('sealing-v1.json').sealed;
  assert.ok(example);
  const bytes = Buffer.from(example.sealed, 'base64');
  const hex = (from: number, to: number): string => bytes.subarray(from, to).toString('hex');
  const end = bytes.length;
  shows('sealed           ', example.sealed);
  shows('format           ', hex(0, 1), '\ndata key id      ', hex(1, 5), '\nnonce            ', hex(5, 17));
  shows('ciphertext       ', hex(17, end - 16), '\ntag              ', hex(end - 16, end));
  const { credential_id: credentialId, path, type, version } = example;
  shows('associated JSON  ', JSON.stringify(['leasehold-value-v1', credentialId, path, type, version]));
  shows(`version ${version} of \`${path}\`, of type \`${type}\`, with the value \`${example.value}\``);
  const boundTo = { credentialId, path, type, version } as AssociatedData;
  assert.equal(decryptValue(keys, bytes, boundTo)?.reveal(), example.value);
});

test('the row MACs on the page match the code', () => {
  const { rows } = readVectors<{ rows: readonly { kind: Resource; mac: string }[] }>('rows-v3.json');
  const shown = new Map(rows.map(({ kind, mac }) => [mac, kind]));
  const examples = [...page.matchAll(/^(\["leasehold-([a-z]+)-v2",.*\])\n(\S{44})$/gm)].filter(([, , , mac = '']) =>
    shown.has(mac),
  );
  for (const [, array = '', kind, mac = ''] of examples) {
    assert.equal(kind, shown.get(mac));
    assert.equal(rowMac(keys.row, kind as Resource, JSON.parse(array)[1]), mac);
  }
  assert.deepEqual(new Set(examples.map(([, , kind]) => kind)), new Set(shown.values()));
});

test('the approval and the key of the page are those of the vectors', () => {
  const { row, mac, key } = readVectors<{
    row: Approval;
    mac: string;
    key: { fields: readonly string[]; mac: string };
  }>('approvals-v2.json');
  const texts = [
    `${JSON.stringify(['leasehold-approval-v2', APPROVALS.macValues(row)])}\n${mac}`,
    `${JSON.stringify(['leasehold-approval-key-v1', ...key.fields])}\n${key.mac}`,
  ];
  for (const text of texts) assert.equal(page.includes(text), true, text);
});

test('the idempotency record’s id and request MAC on the page match the code', () => {
  const [, name = '', key = '', id] = /\["leasehold-idempotency-v1","([^"]+)","([^"]+)"\]\n(\S+)\n/.exec(page) ?? [];
  assert.equal(fieldsMac(keys.row, 'idempotency', [name, parseIdempotencyKey(key)]), id);
  const [, array = '', mac] = /(\["leasehold-request-v1".*\])\n(\S+)\n/.exec(page) ?? [];
  assert.equal(fieldsMac(keys.row, 'request', JSON.parse(array).slice(1)), mac);
  shows(`"id":"${id}",`);
  shows(`,"request_mac":"${mac}"}`);
});

test('the rollback marker’s MAC on the page matches the code', () => {
  const [, array = '', mac] = /(\["leasehold-rollback-marker-v1".*\])\n(\S+)\n/.exec(page) ?? [];
  assert.equal(fieldsMac(keys.row, 'rollback-marker', JSON.parse(array).slice(1)), mac);
});

test('the challenges on the page decode, and their nonces derive, as documented', () => {
  const examples = [
    ...page.matchAll(
      /id {8}(\S{36}) +made at (\d+), for an (agent|unregistered name)\nbound to {2}(\S+)\nnonce {5}(\S+)\n/g,
    ),
  ];
  assert.equal(examples.length, 2);
  for (const [, id, at, whom, boundTo = '', nonce] of examples) {
    const challenge = decodeChallengeId(keys.challenge, id as ChallengeId);
    assert.deepEqual(challenge, { issuedAt: Number(at), wasIssuedToAgent: whom === 'agent' });
    assert.equal(deriveNonce(keys.challenge, id as ChallengeId, boundTo).toString('base64'), nonce);
  }
});

test('the token on the page has the documented hash', () => {
  const [, token = '', hash] = /token {7}(\S+)\ntoken_hash {2}(\S+)\n/.exec(page) ?? [];
  assert.match(token, /^lhs_[\w-]{43}$/);
  assert.equal(hashToken(token), hash);
});

test('the entries, the head record and its header on the page have the documented MACs', () => {
  interface Log {
    readonly entries: readonly AuditEntry[];
    readonly head: Head;
  }
  const { entries, head } = readVectors<Log>('audit-v1.json');
  for (const seq of [1, 4]) {
    const entry = entries[seq - 1];
    assert.ok(entry);
    const previous = entries[seq - 2]?.hmac ?? GENESIS_MAC;
    shows(canonicalEntry(entry), '\n', entryMac(keys.audit, previous, entry), '\n');
    if (seq > 1) shows(`whose \`hmac\` is\n\`${previous}\``);
  }
  shows(canonicalHead(head), '\n', headMac(keys.audit, head), '\n');
  shows(`Leasehold-Audit-Head: ${headWords(head)}\n`);
  const tree = CompactRange.parse(head.tree, head.seq);
  assert.ok(tree);
  shows(`root: ${encodeHash(tree.root)}`);
  for (const [file, seqs] of [
    ['audit-uses-v1.json', [3, 5]],
    ['audit-states-v1.json', [5, 7]],
  ] as const) {
    const others = readVectors<Log>(file).entries;
    for (const seq of seqs) {
      const entry = others[seq - 1];
      assert.ok(entry);
      const previous = others[seq - 2]?.hmac ?? '';
      shows(canonicalEntry(entry), '\n', entryMac(keys.audit, previous, entry), '\n');
      shows(`\`${previous}\``);
    }
  }
  const [first] = entries;
  const keysNamed = (end: string): string[] => {
    const [, list = ''] = new RegExp(`the keys ([\`\\w,\\s]*), ${end}`).exec(page) ?? [];
    return [...list.matchAll(/`(\w+)`/g)].map(([, key = '']) => key);
  };
  assert.deepEqual(keysNamed('in this order'), Object.keys(first ?? {}));
  assert.deepEqual(keysNamed('behind them'), [...USE_FIELDS]);
});

test('the checkpoint, the receipt and the proof on the page are those of the vectors', () => {
  const { seed, verifier_key, checkpoints, receipts, consistency } = CHECKPOINTS;
  shows(`signed with the seed \`${seed}\``);
  shows('```text\n', verifier_key, '\n```');
  shows('```text\n', checkpoints[6]?.note ?? '?', '```');
  shows('```text\n', receipts.find((each) => each.seq === 4 && each.size === 6)?.receipt ?? '?', '```');
  const [, proof = ''] = /From 3 to 6 entries it is:\n\n```json\n(.*)\n/.exec(page) ?? [];
  assert.deepEqual(JSON.parse(proof), consistency.find((each) => each.from === 3 && each.to === 6)?.proof);
});

test('the data directory of a running service holds the files that the page lists', async (t) => {
  const { dataDir, agent } = await startTestService(t);
  await agent('deploy-bot');
  const found = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => relative(dataDir, join(parentPath, name)).replace('deploy-bot', '<name>'));
  const [, section = ''] = page.split('\n## The data directory\n');
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  for (const name of found)
    assert.ok(
      rows.some((row) => row.includes(`\`${name}\``)),
      name,
    );
  assert.ok(found.includes('leasehold.db'));
  for (const name of ['rollback.marker', 'root.key', 'lock', 'daemon.token', 'agents/<name>/agent_id']) {
    assert.ok(found.includes(name), name);
  }
});
