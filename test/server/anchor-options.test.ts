// The flags of anchors: what they accept, and what is rejected in one line before the service starts.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { StartupError, UsageError } from '../../src/platform/errors.ts';
import { parseAnchors } from '../../src/server/anchor-options.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

for (const [text, message] of [
  ['ftp://anchor.example', /must be file:/],
  ['file:relative', /absolute path/],
  ['webhook+http://anchor.example/', /use https/],
  ['webhook+https://user:password@anchor.example/', /--anchor-token-file/],
  ['witness+https://anchor.example/', /needs its key/],
  ['witness+https://anchor.example/#%zz', /needs its key/],
] as const) {
  test(`${text} is rejected, without an echo of it`, () => {
    assert.throws(
      () => parseAnchors([text]),
      (error) => error instanceof UsageError && message.test(error.message) && !error.message.includes('example'),
    );
  });
}

for (const [what, text, message] of [
  ['missing', null, /cannot be read/],
  ['of two lines', 'one\nthe-second-line\n', /must contain one token/],
  ['empty', '\n', /must contain one token/],
] as const) {
  test(`a token file of anchors that is ${what} prevents the start`, async (t) => {
    const file = join(temporaryDirectory(t), 'token');
    if (text !== null) writeFileSync(file, text, { mode: 0o600 });
    await assert.rejects(
      startTestService(t, ['--anchor', 'stdout:', '--anchor-token-file', file]),
      (error) =>
        error instanceof StartupError && message.test(error.message) && !error.message.includes('the-second-line'),
    );
  });
}

test('a token file of anchors that others may read is reported', async (t) => {
  const file = join(temporaryDirectory(t), 'token');
  writeFileSync(file, 'a-token\n', { mode: 0o644 });
  const { warnings } = await startTestService(t, ['--anchor-token-file', file]);
  assert.deepEqual(warnings, [`Other users may read ${file}. Run chmod 600 on it.`]);
});
