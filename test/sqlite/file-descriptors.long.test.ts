// A process without file descriptors: agents are deregistered, none is partly registered, the server log contains the
// system's error code, and the write-ahead log is checkpointed later.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../kit/directory.ts';

test('without file descriptors a deregistration succeeds, a registration is 503, and both leave no key file', async () => {
  const program = fileURLToPath(import.meta.resolve('./file-descriptors.ts'));
  const args = ['-c', 'ulimit -n 120 && exec "$@"', 'sh', process.execPath, '--disable-proto=delete', program];
  const { stdout, stderr } = await promisify(execFile)('sh', args, { timeout: 120_000 });
  const { taken, statuses, during, later, known } = JSON.parse(stdout);
  assert.ok(taken > 10, `${taken} descriptors were left to take`);
  assert.deepEqual(statuses, [204, 503]);
  assert.ok(during.length > 0, 'nothing was left to remove later');
  assert.deepEqual([later, known], [[], 0]);
  assert.match(stderr, /a key file could not be written, moved or removed; the server retries \(EMFILE\)/);
});

// With fewer of them, the connection of the thread is opened while the next descriptor is missing.
for (const limit of [60, 80]) {
  test(`a store without file descriptors continues, and checkpoints the write-ahead log when it has some again, of ${limit}`, async (t) => {
    const file = join(temporaryDirectory(t), 'vault.db');
    const program = fileURLToPath(import.meta.resolve('./exhausted.ts'));
    const node = [process.execPath, '--disable-proto=delete', program, file];
    const args = ['-c', `ulimit -n ${limit} && exec "$@"`, 'sh', ...node];
    const { stdout } = await promisify(execFile)('sh', args, { timeout: 120_000 });
    const { taken, during, missing } = JSON.parse(stdout);
    assert.ok(taken > 10, `${taken} descriptors were left to take`);
    assert.ok(during > 160, `${during} pages: it was written all the same`);
    assert.equal(missing, 0);
  });
}
