// A value leaves no trace. The programs list the arguments of all processes while they have it. Afterwards the test
// reads every file that the commands, the server and the programs could have written.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';

/** Each run has its own value, so that concurrent runs do not find each other's. */
const VALUE = `${randomBytes(8).toString('hex')}-Tr4ce-me-if-you-can`;
/** The value as it is, and in the encodings of logs and files. */
const FORMS = [VALUE, Buffer.from(VALUE).toString('base64').slice(0, 24), Buffer.from(VALUE).toString('hex')];
// WHY no status: a process can end after its name was listed.
const LIST_ARGUMENTS = '{ cat /proc/[0-9]*/cmdline 2>/dev/null || true; }';

const holds = (text: string | Buffer): boolean => FORMS.some((form) => text.includes(form));

/** Every file below the directory that contains the value. */
function filesWith(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true && holds(readFileSync(file)));
}

test('a value appears in no process’s arguments, no log, no history and no file', async (t) => {
  const scratch = join(temporaryDirectory(t), 'tmp');
  mkdirSync(scratch);
  const dataDir = join(temporaryDirectory(t), 'data');
  const service = await startProcess(t, dataDir, ['--log-level', 'debug']);
  const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken, TMPDIR: scratch };
  const home = newHome(t, environment);
  let said = '';
  const run = async (words: readonly string[], input = '') => {
    const { code, stdout, stderr } = await home.leasehold(words, { input });
    assert.equal(code, 0, stderr);
    said += stderr;
    return stdout;
  };
  /** The program has the value, and lists the arguments of all processes. */
  const runProgram = async (flags: readonly string[], print: string): Promise<void> => {
    const script = `${LIST_ARGUMENTS} >"$HOME/arguments"; ${print}`;
    assert.equal(await run(['run', ...flags, '--', 'sh', '-c', script]), '[secret]');
    const listed = readFileSync(join(home.path, 'arguments'));
    assert.deepEqual([listed.includes(script), holds(listed)], [true, false]);
  };

  await run(['put', 'a/piped', '-'], VALUE);
  const typed = home.onTerminal(['put', 'a/typed']);
  for (const question of [/Value: /, /Repeat the value: /]) {
    await typed.shows(question);
    typed.type(`${VALUE}\r`);
  }
  assert.equal((await typed.ended).exitCode, 0);
  said += typed.screen();
  assert.equal(await run(['get', 'a/typed']), VALUE);
  await runProgram(['--files', '--env', 'V=a/piped'], 'test -s "$V" && cat "$V"');
  writeFileSync(join(home.path, '.env'), `V=${VALUE}\n`, { mode: 0o600 });
  await run(['import', '.env', '--all', '--prefix', 'b', '--yes']);
  assert.equal(await run(['get', 'b/V']), VALUE);
  writeFileSync(join(home.path, '.env'), 'V=leasehold://b/V\n');
  await runProgram(['--env-file', '.env'], 'printf "%s" "$V"');
  await run(['audit', 'list']);
  await run(['audit', 'export', '--out', 'log.ndjson']);

  assert.ok(!holds(said), 'what was said to operators holds the value');
  assert.equal(await service.end('SIGTERM'), 0);
  assert.ok(!holds(service.output()), 'the server’s log holds the value');
  assert.deepEqual([home.path, scratch, dataDir].flatMap(filesWith), []);
  assert.deepEqual(readdirSync(scratch), [], 'temporary files remain');
});

test('the inspection finds a value in an argument and in a file', (t) => {
  const folder = temporaryDirectory(t);
  writeFileSync(join(folder, 'log'), `value=${FORMS[1]}`);
  assert.deepEqual(filesWith(folder), [join(folder, 'log')]);
  assert.ok(holds(execFileSync('sh', ['-c', LIST_ARGUMENTS, VALUE])));
});
