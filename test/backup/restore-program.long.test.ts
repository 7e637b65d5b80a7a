// `leasehold restore` as a process: on a terminal, and killed. The state after a kill depends on the moment, so the
// test repeats the restore until the kill came before its end.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { ROOT } from '../conventions/source.ts';
import { openPseudoTerminal } from '../kit/pseudo-terminal.ts';
import { photograph } from '../server/vaults.ts';
import { countRows, newBackup, newPlace, type Place, startAt, wordsFor } from './fixture.ts';

const { source, file, verifierKey } = await newBackup({ after }, [['prod/1', 'value 1']]);

test('on a terminal the restore shows the verifier key and asks; yes restores, anything else does not', async (t) => {
  const place = await newPlace(t, 'sqlite', source.dataDir);
  const before = photograph(place.dataDir);
  const answerWith = async (typed: string): Promise<number> => {
    const command = [process.execPath, join(ROOT, 'src/bin/leasehold.ts'), 'restore', ...wordsFor(t, file, place)];
    const terminal = openPseudoTerminal(t, command, { cwd: ROOT, environment: {}, columns: 400 });
    await terminal.shows(/Type yes only if this is the verifier key that you kept: /);
    assert.ok(terminal.screen().includes(`  ${verifierKey}`), terminal.screen());
    terminal.type(typed);
    return (await terminal.ended).exitCode;
  };
  for (const [refused, code] of [
    ['no\r', 1],
    ['\r', 1],
    ['\u0003', 130],
    ['\u0004', 130],
  ] as const)
    assert.equal(await answerWith(refused), code, JSON.stringify(refused));
  assert.deepEqual(photograph(place.dataDir), before);
  assert.equal(await answerWith('yes\r'), 0);
});

/** A place in which a restore was killed while it verified the restored state. */
async function placeOfKilled(t: TestContext): Promise<Place> {
  let told = '';
  for (let tries = 0; tries < 10; tries++) {
    const place = await newPlace(t, 'postgres', source.dataDir);
    const words = [...wordsFor(t, file, place), '--verifier-key', verifierKey];
    const child = spawn(process.execPath, ['src/bin/leasehold.ts', 'restore', ...words], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const exited = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
    told = '';
    for await (const chunk of child.stderr) {
      told += chunk;
      if (told.includes('Verifying the restored state')) child.kill('SIGKILL');
    }
    const end = await exited;
    if (end === 'SIGKILL') return place;
    // The signal may come after the end, on a busy machine.
    assert.equal(end, 0, told);
  }
  return assert.fail(told);
}

test('no service starts on a database that a killed restore has left without its entry', async (t) => {
  const place = await placeOfKilled(t);
  const url = readFileSync(place.flags[1] ?? '', 'utf8').trim();
  assert.ok((await countRows(url, 'audit_entries')) > 0, 'it was killed before it committed the rows');
  await assert.rejects(startAt(t, place), /The vault's record in the database was altered outside/);
});
