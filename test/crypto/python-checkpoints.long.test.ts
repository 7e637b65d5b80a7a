// The independent verifier on checkpoints, receipts and consistency proofs, made by Go's packages or by attacks.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { type NoteSigner, signCheckpoint, signNote, verifierKey } from '../../src/crypto/checkpoint.ts';
import { CompactRange } from '../../src/crypto/tree.ts';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { runs } from '../kit/property.ts';
import { AUDIT, arbitraryEntry, chained } from './audit-vectors.ts';
import { CHECKPOINTS, SIGNER, signerFrom } from './checkpoint-vectors.ts';
import { runVerifierWith, toExport, type Verdict } from './python-verifier.ts';
import { keysOf } from './vectors.ts';

const INTACT = toExport(AUDIT.entries);
const NOTES = CHECKPOINTS.checkpoints.map(({ note }) => note);
const NEWEST = NOTES[6] ?? '';
const RECEIPT = CHECKPOINTS.receipts.find(({ seq, size }) => seq === 4 && size === 6)?.receipt ?? '';
const ENTRY = INTACT.split(/(?<=\n)/);
const keys = keysOf(AUDIT.root_key);

/** Writes files; the arguments that begin with `@` then name them. */
function within(t: TestContext, files: Readonly<Record<string, string>>): (args: string) => string[] {
  const directory = temporaryDirectory(t);
  const usual = { key: `${AUDIT.audit_key}\n`, pub: `${CHECKPOINTS.verifier_key}\n`, log: INTACT };
  for (const [name, text] of Object.entries<string>({ ...usual, ...files })) writeFileSync(join(directory, name), text);
  return (args) => args.split(' ').map((arg) => (arg.startsWith('@') ? join(directory, arg.slice(1)) : arg));
}

/** The checkpoint of the entries. */
function checkpointOf(entries: readonly AuditEntry[], signer: NoteSigner = SIGNER): string {
  const tree = CompactRange.empty();
  for (const { hmac } of entries) tree.append(hmac, []);
  return signCheckpoint(tree, signer);
}

function assertValid(verdict: Verdict | undefined, expected: object): void {
  assert.equal(verdict?.status, 0, `${verdict?.errors}`);
  for (const [key, value] of Object.entries({ valid: true, ...expected }))
    assert.equal(verdict.result[key], value, key);
}

test('a log that extends all checkpoints is valid, and the verdict says whether the chain was verified', async (t) => {
  // A crash leaves a part of a line, which the next start ends.
  const kept = NOTES.map((note) => `${JSON.stringify({ note })}\n`).join('{"note":"a\n');
  const response = JSON.stringify({ data: { note: NEWEST, size: 6 } });
  const args = within(t, { kept, newest: NEWEST, older: NOTES[3] ?? '', response });
  const [both, one, json, tree, several, early] = await runVerifierWith([
    args('@log --key-file @key --public-key-file @pub --checkpoint @kept'),
    args('@log --key-file @key --public-key-file @pub --checkpoint @older'),
    args('@log --key-file @key --public-key-file @pub --checkpoint @response'),
    args('@log --public-key-file @pub --checkpoint @kept'),
    args('@log --public-key-file @pub --checkpoint @older --checkpoint @newest'),
    args('@log --public-key-file @pub --checkpoint @older'),
  ]);
  assertValid(both, { entries: 6, chain: true, signed_entries: 6 });
  assertValid(one, { entries: 6, chain: true, signed_entries: 3 });
  assertValid(json, { entries: 6, chain: true, signed_entries: 6 });
  assertValid(tree, { entries: 6, chain: false, signed_entries: 6 });
  assertValid(early, { entries: 6, chain: false, signed_entries: 3 });
  assert.match(early?.errors ?? '', /verified, and no checkpoint covers the entries after 3\.$/m);
  assertValid(several, { entries: 6, chain: false, signed_entries: 6 });
  assert.match(
    tree?.errors ?? '',
    /Note: the audit key of 6 entries was not given, so only their hmacs were verified\.$/m,
  );
});

