/** `leasehold backup` with a passphrase, whose derivation takes seconds of a processor. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

test('a backup that a passphrase locks is opened by it', async (t) => {
  const service = await startTestService(t);
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  const words = ['backup', join(home.path, 'locked.age'), '--passphrase-file', '-'];
  const input = 'four words of a passphrase\n';
  // The command reads what it has written.
  const { code, stderr } = await home.leasehold(words, { input });
  assert.equal(code, 0, stderr);
  assert.equal((await home.leasehold([...words, '--verify'], { input })).code, 0);
});
