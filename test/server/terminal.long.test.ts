// The server on a real terminal: it shows the administrator's token, unless it was told not to, and Ctrl-C stops it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ROOT } from '../conventions/source.ts';
import { COMPILED } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { storeVariables } from '../kit/process.ts';
import { openPseudoTerminal } from '../kit/pseudo-terminal.ts';

test('a terminal shows the token', async (t) => {
  const { terminal, token } = await startOnTerminal(t, []);
  assert.equal(terminal.screen().split(token).length, 2);
});

test('with --print-token=never a terminal shows the file of the token', async (t) => {
  const { terminal, token, dataDir } = await startOnTerminal(t, ['--print-token=never']);
  assert.equal(terminal.screen().includes(token), false);
  assert.ok(terminal.screen().includes(join(dataDir, 'daemon.token')));
});

/** Starts the program on a terminal, and stops it when its output is complete. */
async function startOnTerminal(scope: TestContext, flags: readonly string[]) {
  const directory = temporaryDirectory(scope);
  const dataDir = join(directory, 'data');
  const words = ['--data-dir', dataDir, '--listen', '127.0.0.1:0', ...flags];
  const environment = { HOME: directory, ...COMPILED, ...(await storeVariables(dataDir, [])) };
  const command = [process.execPath, join(ROOT, 'src/bin/server.ts'), ...words];
  const terminal = openPseudoTerminal(scope, command, { cwd: directory, environment, columns: 200 });
  await terminal.shows(/Ctrl-C stops/);
  const token = readFileSync(join(dataDir, 'daemon.token'), 'utf8').trim();
  terminal.type('\u0003');
  assert.equal((await terminal.ended).exitCode, 0);
  return { terminal, token, dataDir };
}
