/** `leasehold backup` with a passphrase, whose derivation takes seconds of a processor, and of a large vault. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/processes.ts';
import { startTestService } from '../kit/service.ts';

test('a backup that a passphrase locks is opened by it', async (t) => {
  const service = await startTestService(t);
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  const words = ['backup', join(home.path, 'locked.age'), '--passphrase-file', '-'];
  const input = 'four words of a passphrase\n';
  // The command reads what it has written.
  const { code, stderr } = await home.leasehold(words, { input });
  assert.equal(code, 0, stderr);
});

test('a file that cannot be made ends the backup at the server, which takes the next one', async (t) => {
  const directory = temporaryDirectory(t);
  const at = (name: string): string => join(directory, name);
  const recipient = await identityToRecipient(await generateX25519Identity());
  const own = await startTestService(t);
  const large = 'v'.repeat(60_000);
  for (let index = 0; index < 100; index++)
    await own.admin.post('/api/v1/credentials', { path: `large/${index}`, value: large });
  const other = newHome(t, { LEASEHOLD_ADDR: own.address, LEASEHOLD_TOKEN: own.adminToken });
  const { code, stderr } = await other.leasehold(['backup', at('no/such.age'), '--recipient', recipient]);
  assert.match(stderr, /ENOENT/);
  assert.equal(code, 2);
  const ends = async () => (await own.admin.get('/api/v1/audit?event_type=service.backup_result')).body.data;
  const hasEnded = async (): Promise<boolean> => (await ends()).length > 0;
  await until(hasEnded, 60_000, () => 'the server still makes the backup');
  const [end] = await ends();
  assert.deepEqual([end.result, end.reason.startsWith('incomplete')], ['error', true]);
  assert.equal((await other.leasehold(['backup', at('large.age'), '--recipient', recipient])).code, 0);
});
