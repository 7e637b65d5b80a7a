// A process without file descriptors: agents are deregistered, none is partly registered, and the log contains the
// system's error code.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

test('without file descriptors a deregistration succeeds, a registration is 503, and both leave no key file', async () => {
  const program = fileURLToPath(import.meta.resolve('./file-descriptors.ts'));
  const args = ['-c', 'ulimit -n 120 && exec "$@"', 'sh', process.execPath, '--disable-proto=delete', program];
  const { stdout, stderr } = await promisify(execFile)('sh', args, { timeout: 120_000 });
  const { taken, statuses, during, later, known } = JSON.parse(stdout);
  assert.ok(taken > 10, `${taken} descriptors were left to take`);
  assert.deepEqual(statuses, [204, 503]);
  assert.ok(during.length > 0, 'nothing was left to remove later');
  assert.deepEqual([later, known], [[], 0]);
  assert.match(stderr, /a key file could not be written, moved or removed; the service retries/);
  assert.match(stderr, /Error \(EMFILE\)/);
});
