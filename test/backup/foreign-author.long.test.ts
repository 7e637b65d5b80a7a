// A backup of a stranger: with the public recipient and the public key of a slot he makes a vault of his own, in which
// every MAC, the chain and the head record are right.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { decodeStoredKeys } from '../../src/backup/records.ts';
import type { AgentId } from '../../src/core/names.ts';
import { generateAgentKeys } from '../../src/crypto/signatures.ts';
import { parseRootKey, VaultKeys } from '../../src/crypto/vault-keys.ts';
import { encryptAgentKeys } from '../../src/vault/backup/agent-keys.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { photograph } from '../server/vaults.ts';
import { authenticate, type Content, columnOf, readContent, writeContent } from './content.ts';
import {
  backUp,
  KINDS,
  newBackup,
  newPlace,
  type Place,
  restoreTo,
  restoreWith,
  startAt,
  verifierKeyOf,
  wordsFor,
} from './fixture.ts';

const scope = { after };
const { source, file, verifierKey } = await newBackup(scope, [['prod/1', 'value 1']]);

async function foreignBackup(alter: (content: Content, keys: VaultKeys) => void | Promise<void>): Promise<string> {
  const rootKey = parseRootKey(readFileSync(join(source.dataDir, 'root.key'), 'utf8')) ?? assert.fail();
  const content = await readContent(file);
  const keys = VaultKeys.open(decodeStoredKeys(content.header.keys), rootKey) ?? assert.fail();
  await alter(content, keys);
  authenticate(content, keys);
  return writeContent(scope, content);
}

/** A place with a directory beside the data directory that no restore may touch. */
async function placeWithNeighbour(t: TestContext): Promise<Place & { readonly neighbour: string }> {
  const place = await newPlace(t, 'sqlite', source.dataDir);
  const neighbour = join(dirname(place.dataDir), 'precious');
  mkdirSync(neighbour);
  writeFileSync(join(neighbour, 'work'), 'of years');
  return { ...place, neighbour };
}

/** Gives the agent of the backup another name and id, and a key that is its current one. */
async function renameAgent(content: Content, keys: VaultKeys, name: string | null, id: string | null): Promise<void> {
  const [row = assert.fail()] = content.tables.get('agents') ?? [];
  const made = await generateAgentKeys();
  const agentId = id ?? String(row[columnOf(content, 'agents', 'id')]);
  const cells = row
    .with(columnOf(content, 'agents', 'id'), agentId)
    .with(columnOf(content, 'agents', 'name'), name ?? 'worker')
    .with(columnOf(content, 'agents', 'public_key'), made.publicKey);
  content.tables.set('agents', [cells]);
  const encrypted = encryptAgentKeys(keys, [{ id: agentId as AgentId, ...made }], []);
  content.agentKeys = encrypted.map((key) => ({ id: agentId, sealed: key.sealed }));
}

test('a backup in which an agent is named as a directory elsewhere is refused, and nothing there is deleted', async (t) => {
  const names: readonly (readonly [name: string | null, id: string | null, rule: RegExp])[] = [
    ['../../precious', null, /record \d+, row 1 of agents, name must be 1 to 63 characters/],
    ['.pending', null, /name must be 1 to 63 characters/],
    ['..', null, /name must be 1 to 63 characters/],
    [null, '../../../precious', /record 2 \(private keys of agents\): item 1 id must be a UUID in lower case/],
  ];
  for (const [name, id, rule] of names) {
    const place = await placeWithNeighbour(t);
    const before = photograph(dirname(place.dataDir));
    const made = await foreignBackup((content, keys) => renameAgent(content, keys, name, id));
    for (const more of [[], ['--accept-damage']]) {
      const { code, told, out } = await restoreWith([...wordsFor(t, made, place), ...more]);
      assert.match(told.at(-1) ?? '', rule);
      assert.equal((told.at(-1) ?? '').includes('precious'), false, 'the message repeats the field');
      assert.deepEqual([code, out], [1, '']);
      assert.deepEqual(photograph(dirname(place.dataDir)), before);
    }
  }
});

test('a whole vault of a stranger with valid names verifies, so that only its verifier key tells it', async (t) => {
  const made = await foreignBackup((content, keys) => renameAgent(content, keys, 'other', null));
  const place = await newPlace(t, 'sqlite', source.dataDir);
  assert.equal((await restoreWith(wordsFor(t, made, place))).code, 0);
});

