import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { StartupError } from '../../src/platform/errors.ts';
import { LineFile } from '../../src/platform/line-file.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { countOpen } from '../kit/open-files.ts';
import { startTestService } from '../kit/service.ts';

test('appends at the same time are all written, and leave no open file', async (t) => {
  const file = path.join(temporaryDirectory(t), 'lines');
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index}\n`);
  const written = new LineFile(file);
  await Promise.all([...lines.map((line) => written.append(line)), written.close()]);
  assert.deepEqual(readFileSync(file, 'utf8'), lines.join(''));
  assert.equal(countOpen(file), 0);
});

test('a file that was renamed is left, and a new one created', async (t) => {
  const file = path.join(temporaryDirectory(t), 'lines');
  const written = new LineFile(file);
  await written.append('first\n');
  assert.equal(countOpen(file), 1);
  renameSync(file, `${file}.1`);
  await Promise.all([written.append('second\n'), written.append('third\n')]);
  assert.equal(readFileSync(file, 'utf8'), 'second\nthird\n');
  assert.equal(countOpen(`${file}.1`), 0);
  await written.close();
  assert.equal(countOpen(file), 0);
});

test('a pipe or a directory as a file of checkpoints or of a log stream prevents startup, and does not delay it', async (t) => {
  const directory = temporaryDirectory(t);
  const pipe = path.join(directory, 'pipe');
  execFileSync('mkfifo', [pipe]);
  for (const file of [pipe, directory]) {
    for (const flags of [
      ['--checkpoint-file', file],
      ['--log-stream', `file:${file}`],
    ]) {
      await assert.rejects(
        startTestService(t, flags),
        new StartupError(`${file} must be a regular file, and not a pipe, a device or a directory.`),
      );
    }
  }
});
