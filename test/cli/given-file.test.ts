// Files named by the user: none is read without a limit, and a signal ends the wait for each.

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { Cancelled } from '../../src/cli/errors.ts';
import { readHandle, readRegularFile } from '../../src/cli/input.ts';
import { COMMAND, COMPILED, type Home, newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';
import { assertBrokenOff, ENVIRONMENT } from './interrupt.ts';

/** Commands that read a file, with their error for an endless one. */
const READERS: readonly [words: readonly string[], ofEndless: RegExp][] = [
  [['put', 'a/b', '@FILE'], /^leasehold: the file of the value: is larger than 1 MiB\.\n$/],
  [['policy', 'put', 'p', '--file', 'FILE.toml'], /^leasehold: FILE\.toml: is larger than 16 MiB\.\n$/],
  [['policy', 'test', 'FILE'], /^leasehold: FILE: is larger than 16 MiB\.\n$/],
  [['import', 'FILE'], /^leasehold: FILE: is larger than 64 MiB\.\n$/],
  [['agent', 'add', 'bot', '--public-key', 'FILE'], /^leasehold: --public-key: is larger than 1 MiB\.\n$/],
  [['login', '--agent', 'bot', '--key-file', 'FILE'], /^leasehold: no response from/],
];

function homeWith(t: TestContext, make: (file: string) => void): Home {
  const home = newHome(t);
  for (const name of ['FILE', 'FILE.toml']) make(join(home.path, name));
  return home;
}

for (const [words, ofEndless] of READERS) {
  test(`a file without an end is read no further than its bound: leasehold ${words.join(' ')}`, async (t) => {
    const home = homeWith(t, (file) => symlinkSync('/dev/zero', file));
    const { code, stderr } = await home.leasehold(words, { environment: ENVIRONMENT });
    assert.match(stderr, ofEndless);
    assert.equal(code, words[0] === 'login' ? 2 : 1);
  });
}

for (const [words] of READERS.filter(([[first]]) => first !== 'login')) {
  test(`an abort ends the wait for a pipe without a writer: leasehold ${words.join(' ')}`, async (t) => {
    const home = homeWith(t, (file) => execFileSync('mkfifo', [file]));
    const aborting = new AbortController();
    const run = home.leasehold(words, { environment: ENVIRONMENT, signal: aborting.signal });
    setImmediate(() => aborting.abort(new Cancelled()));
    assert.deepEqual(await run, { code: 130, signal: null, stdout: '', stderr: 'leasehold: Cancelled.\n' });
  });
}

test('a signal ends a process that waits for a pipe without a writer', async (t) => {
  const home = homeWith(t, (file) => execFileSync('mkfifo', [file]));
  await assertBrokenOff(t, home, ['put', 'a/b', '@FILE'], 'SIGINT');
});

test('what a shell gives in place of a file is read to its end, however late it comes', async (t) => {
  const service = await startTestService(t);
  const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken };
  const home = newHome(t, environment);
  const options = {
    cwd: home.path,
    env: { PATH: process.env['PATH'] ?? '', HOME: home.path, ...COMPILED, ...environment },
  };
  await promisify(execFile)(
    'bash',
    ['-c', '"$@" put a/b @<(sleep 0.5; printf "s3c"; sleep 0.2; printf "ret")', 'bash', ...COMMAND],
    options,
  );
  assert.equal((await home.leasehold(['get', 'a/b'])).stdout, 's3cret');
});

test('a key file that a project names must be a file', async (t) => {
  const home = newHome(t);
  mkdirSync(join(home.path, 'work'));
  writeFileSync(join(home.path, 'work/leasehold.toml'), 'agent = "coder"\nkey_file = "/dev/zero"\n');
  const folder = join(home.path, 'work');
  const { code, stderr } = await home.leasehold(['list'], { cwd: folder });
  assert.equal(code, 1);
  assert.match(stderr, /^leasehold: leasehold\.toml, key_file: must be a file\.\n/);
});

test('a regular file is read to its end although it grew, never beyond the bound, and links and pipes are not read', async (t) => {
  const { path } = newHome(t);
  const file = join(path, 'file');
  writeFileSync(file, 'abc');
  assert.deepEqual(await readRegularFile(file, 3), Buffer.from('abc'));
  assert.equal(await readRegularFile(file, 2), 'large');
  assert.equal(await readRegularFile(path, 3), 'other');
  symlinkSync(file, join(path, 'link'));
  await assert.rejects(readRegularFile(join(path, 'link'), 3), { code: 'ELOOP' });
  execFileSync('mkfifo', [join(path, 'pipe')]);
  assert.equal(await readRegularFile(join(path, 'pipe'), 3), 'other');
  await using handle = await open(file);
  const grown = {
    stat: () => handle.stat(),
    read: async (buffer: Buffer, from: number, length: number, position: number) => {
      if (position === 0) appendFileSync(file, 'defghi');
      return handle.read(buffer, from, length, position);
    },
  } as FileHandle;
  assert.deepEqual(await readHandle(grown, 9), Buffer.from('abcdefghi'));
  writeFileSync(file, 'abc');
  assert.equal(await readHandle(grown, 8), 'large');
});