test('without a terminal and without --verifier-key a restore writes nothing, and says what to run', async (t) => {
  const place = await newPlace(t, 'sqlite', source.dataDir);
  const before = photograph(place.dataDir);
  const words = wordsFor(t, file, place);
  const { code, told } = await restoreWith(words, null);
  assert.equal(code, 1);
  assert.ok(told.at(-1)?.includes(`again with --verifier-key '${verifierKey}'`), told.join('\n'));
  assert.ok(
    told.some((line) => /: 1 credential, 1 agent, 0 operators, 1 policy\.$/.test(line)),
    told.join('\n'),
  );
  assert.deepEqual(photograph(place.dataDir), before);
  for (const answer of ['', 'y', 'no']) assert.equal((await restoreWith(words, answer)).code, 1, answer);
  assert.deepEqual(photograph(place.dataDir), before);
});

test('with the verifier key that was kept nothing is asked; with another one nothing is written', async (t) => {
  const other = await startAt(t, await newPlace(t, 'sqlite'));
  const place = await newPlace(t, 'sqlite', source.dataDir);
  const before = photograph(place.dataDir);
  const words = wordsFor(t, file, place);
  const stranger = await verifierKeyOf(other);
  const refused = await restoreWith([...words, '--verifier-key', stranger], null);
  assert.match(refused.told.at(-1) ?? '', /does not have the key of --verifier-key: .* Nothing was restored\.$/);
  assert.equal(refused.code, 1);
  const malformed = await restoreWith([...words, '--verifier-key', `${verifierKey}x`], null);
  assert.match(malformed.told.at(-1) ?? '', /^--verifier-key: must be the line that leasehold audit checkpoint/);
  assert.equal(malformed.code, 2);
  assert.deepEqual(photograph(place.dataDir), before);
  const { code, told } = await restoreWith([...words, '--verifier-key', `${stranger}\n${verifierKey}`], null);
  assert.equal(code, 0, told.join('\n'));
});

test('a vault that was restored is known by its earlier verifier key too', async (t) => {
  const place = await newPlace(t, 'sqlite', source.dataDir);
  await restoreTo(t, file, place);
  const restored = await startAt(t, place);
  const again = await backUp(t, restored);
  const next = await newPlace(t, 'sqlite', source.dataDir);
  const { code, told } = await restoreWith([...wordsFor(t, again, next), '--verifier-key', verifierKey], null);
  assert.equal(code, 0, told.join('\n'));
});

test('a file that is replaced between the two readings is not restored', async (t) => {
  const place = await newPlace(t, 'sqlite', source.dataDir);
  const copy = join(temporaryDirectory(t), 'copy.age');
  writeFileSync(copy, readFileSync(file));
  const made = readFileSync(await foreignBackup((content, keys) => renameAgent(content, keys, 'other', null)));
  const { code, told } = await restoreWith(wordsFor(t, copy, place), () => {
    writeFileSync(copy, made);
    return 'yes';
  });
  assert.match(told.at(-1) ?? '', /copy\.age changed while it was restored\. Nothing was restored\./);
  assert.equal(code, 1);
});

for (const kind of KINDS) {
  test(`on ${kind} the time in the record of the vault does not become the time of the vault`, async (t) => {
    const place = await newPlace(t, kind, source.dataDir);
    const far = await foreignBackup((content) => {
      const highWaterTime = Date.parse('9990-01-01T00:00:00Z');
      content.header = { ...content.header, vault: { ...content.header.vault, highWaterTime } };
    });
    await restoreTo(t, far, place);
    const restored = await startAt(t, place);
    const [entry] = (await restored.admin.get('/api/v1/audit?event_type=service.restore')).body.data;
    assert.ok(Math.abs(Date.parse(entry.timestamp) - Date.now()) < 600_000, entry.timestamp);
  });
}

test('any number of agents has its keys in a backup', async (t) => {
  const place = await newPlace(t, 'sqlite', source.dataDir);
  const sealed = Buffer.alloc(160).toString('base64');
  const many = await foreignBackup((content) => {
    for (let n = 0; n < 20_000; n++) content.agentKeys.push({ id: crypto.randomUUID(), sealed });
  });
  const { out } = await restoreTo(t, many, place);
  assert.match(
    out,
    /\nThe private keys of 1 agents were written to \S+\.\nWARNING {2}20000 private keys of agents in /,
  );
});

test('a key of an agent that is not the current one in the backup is not written, and the restore warns of it', async (t) => {
  const place = await newPlace(t, 'sqlite', source.dataDir);
  const former = await generateAgentKeys();
  const replaced = await foreignBackup((content, keys) => {
    content.agentKeys = content.agentKeys.flatMap(({ id }) =>
      encryptAgentKeys(keys, [{ id: id as AgentId, ...former }], []).map((key) => ({ id, sealed: key.sealed })),
    );
  });
  const { out } = await restoreTo(t, replaced, place);
  assert.match(out, /The private keys of 0 agents were written to \S+\.\nWARNING {2}1 private keys of agents in /);
  assert.equal(existsSync(join(place.dataDir, 'agents', 'worker')), false);
});
