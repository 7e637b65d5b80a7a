// A file of a secret that never ends is rejected before it is read whole.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readGivenToken } from '../../src/server/admin-token.ts';
import { readSecretFile } from '../../src/server/offline-keys.ts';
import { readRootKey } from '../../src/server/root-key.ts';
import { readTrimmed } from '../../src/server/webhook-client.ts';

const ENDLESS = '/dev/zero';
const RULE = /is longer than 64 KiB/;

test('a root key file that never ends is a problem of the file, and a passphrase file is rejected', () => {
  const { secret, problem } = readRootKey({ dataDir: '.', rootKeyFile: ENDLESS }, false, () => undefined);
  assert.equal(secret, null);
  assert.match(problem ?? '', RULE);
  assert.throws(() => readSecretFile(ENDLESS, () => undefined), RULE);
});

test('so is that of a token or of a receiver', () => {
  assert.throws(() => readGivenToken(ENDLESS, () => undefined), RULE);
  assert.throws(() => readTrimmed(ENDLESS), RULE);
});
