// What a value leaves behind: nothing. The test inspects all processes while the commands run, and afterwards every
// file that the commands, the service and the programs could have written.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { COMMAND, newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { startProcess } from '../kit/process.ts';
import { openPseudoTerminal } from '../kit/pseudo-terminal.ts';

/** Each run has its own value, so that concurrent runs do not find each other's. */
const VALUE = `${randomBytes(8).toString('hex')}-Tr4ce-me-if-you-can`;
/** The value as it is, and in the encodings of logs and files. */
const FORMS = [VALUE, Buffer.from(VALUE).toString('base64').slice(0, 24), Buffer.from(VALUE).toString('hex')];
const EVERY_MS = 20;

const holds = (text: string | Buffer): boolean => FORMS.some((form) => text.includes(form));

/** Every file below the directory that contains the value. */
function filesWith(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true && holds(readFileSync(file)));
}

/** The arguments of all processes, read repeatedly. */
function watchProcesses() {
  const seen = new Set<string>();
  let [isOver, looks] = [false, 0];
  const watching = (async () => {
    while (!isOver) {
      const all = execFileSync('ps', ['-A', '-o', 'args'], { encoding: 'utf8' });
      looks += 1;
      for (const line of all.split('\n')) if (holds(line)) seen.add(line);
      await sleep(EVERY_MS);
    }
  })();
  return {
    hasSeen: () => seen.size > 0,
    async end() {
      isOver = true;
      await watching;
      return { looks, seen: [...seen] };
    },
  };
}

test('a value appears in no process’s arguments, no log, no history and no file', async (t) => {
  const scratch = join(temporaryDirectory(t), 'tmp');
  mkdirSync(scratch);
  const dataDir = join(temporaryDirectory(t), 'data');
  const service = await startProcess(t, dataDir, ['--log-level', 'debug']);
  const environment = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken, TMPDIR: scratch };
  const home = newHome(t, environment);
  const processes = watchProcesses();
  let said = '';
  const run = async (words: readonly string[], input = '') => {
    const { code, stdout, stderr } = await home.leasehold(words, { input });
    assert.equal(code, 0, stderr);
    said += stderr;
    return stdout;
  };

  await run(['put', 'a/piped', '-'], VALUE);
  const typed = openPseudoTerminal(t, [...COMMAND, 'put', 'a/typed'], {
    cwd: home.path,
    environment: { ...environment, HOME: home.path },
  });
  for (const question of [/Value: /, /Repeat the value: /]) {
    await typed.shows(question);
    typed.type(`${VALUE}\r`);
  }
  assert.equal((await typed.ended).exitCode, 0);
  said += typed.screen();
  assert.equal(await run(['get', 'a/typed']), VALUE);
  const reads = 'printf "%s" "$V"; sleep 0.3';
  assert.equal(await run(['run', '--env', 'V=a/piped', '--', 'sh', '-c', reads]), '[secret]');
  const readsFile = 'test -s "$V" && cat "$V"; sleep 0.3';
  assert.equal(await run(['run', '--files', '--env', 'V=a/piped', '--', 'sh', '-c', readsFile]), '[secret]');
  writeFileSync(join(home.path, '.env'), `V=${VALUE}\n`, { mode: 0o600 });
  await run(['import', '.env', '--all', '--prefix', 'b', '--yes']);
  assert.equal(await run(['get', 'b/V']), VALUE);
  writeFileSync(join(home.path, '.env'), 'V=leasehold://b/V\n');
  assert.equal(await run(['run', '--env-file', '.env', '--', 'sh', '-c', reads]), '[secret]');
  await run(['audit', 'list']);
  await run(['audit', 'export', '--out', 'log.ndjson']);

  const { looks, seen } = await processes.end();
  assert.ok(looks > 20, `only ${looks} looks`);
  assert.deepEqual(seen, []);
  assert.ok(!holds(said), 'what was said to people holds the value');
  assert.equal(await service.end('SIGTERM'), 0);
  assert.ok(!holds(service.output()), 'the service’s log holds the value');
  assert.deepEqual([home.path, scratch, dataDir].flatMap(filesWith), []);
  assert.deepEqual(readdirSync(scratch), [], 'temporary files remain');
});

test('the inspection finds a value in an argument and in a file', async (t) => {
  const folder = temporaryDirectory(t);
  writeFileSync(join(folder, 'log'), `value=${FORMS[1]}`);
  assert.deepEqual(filesWith(folder), [join(folder, 'log')]);
  const processes = watchProcesses();
  const shown = openPseudoTerminal(t, ['sh', '-c', 'read x; :', VALUE], { cwd: folder, environment: {} });
  await until(processes.hasSeen);
  shown.type('\r');
  await shown.ended;
  assert.ok((await processes.end()).seen.length > 0);
});