test('a log that does not extend a checkpoint is broken, with and without the audit key', async (t) => {
  const rewritten = chained(
    keys,
    AUDIT.entries.map(({ hmac: _, ...entry }) => (entry.seq === 5 ? { ...entry, agent_name: 'other' } : entry)),
  ).entries;
  const files = {
    newest: NEWEST,
    kept: NOTES.map((note) => `${JSON.stringify({ note })}\n`).join(''),
    fork: checkpointOf(rewritten),
    cut: toExport(AUDIT.entries.slice(0, 4)),
    rewritten: toExport(rewritten),
    empty: '',
  };
  const args = within(t, files);
  const cases = [
    ['@cut', '@newest', 5, /missing, and a checkpoint was signed for 6 entries/],
    ['@empty', '@newest', 1, /missing, and a checkpoint was signed for 6 entries/],
    ['@rewritten', '@newest', 6, /the first 6 entries are not those of a signed checkpoint/],
    ['@rewritten', '@kept', 5, /the first 5 entries are not those of a signed checkpoint/],
    ['@log', '@newest --checkpoint @fork', 6, /two signed checkpoints of 6 entries have different roots/],
  ] as const;
  const given = cases.flatMap(([log, checkpoint]) =>
    ['', ' --key-file @key'].map((key) => args(`${log} --public-key-file @pub --checkpoint ${checkpoint}${key}`)),
  );
  const verdicts = await runVerifierWith(given);
  for (const [at, verdict] of verdicts.entries()) {
    const [log, , entry, message] = cases[at >> 1] ?? [];
    assert.deepEqual([verdict.status, verdict.result?.break_at_entry], [1, entry], `${log}: ${verdict.errors}`);
    assert.match(verdict.result.message, message ?? /^$/);
  }
});

test('without the audit key an altered hmac is found, and altered content is not, which the verdict says', async (t) => {
  const hmac = AUDIT.entries[0]?.hmac ?? '';
  const args = within(t, {
    newest: NEWEST,
    hmac: INTACT.replace(AUDIT.entries[2]?.hmac ?? '', hmac),
    content: INTACT.replace('"prod/db/password"', '"prod/db/another"'),
  });
  const [altered, content, found] = await runVerifierWith([
    args('@hmac --public-key-file @pub --checkpoint @newest'),
    args('@content --public-key-file @pub --checkpoint @newest'),
    args('@content --public-key-file @pub --checkpoint @newest --key-file @key'),
  ]);
  assert.deepEqual([altered?.status, altered?.result.break_at_entry], [1, 6]);
  assertValid(content, { chain: false });
  assert.deepEqual([found?.status, found?.result.break_at_entry], [1, 4]);
});

test('each receipt made with Go is valid, with the entry also its content', async (t) => {
  const files = Object.fromEntries(
    CHECKPOINTS.receipts.map(({ seq, size, receipt }) => [`receipt-${seq}-${size}`, receipt]),
  );
  const args = within(t, {
    ...files,
    first: ENTRY[0] ?? '',
    fourth: ENTRY.slice(2, 4).join(''),
    alone: ENTRY[3] ?? '',
  });
  const all = await runVerifierWith(
    Object.keys(files).map((name) => args(`--receipt @${name} --public-key-file @pub`)),
  );
  for (const [at, verdict] of all.entries()) {
    const { seq, size } = CHECKPOINTS.receipts[at] ?? {};
    assertValid(verdict, {
      entry: seq,
      signed_entries: size,
      hmac: AUDIT.entries[(seq ?? 0) - 1]?.hmac,
      content: false,
    });
  }
  assert.equal(all.length, 21);
  const [first, fourth, alone, noKey] = await runVerifierWith([
    args('--receipt @receipt-1-6 --public-key-file @pub --entry @first --key-file @key'),
    args('--receipt @receipt-4-6 --public-key-file @pub --entry @fourth --key-file @key'),
    args('--receipt @receipt-4-6 --public-key-file @pub --entry @alone --key-file @key'),
    args('--receipt @receipt-4-6 --public-key-file @pub --entry @alone'),
  ]);
  assertValid(first, { entry: 1, content: true });
  assertValid(fourth, { entry: 4, content: true });
  // A key means that the content must be verified, so without the line before it nothing is proven.
  assert.equal(alone?.status, 2);
  assert.match(alone?.errors ?? '', /takes the audit key of the entry, and the line of the entry before it/);
  assertValid(noKey, { entry: 4, content: false });
});

