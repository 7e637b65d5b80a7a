// A failed sync of the anchor is not repeated on the same file: the next attempt writes a new one.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { deriveKeys } from '../../src/crypto/keys.ts';
import { AnchorFile } from '../../src/server/anchor-file.ts';
import { temporaryDirectory } from '../kit/directory.ts';

const KEYS = deriveKeys(Buffer.alloc(32, 1));
const FIRST = { seq: 1, hmac: 'first' };
const SECOND = { seq: 2, hmac: 'second' };

test('after a failed sync the anchor is written to a new file, which is not synced again', async (t) => {
  const path = join(temporaryDirectory(t), 'log.anchor');
  let syncs = 0;
  const anchor = new AnchorFile(path, KEYS, async () => {
    syncs += 1;
    throw new Error('EIO');
  });
  await anchor.keep(FIRST);
  const { ino } = statSync(path);
  await anchor.keep(SECOND);
  await assert.rejects(anchor.sync(), /EIO/);
  await anchor.sync();
  assert.notEqual(statSync(path).ino, ino);
  assert.deepEqual(anchor.read(), { entry: SECOND, hasDamagedSlot: false });
  await anchor.close();
  assert.equal(syncs, 1);
});
