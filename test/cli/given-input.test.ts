// Files named by the user, and standard input: none is read without a limit, and a signal ends the wait for each.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { Cancelled } from '../../src/cli/errors.ts';
import { readHandle, readInput, readRegularFile } from '../../src/cli/input.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { COMMAND, COMPILED, type Home, newHome } from '../kit/command.ts';
import { until } from '../kit/log-receivers.ts';
import { startTestService } from '../kit/service.ts';

/** An unreachable server, and an unknown token. */
const ENVIRONMENT = { LEASEHOLD_ADDR: 'http://127.0.0.1:9', LEASEHOLD_TOKEN: 'lha_0123456789abcdef' };

/** Commands that read a file, with the error of some for an endless one. */
const READERS: readonly [words: readonly string[], ofEndless: RegExp | null][] = [
  [['put', 'a/b', '@FILE'], /^leasehold: the file of the value: is larger than 1 MiB\.\n$/],
  [['policy', 'put', 'p', '--file', 'FILE.toml'], null],
  [['policy', 'test', 'FILE'], null],
  [['import', 'FILE'], null],
  [['agent', 'add', 'bot', '--public-key', 'FILE'], /^leasehold: --public-key: is larger than 1 MiB\.\n$/],
  [['login', '--agent', 'bot', '--key-file', 'FILE'], /^leasehold: no response from/],
];

const INPUT_READERS: readonly (readonly string[])[] = [
  ['import', '-'],
  ['put', 'a/b', '-'],
  ['policy', 'put', 'p', '--file', '-'],
  ['policy', 'test', '-'],
  ['agent', 'add', 'bot', '--public-key', '-'],
];

function homeWith(t: TestContext, make: (file: string) => void): Home {
  const home = newHome(t);
  for (const name of ['FILE', 'FILE.toml']) make(join(home.path, name));
  return home;
}

test('a file without an end is read no further than its bound', async (t) => {
  const home = homeWith(t, (file) => symlinkSync('/dev/zero', file));
  for (const [words, ofEndless] of READERS) {
    if (ofEndless === null) continue;
    const { code, stderr } = await home.leasehold(words, { environment: ENVIRONMENT });
    assert.match(stderr, ofEndless);
    assert.equal(code, words[0] === 'login' ? 2 : 1);
  }
});

test('an abort ends the wait for a pipe without a writer, and for silent input', async (t) => {
  const home = homeWith(t, (file) => execFileSync('mkfifo', [file]));
  const files = READERS.map(([words]) => words).filter(([first]) => first !== 'login');
  for (const words of [...files, ...INPUT_READERS]) {
    const aborting = new AbortController();
    const run = home.leasehold(words, { environment: ENVIRONMENT, input: null, signal: aborting.signal });
    setImmediate(() => aborting.abort(new Cancelled('SIGTERM')));
    const stderr = 'leasehold: Cancelled (SIGTERM).\n';
    assert.deepEqual(await run, { code: 143, signal: null, stdout: '', stderr }, words.join(' '));
  }
});

test('a signal of the system is such an abort', async (t) => {
  const home = homeWith(t, (file) => execFileSync('mkfifo', [file]));
  const [program, ...first] = COMMAND;
  const child = spawn(program, [...first, 'put', 'a/b', '@FILE'], {
    cwd: home.path,
    env: { PATH: process.env['PATH'] ?? '', HOME: home.path, ...COMPILED, ...ENVIRONMENT },
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = new Promise((resolve) => child.once('close', resolve));
  const stderr = child.stderr.toArray();
  // Node itself catches SIGINT and SIGTERM from its start. SIGHUP only the command does, and it does so last.
  await until(() => /^SigCgt:.*[13579bdf]$/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8')));
  child.kill('SIGINT');
  assert.equal(await ended, 130);
  assert.equal((await stderr).join(''), 'leasehold: Cancelled.\n');
});

test('a second signal ends every command but a restore, which may be publishing', async (t) => {
  const home = newHome(t);
  const asked = new Map<string, boolean>();
  for (const words of [['restore', 'none'], ['list']]) {
    await home.leasehold(words, { environment: ENVIRONMENT, onEndsItself: (is) => asked.set(words[0] ?? '', is) });
  }
  assert.deepEqual(
    [...asked],
    [
      ['restore', true],
      ['list', false],
    ],
  );
});

test('a pipe is read to its end, however late it comes', async (t) => {
  const service = await startTestService(t);
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  execFileSync('mkfifo', [join(home.path, 'pipe')]);
  const putting = home.leasehold(['put', 'a/b', '@pipe']);
  // It opens when the command reads.
  const writer = await open(join(home.path, 'pipe'), 'w');
  for (const piece of ['s3c', 'ret']) await writer.write(piece);
  await writer.close();
  assert.equal((await putting).code, 0);
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

const questionOf = (stdin: PassThrough, signal = new AbortController().signal) => ({
  terminal: { stdin } as unknown as Terminal,
  signal,
});

test('an abort before or after the last byte rejects with its reason', { timeout: 120_000 }, async () => {
  const reason = new Error('broken off');
  await assert.rejects(readInput(questionOf(new PassThrough(), AbortSignal.abort(reason)), '-'), reason);
  const breaking = new AbortController();
  const stdin = new PassThrough();
  const reading = readInput(questionOf(stdin, breaking.signal), '-');
  stdin.end('abc');
  breaking.abort(reason);
  await assert.rejects(reading, reason);
});
