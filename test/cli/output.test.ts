// Text from other users, on a terminal and in a pipe: escaped on the terminal, byte for byte in the pipe.

import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { Format } from '../../src/cli/output/cells.ts';
import { createOutput } from '../../src/cli/output/output.ts';

const WRITTEN = 'a\u001b[31m\u009b\u202eb\u2028c\u{e0041}\n\u0007d';
const RECORD = { path: 'a/b', description: WRITTEN };
const STEERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

async function print(format: Format, isTTY: boolean): Promise<string> {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  const stderr = new PassThrough();
  const terminal = {
    stdin: new PassThrough(),
    stdout,
    stderr,
    environment: {},
    workingDirectory: '.',
    umask: 0o022,
    challengeService: async () => null,
  };
  const output = createOutput(terminal, format, null);
  await output.record(RECORD);
  await output.records([RECORD], Object.keys(RECORD), null);
  output.jsonLine(RECORD);
  output.variable('NAME', WRITTEN);
  stdout.end();
  return text(stdout);
}

for (const format of ['table', 'json', 'yaml', 'env'] as const) {
  test(`no output controls the terminal: -o ${format}`, async () => {
    const shown = await print(format, true);
    assert.doesNotMatch(shown.replaceAll('\n', ''), STEERS);
    assert.match(shown, /\\u202e/);
  });
}

test('a pipe receives every byte', async () => {
  for (const format of ['json', 'env'] as const) assert.ok((await print(format, false)).includes('\u202eb'), format);
  assert.ok((await print('env', false)).includes(`NAME='${WRITTEN}'\n`));
});