test('a consistency proof is valid for its two checkpoints and for no others', async (t) => {
  const files = Object.fromEntries([
    ...CHECKPOINTS.consistency.map((each) => [`proof-${each.from}-${each.to}`, JSON.stringify({ data: each })]),
    ...NOTES.map((note, size) => [`note-${size}`, note]),
  ]);
  const args = within(t, files);
  const given = CHECKPOINTS.consistency.flatMap(({ from, to }) =>
    [from, from - 1, from + 1].map((older) => ({ from, to, older })),
  );
  const verdicts = await runVerifierWith(
    given.map(({ from, to, older }) =>
      args(
        `--consistency @proof-${from}-${to} --public-key-file @pub --checkpoint @note-${Math.min(older, 6)} --checkpoint @note-${to}`,
      ),
    ),
  );
  for (const [at, { from, to, older }] of given.entries()) {
    // Two equal sizes, or none, need an empty proof, which the one between equal sizes is.
    const isProof = Math.min(older, 6) === from || (from === to && older === 0);
    assert.equal(verdicts[at]?.status, isProof ? 0 : 1, `${from} ${to} for ${older}: ${verdicts[at]?.errors}`);
    if (isProof && older === from) assertValid(verdicts[at], { from, to });
  }
});

test('a consistency proof does not connect checkpoints of two logs', async (t) => {
  const other = AUDIT.entries.toReversed();
  const proof = JSON.stringify(CHECKPOINTS.consistency.find(({ from, to }) => from === 3 && to === 6));
  const files = { proof, older: NOTES[3] ?? '', newer: NEWEST, olderFork: checkpointOf(other.slice(0, 3)) };
  const args = within(t, { ...files, newerFork: checkpointOf(other) });
  const pairs = ['@older --checkpoint @newer', '@olderFork --checkpoint @newer', '@older --checkpoint @newerFork'];
  const verdicts = await runVerifierWith(
    pairs.map((pair) => args(`--consistency @proof --public-key-file @pub --checkpoint ${pair}`)),
  );
  assert.deepEqual(
    verdicts.map(({ status }) => status),
    [0, 1, 1],
  );
});

/** The newest checkpoint's text, altered and signed again. */
const signed = (alter: (text: string) => string): string =>
  signNote(alter(NEWEST.slice(0, NEWEST.indexOf('\n\n') + 1)), SIGNER);

const ONLY_RECEIPT = CHECKPOINTS.receipts.find(({ size }) => size === 1)?.receipt ?? '';
const ANOTHER = signerFrom(7, 'leasehold/another');
/** The key with the type of a witness's. */
const OF_ANOTHER_ALGORITHM = ((): string => {
  const [name = '', , key = ''] = CHECKPOINTS.verifier_key.split('+');
  const bytes = Buffer.concat([Buffer.from([4]), Buffer.from(key, 'base64').subarray(1)]);
  const id = createHash('sha256').update(`${name}\n`).update(bytes).digest('hex').slice(0, 8);
  return `${name}+${id}+${bytes.toString('base64')}\n`;
})();

