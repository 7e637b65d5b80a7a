// A failed sync of the rollback marker is not repeated on the same file: the next attempt writes a new one.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { RollbackMarker } from '../../src/server/rollback-marker.ts';
import { keysFrom } from '../crypto/vectors.ts';
import { temporaryDirectory } from '../kit/directory.ts';

const KEYS = keysFrom(1);
const FIRST = { seq: 1, hmac: 'first' };
const SECOND = { seq: 2, hmac: 'second' };

test('after a failed sync the marker is written to a new file, which is not synced again', async (t) => {
  const path = join(temporaryDirectory(t), 'rollback.marker');
  let syncs = 0;
  const marker = new RollbackMarker(path, KEYS, async () => {
    syncs += 1;
    throw new Error('EIO');
  });
  await marker.keep(FIRST);
  const { ino } = statSync(path);
  await marker.keep(SECOND);
  await assert.rejects(marker.sync(), /EIO/);
  await marker.sync();
  assert.notEqual(statSync(path).ino, ino);
  assert.deepEqual(marker.read(), { entry: SECOND, hasDamagedSlot: false });
  await marker.close();
  assert.equal(syncs, 1);
});
