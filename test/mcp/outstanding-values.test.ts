// No value that the server issued appears in the output of a command, whenever it was issued and wherever the output
// was truncated.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Secret } from '../../src/core/secret.ts';
import { ToolError } from '../../src/mcp/errors.ts';
import { OutstandingValues } from '../../src/mcp/outstanding-values.ts';
import { VALUE } from './fixture.ts';
import { startServer, waitFor } from './process.ts';

const LATE = 'L8!another&value"of+its/own=%';
const VALUES = { 'prod/db/password': VALUE, 'prod/late': LATE };
const late = { path: 'prod/late', name: 'late' };

/** Random, so that every form of it is its own. */
function large(bytes: number): string {
  return randomBytes((bytes * 3) / 4).toString('base64');
}

test('a value that is written to a file while a command runs is masked in the output of the command', async (t) => {
  const lines = `touch begun; ${waitFor('go')}; cat "$FILES/late"; echo; base64 "$FILES/late"; cat "$FILES/late" >&2; echo "$A"`;
  const { use, touch, made } = await startServer(t, VALUES, {
    work: { lines, credentials: { A: 'prod/db/password' } },
  });
  const call = use('run_with_credential', { command: 'work' });
  await made('begun');
  await use('write_credential_to_file', late);
  touch('go');
  const { stdout, stderr } = await call;
  assert.deepEqual([stdout, stderr], ['[secret]\n[secret]\n[secret]\n', '[secret]']);
});

test('it is masked even if the file is removed before the command ends', async (t) => {
  const lines = `touch begun; ${waitFor('go')}; cp "$FILES/late" copy; touch copied; ${waitFor('on')}; cat copy`;
  const { use, touch, made, filesDir } = await startServer(t, VALUES, { work: { lines } });
  const call = use('run_with_credential', { command: 'work' });
  await made('begun');
  await use('write_credential_to_file', late);
  touch('go');
  await made('copied');
  await use('remove_file', { name: 'late' });
  assert.deepEqual(readdirSync(filesDir), []);
  touch('on');
  assert.equal((await call)['stdout'], '[secret]');
});

test('the value of a concurrent command is masked too', async (t) => {
  const { use, touch, made } = await startServer(t, VALUES, {
    show: { lines: `touch begun; ${waitFor('held')}; cat held; ${waitFor('on')}` },
    hold: { lines: 'printf %s "$A" > part; mv part held', credentials: { A: 'prod/late' } },
  });
  const call = use('run_with_credential', { command: 'show' });
  await made('begun');
  await use('run_with_credential', { command: 'hold' });
  touch('on');
  assert.equal((await call)['stdout'], '[secret]');
});

test('truncated output contains no part of a value', async (t) => {
  // Some 80 KB of nothing but the value, whose beginning is moved by so many spaces.
  const lines = 'v=$A; for i in 1 2 3 4 5 6 7 8 9 10 11; do v=$v$v; done; printf "%*s%s" "$1" "" "$v"';
  const { use } = await startServer(t, VALUES, {
    work: {
      lines,
      credentials: { A: 'prod/db/password' },
      toml: 'output_limit_bytes = 100\nextra_arguments = { pattern = "[0-9]+" }',
    },
  });
  for (const spaces of [1, 4, 8, 12, 16, 20, 24, 28, 32, 36]) {
    const ran = await use('run_with_credential', { command: 'work', extra_arguments: [String(spaces)] });
    assert.match(String(ran['stdout']), /^ +\[secret\](?:\[secret\])?$/, `${spaces}`);
    assert.equal(ran['is_output_cut'], true);
  }
});

test('a value in many files is masked once, however large it is', async (t) => {
  const values = { 'prod/large': large(16 * 1024) };
  const { use } = await startServer(t, values, { work: { lines: 'cat "$FILES/n15"; cat "$FILES/n0" | base64' } });
  for (let n = 0; n < 16; n++) await use('write_credential_to_file', { path: 'prod/large', name: `n${n}` });
  const { stdout } = await use('run_with_credential', { command: 'work' });
  assert.match(String(stdout), /^(?:\[secret\]\n?)+$/);
});

test('values beyond the masking limit are not issued: nothing is written or run, and the others are masked in time', async (t) => {
  const names = Array.from({ length: 16 }, (_, n) => `n${n}`);
  const values = Object.fromEntries(names.map((name) => [`prod/${name}`, large(48 * 1024)]));
  const { use, refusal, filesDir, folder, service } = await startServer(t, values, {
    show: { lines: 'cat "$FILES"/n*' },
    work: { lines: 'touch ran; echo "$A"', credentials: { A: 'prod/n15' } },
  });
  const write = (name: string) => ({ path: `prod/${name}`, name });
  const written: string[] = [];
  let said = '';
  for (const name of names) {
    try {
      await use('write_credential_to_file', write(name));
      written.push(name);
    } catch (error) {
      said = String(error);
      break;
    }
  }
  assert.match(said, /BUSY: path: together with the values in use it is too large to be masked .*remove_file/);
  assert.equal(written.length >= 5 && written.length < 15, true, `${written.length}`);
  assert.deepEqual(readdirSync(filesDir).toSorted(), written.toSorted());
  assert.match(await refusal('run_with_credential', { command: 'work' }), /^BUSY: A: together with /);
  assert.equal(existsSync(join(folder, 'ran')), false);
  const { data } = (await service.admin.get('/api/v1/leases?agent=builder&status=active')).body;
  assert.equal(data.length, written.length);
  assert.match(String((await use('run_with_credential', { command: 'show' }))['stdout']), /^(?:\[secret\])+$/);
  for (const name of written.slice(1)) await use('remove_file', { name });
  assert.equal((await use('run_with_credential', { command: 'work' }))['stdout'], '[secret]\n');
});

test('a value too short to be masked is not written to a file', async (t) => {
  const { refusal, filesDir } = await startServer(t, { 'prod/short': 'abc' }, {});
  const write = { path: 'prod/short', name: 'short' };
  assert.match(await refusal('write_credential_to_file', write), /^FAILED: path: the value is too short/);
  assert.deepEqual(readdirSync(filesDir), []);
});

test('a value counts once while it is issued or watched, and is then dropped', () => {
  const lent = new OutstandingValues();
  const refused = (value: string, code: string): void =>
    assert.throws(
      () => lent.register(new Secret(value), 'x'),
      (error) => error instanceof ToolError && error.code === code,
    );
  refused(large(512 * 1024), 'FAILED');
  const value = large(256 * 1024);
  const endFirst = lent.register(new Secret(value), 'x');
  const endSecond = lent.register(new Secret(value), 'x');
  endFirst();
  refused(large(256 * 1024), 'BUSY');
  const observation = lent.observe();
  endSecond();
  endSecond();
  assert.deepEqual(
    observation.values().map((each) => each.reveal()),
    [value],
  );
  refused(large(256 * 1024), 'BUSY');
  // The value is no longer issued: a command that begins now cannot print it.
  assert.deepEqual(lent.observe().values(), []);
  observation.end();
  lent.register(new Secret(large(256 * 1024)), 'x');
});
