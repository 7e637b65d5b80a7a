// A loss of power at any moment. Writes that were not synced may be on disk completely, partly or not at all, sector by
// sector, in any order. Acknowledged changes must survive, and a batch must be complete or absent. The disk is
// simulated: at every cut an image is built from the last sync and the writes since.

import assert from 'node:assert/strict';
import { fdatasyncSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readEntries, readHead } from '../../src/store/audit-log.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { aCredential, aLease, anEntry, headAt, KEY_CHECK, KEYS, leased, stored, T0 } from '../contract/rows.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { scaled } from '../kit/scale.ts';

const CUTS = scaled(10, 40);
const SECTOR_BYTES = 512;
const PAGE_BYTES = 8192;
const MAX_TURN = 12;

/** Each block is the old or the new one; of a longer new file the end may be missing. */
function torn(old: Buffer, now: Buffer, blockBytes: number, dice: Dice): Buffer {
  const image = Buffer.alloc(
    Math.max(old.length, now.length - dice.below(4) * dice.below(now.length - old.length + 1)),
  );
  old.copy(image);
  for (let start = 0; start < image.length; start += blockBytes) {
    if (start >= old.length || dice.chance(0.5)) {
      if (start < old.length || dice.chance(0.7)) now.copy(image, start, start, start + blockBytes);
    }
  }
  return image;
}

/** The files as the power left them. */
type Torn = Pick<Files, 'database' | 'wal'>;

interface Image extends Torn {
  /** The last entry that was written before the cut, and the last one that was acknowledged. */
  readonly writtenSeq: number;
  readonly toldSeq: number;
}

/** Writes batches until `look`, which is called during and after each sync, has taken enough images. */
async function writeUnder(t: TestContext, dice: Dice, worthFrames: number, look: (files: Files) => Torn | null) {
  const file = join(temporaryDirectory(t), 'vault.db');
  const images: Image[] = [];
  let writtenSeq = 0;
  let toldSeq = 0;
  let synced: Buffer = Buffer.alloc(0);
  let databaseAtRestart: Buffer = Buffer.alloc(0);
  let salt = '';
  const readFiles = (): Torn => {
    const [database, wal] = [readFileSync(file), readFileSync(`${file}-wal`)];
    const saltNow = wal.subarray(16, 24).toString('hex');
    // The log was restarted: its previous frames are in the database, and synced.
    if (saltNow !== salt) databaseAtRestart = database;
    salt = saltNow;
    return { database, wal };
  };
  const take = (): void => {
    const image = look({ ...readFiles(), synced, databaseAtRestart });
    if (image !== null && images.length < CUTS) images.push({ ...image, writtenSeq, toldSeq });
  };
  const syncFile = async (descriptor: number): Promise<void> => {
    const { wal } = readFiles();
    await sleep(dice.below(3));
    if (dice.chance(0.5)) take();
    fdatasyncSync(descriptor);
    synced = wal;
  };
  const store = new SqliteStore(file, { syncFile, checkpoints: { checkpointThreshold: worthFrames, idleMs: 600_000 } });
  t.after(() => store.close().catch(() => undefined));
  await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
  while (images.length < CUTS) {
    const first = writtenSeq + 1;
    const entries = Array.from({ length: 1 + dice.below(MAX_TURN) }, (_, index) => anEntry(first + index));
    const changes = entries.flatMap((entry) => [stored(aCredential(`c${entry.seq}`)), leased(aLease(entry.seq))]);
    const seq = writtenSeq + entries.length;
    const turn = await store.begin([]);
    const { durable } = await turn.commit({ entries, head: headAt(seq), treeNodes: [], changes, accesses: new Map() });
    writtenSeq = seq;
    void durable.then(() => {
      toldSeq = Math.max(toldSeq, seq);
    });
    if (dice.chance(0.3)) take();
    // Sometimes the next batch is written during a sync.
    if (dice.chance(0.5)) await durable;
  }
  return images;
}

interface Files {
  readonly database: Buffer;
  readonly wal: Buffer;
  /** The write-ahead log as the last sync made sure of it. */
  readonly synced: Buffer;
  /** The database when the write-ahead log was restarted. */
  readonly databaseAtRestart: Buffer;
}

async function assertNothingIsLost(t: TestContext, { database, wal, toldSeq }: Image, name: string): Promise<number> {
  const folder = join(temporaryDirectory(t), 'cut');
  mkdirSync(folder);
  const file = join(folder, 'vault.db');
  writeFileSync(file, database);
  writeFileSync(`${file}-wal`, wal);
  const store = new SqliteStore(file);
  const { head, last } = await store.run(readHead());
  const found = await store.run(readEntries(1, Number.MAX_SAFE_INTEGER, 100_000));
  await store.close();
  assert.ok((last?.seq ?? 0) >= toldSeq, `${name}: entry ${toldSeq} was acknowledged, and the last is ${last?.seq}`);
  assert.equal(head?.seq ?? 0, last?.seq ?? 0, `${name}: a partial batch`);
  assert.deepEqual(
    found,
    Array.from({ length: last?.seq ?? 0 }, (_, index) => anEntry(index + 1)),
    name,
  );
  const look = new DatabaseSync(file);
  try {
    assert.equal(Object.values(look.prepare('PRAGMA integrity_check').get() ?? {})[0], 'ok', name);
    for (const table of ['credentials', 'leases']) {
      assert.equal(
        look.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'],
        last?.seq ?? 0,
        `${name}: ${table}`,
      );
    }
  } finally {
    look.close();
  }
  return last?.seq ?? 0;
}

function newDice(t: TestContext): Dice {
  const seed = newSeed();
  t.diagnostic(`SEED=${seed}`);
  return new Dice(seed);
}

test('after a power loss while the write-ahead log is written and synced, acknowledged changes survive and no partial batch does', async (t) => {
  const dice = newDice(t);
  const images = await writeUnder(t, dice, 1e9, ({ database, wal, synced }) => ({
    database,
    wal: torn(synced, wal, SECTOR_BYTES, dice),
  }));
  let lost = 0;
  for (const [index, image] of images.entries()) {
    lost += image.writtenSeq - (await assertNothingIsLost(t, image, `cut ${index}`));
  }
  assert.ok(lost > 0, 'no cut took anything away, so that it showed nothing');
});

test('after a power loss during a checkpoint, acknowledged changes survive and no partial batch does', async (t) => {
  const dice = newDice(t);
  const images = await writeUnder(t, dice, 40, ({ database, wal, databaseAtRestart }) =>
    database.equals(databaseAtRestart) ? null : { database: torn(databaseAtRestart, database, PAGE_BYTES, dice), wal },
  );
  for (const [index, image] of images.entries()) await assertNothingIsLost(t, image, `cut ${index}`);
});
