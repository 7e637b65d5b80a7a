// Executables, looked up before a lease is issued: in the path as a shell does it, and with the interpreter of a
// script.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkExecutable } from '../../src/run/child-process.ts';
import { temporaryDirectory } from '../kit/directory.ts';

test('a program is looked up as a shell does it', (t) => {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'sh'));
  assert.equal(checkExecutable('sh', `${directory}:/nowhere:/bin`), null);
  assert.equal(checkExecutable('sh', undefined), null);
  assert.equal(checkExecutable('/bin/sh', ''), null);
  assert.equal(checkExecutable('no-such', '/bin')?.code, 127);
  assert.equal(checkExecutable('./no-such', '/bin')?.code, 127);
  assert.equal(checkExecutable('sh', directory)?.code, 126);
  assert.equal(checkExecutable('/etc/passwd', '/bin')?.code, 126);
});

const SCRIPTS: readonly [text: string | Uint8Array, code: number | null][] = [
  ['#!/no/such/interpreter -x\necho\n', 127],
  ['#!/bin/sh\r\necho\r\n', 127],
  ['#! \t/no/such', 127],
  ['#!/etc/passwd\n', 126],
  ['#!/etc\n', 126],
  ['#!/bin/sh\n', null],
  ['#! /bin/sh -e\n', null],
  ['#!\necho\n', null],
  ['#!   \necho\n', null],
  ['echo without a first line\n', null],
  ['', null],
  [`#!/bin/sh -${'e'.repeat(1000)}`, null],
];

test('a missing interpreter is an error with the exit code of bash', (t) => {
  const directory = temporaryDirectory(t);
  for (const [at, [text, code]] of SCRIPTS.entries()) {
    const file = join(directory, `script${at}`);
    writeFileSync(file, text, { mode: 0o755 });
    const fault = checkExecutable(file, '/bin');
    assert.equal(fault?.code ?? null, code, String(text));
    assert.equal(spawnSync('bash', ['-c', file], { stdio: 'ignore' }).status, code ?? 0, String(text));
    if (fault !== null)
      assert.match(fault.message, /script\d+: the interpreter in its first line, \/\S+\s*, (?:does not exist|cannot)/);
  }
});

test('if the first match in the path has no interpreter the next one is used, and an unreadable file is left to the system', (t) => {
  const [one, other] = [join(temporaryDirectory(t), 'one'), join(temporaryDirectory(t), 'other')];
  for (const directory of [one, other]) mkdirSync(directory);
  writeFileSync(join(one, 'tool'), '#!/no/such\n', { mode: 0o755 });
  assert.equal(checkExecutable('tool', `${one}:${other}`)?.code, 127);
  writeFileSync(join(other, 'tool'), '#!/bin/sh\n', { mode: 0o755 });
  assert.equal(checkExecutable('tool', `${one}:${other}`), null);
  assert.equal(spawnSync('/usr/bin/env', ['tool'], { env: { PATH: `${one}:${other}` } }).status, 0);
  writeFileSync(join(one, 'closed'), '#!/bin/sh\n', { mode: 0o111 });
  assert.equal(checkExecutable('closed', one), null);
});