const LOG = '@log --public-key-file @pub --checkpoint @x';
const ONE_RECEIPT = '--receipt @x --public-key-file @pub';
const ENTRY_OF_RECEIPT = '--receipt @receipt --public-key-file @pub --entry @x';
const PROOF = '--consistency @x --public-key-file @pub --checkpoint @newest';

/** The verifier's status, which prints nothing if it is 2, its arguments, and what `x` is in each case. */
const REJECTED: readonly (readonly [status: 1 | 2, args: string, cases: Readonly<Record<string, string>>])[] = [
  [
    2,
    LOG,
    {
      'a checkpoint with another text': NEWEST.replace('6', '5'),
      'a checkpoint of another origin': checkpointOf(AUDIT.entries, signerFrom(7, 'other')),
      'a checkpoint file with a malformed line': `${JSON.stringify({ note: NEWEST })}\n{"note":}\n`,
      'a signed text that is not a checkpoint': signed(() => 'any\n'),
      'a checkpoint with a padded size': signed((text) => text.replace('\n6\n', '\n06\n')),
      'a checkpoint of another log under the key': signed((text) => text.replace('leasehold/', 'another/')),
      'an invalid and a valid signature': NEWEST + (NOTES[5] ?? '').slice((NOTES[5] ?? '').indexOf('—')),
      'a checkpoint file without notes': '{"size":6}\n',
      'an empty checkpoint file': '',
    },
  ],
  [1, LOG, { 'an empty log with a root': signed((text) => text.replace('\n6\n', '\n0\n')) }],
  [2, `${LOG} --key-file @key`, { 'only a part of a line': '{"note":"a' }],
  [
    2,
    '@log --public-key-file @x --checkpoint @newest',
    {
      'a verifier key of another algorithm': OF_ANOTHER_ALGORITHM,
      'a malformed public key': CHECKPOINTS.verifier_key.replace('+', '+0'),
      'an empty public key file': '',
    },
  ],
  [
    2,
    '@x --public-key-file @pub --checkpoint @newest',
    { 'an hmac that is not base64, without the audit key': INTACT.replace(/"hmac":"./, '"hmac":"!') },
  ],
  [2, '@x --public-key-file @pub --checkpoint @none', { 'an empty export with the checkpoint of an empty log': '' }],
  [
    1,
    ONE_RECEIPT,
    {
      'the receipt of the only entry at another place': ONLY_RECEIPT.replace('index 0', 'index 5'),
      'a receipt of another position': RECEIPT.replace('index 3', 'index 2'),
      'a receipt of another entry': RECEIPT.replace(/extra \S+/, `extra ${AUDIT.entries[4]?.hmac}`),
      'a receipt beyond its checkpoint': RECEIPT.replace('index 3', 'index 6'),
      'a receipt with another checkpoint': RECEIPT.slice(0, RECEIPT.indexOf('\n\n') + 2) + NOTES[5],
    },
  ],
  [
    2,
    ONE_RECEIPT,
    {
      'a receipt with an hmac of 31 bytes': RECEIPT.replace(
        /extra \S+/,
        `extra ${Buffer.alloc(31).toString('base64')}`,
      ),
      'a truncated receipt': RECEIPT.slice(0, 60),
      'a receipt without an entry MAC': RECEIPT.replace(/extra \S+\n/, ''),
    },
  ],
  [
    1,
    ENTRY_OF_RECEIPT,
    {
      'the receipt’s entry under another number': ENTRY[3]?.replace('"seq":4', '"seq":7') ?? '',
      'an entry that is not the receipt’s': ENTRY[4] ?? '',
    },
  ],
  [
    1,
    `${ENTRY_OF_RECEIPT} --key-file @key`,
    { 'an altered entry': `${ENTRY[2]}${ENTRY[3]?.replace('allowed', 'denied')}` },
  ],
  [
    2,
    ENTRY_OF_RECEIPT,
    { 'two entries that do not follow each other': `${ENTRY[1]}${ENTRY[3]}`, 'a malformed entry': '{}\n' },
  ],
  [2, `${PROOF} --checkpoint @newest`, { 'a malformed proof': '{"proof":["a"]}' }],
  [2, PROOF, { 'a proof with one checkpoint': '{"proof":[]}' }],
  [
    1,
    '--consistency @x --public-key-file @both --checkpoint @newest --checkpoint @another',
    { 'a proof between logs of two origins': '{"proof":[]}' },
  ],
  [2, '@log --public-key-file @other --checkpoint @newest', { 'a checkpoint of another key': '' }],
  [2, '@log --public-key-file @pub --checkpoint @missing', { 'a missing checkpoint file': '' }],
  [2, '@log --checkpoint @newest', { 'a checkpoint without a public key': '' }],
  [2, '@log --public-key-file @pub --key-file @key', { 'a public key without a checkpoint': '' }],
  [2, '@log --public-key-file @pub --checkpoint @newest --head-file @x', { 'a head without the key': '6 a b' }],
  [2, '--public-key-file @pub', { 'neither an export nor a receipt': '' }],
  [2, '@log --receipt @receipt --public-key-file @pub', { 'an export and a receipt': '' }],
  [2, '--receipt @receipt', { 'a receipt without a public key': '' }],
  [2, '--receipt @receipt --public-key-file @pub --checkpoint @newest', { 'a receipt and another checkpoint': '' }],
  [1, '--receipt @receipt --public-key-file @other', { 'a receipt of another key': '' }],
];

test('evidence that proves nothing is rejected, and the verdict says so', async (t) => {
  const files = {
    newest: NEWEST,
    receipt: RECEIPT,
    none: NOTES[0] ?? '',
    another: checkpointOf(AUDIT.entries, ANOTHER),
    other: verifierKey(signerFrom(9, SIGNER.name)),
    both: `${CHECKPOINTS.verifier_key}\n${verifierKey(ANOTHER)}\n`,
  };
  const given = REJECTED.flatMap(([status, args, cases]) =>
    Object.entries(cases).map(([name, x]) => ({ status, name, args: within(t, { ...files, x })(args) })),
  );
  const verdicts = await runVerifierWith(given.map(({ args }) => args));
  for (const [at, { status, name }] of given.entries()) {
    const verdict = verdicts[at];
    assert.equal(verdict?.status, status, `${name}: ${JSON.stringify(verdict)}`);
    assert.equal(verdict.result?.valid, status === 1 ? false : undefined, name);
    assert.match(status === 2 ? verdict.errors : verdict.result.message, /\w/, name);
  }
});

test('any log extends its checkpoints, and not when it is cut or written again', async (t) => {
  const drafts = fc.array(arbitraryEntry, { minLength: 2, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(drafts, fc.nat(), fc.nat(), async (list, cutAt, alteredAt) => {
      const { entries } = chained(keys, list);
      const size = 1 + (cutAt % entries.length);
      const at = alteredAt % size;
      const again = chained(
        keys,
        list.map((entry, index) => (index === at ? { ...entry, reason: `${entry.reason}.` } : entry)),
      ).entries;
      const args = within(t, {
        log: toExport(entries),
        cut: toExport(entries.slice(0, size - 1)),
        again: toExport(again),
        note: checkpointOf(entries.slice(0, size)),
      });
      const [good, cut, altered] = await runVerifierWith(
        ['log', 'cut', 'again'].map((log) => args(`@${log} --key-file @key --public-key-file @pub --checkpoint @note`)),
      );
      assertValid(good, { entries: entries.length, signed_entries: size });
      assert.deepEqual([cut?.status, cut?.result.break_at_entry], [1, size]);
      assert.deepEqual([altered?.status, altered?.result.break_at_entry], [1, size]);
    }),
    // Each try is a process: the first counterexample is enough.
    { ...runs(5), endOnFailure: true },
  );
});
