// A lock file that the disk cannot hold, such as one without a free inode, is no damaged database.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeFailure } from '../../src/server/operator-errors.ts';
import { DatabaseLock } from '../../src/store/sqlite/lock.ts';
import { temporaryDirectory } from '../kit/directory.ts';

test('a lock file that cannot be created is reported with its name and the remedy, and no backup is advised', (t) => {
  const file = join(temporaryDirectory(t), 'missing', 'lock');
  assert.throws(
    () => DatabaseLock.take(file),
    (error) => {
      const failure = describeFailure(error);
      const line = failure?.line ?? '';
      assert.ok(line.startsWith(`${file}: SQLite: unable to open database file.`), line);
      assert.match(line, /room for another file \(df -i\)/);
      assert.doesNotMatch(line, /restore|altered|damaged/i);
      return true;
    },
  );
});
