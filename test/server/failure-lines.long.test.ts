// Failures of receivers and of checkpoints are logged in one line with the reason, and without a stack.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { startCheckpointing } from '../../src/server/background-tasks.ts';
import { openDirectDb } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startHttpReceiver, until, webhookStream } from '../kit/log-receivers.ts';
import { startProcess } from '../kit/process.ts';
import { openVault, put } from '../vault/fixture.ts';

interface Line {
  readonly msg: string;
  readonly stack?: string;
}

test('a file of checkpoints that cannot be written, and a log stream that fails', async (t) => {
  const path = join(temporaryDirectory(t), 'missing', 'kept.log');
  const port = await startHttpReceiver(t, (_call, response) => void response.writeHead(503).end());
  const flags = ['--checkpoint-file', path, ...webhookStream(t, `http://127.0.0.1:${port}/`)];
  const { output } = await startProcess(t, join(temporaryDirectory(t), 'data'), flags);
  const lineOf = (beginning: string): Line | undefined =>
    output()
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line): Line => JSON.parse(line))
      .find(({ msg }) => msg.startsWith(beginning));
  const checkpoint = `a checkpoint could not be written to ${path}; the server retries`;
  await until(() => lineOf(checkpoint) !== undefined && lineOf('log stream webhook') !== undefined);
  assert.deepEqual(
    [checkpoint, 'log stream webhook'].map((beginning) => [lineOf(beginning)?.msg, lineOf(beginning)?.stack]),
    [
      [`${checkpoint} (ENOENT)`, undefined],
      ['log stream webhook: the receiver returned HTTP 503', undefined],
    ],
  );
});

test('a checkpoint that contradicts the log', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  await vault.checkpoints.sign();
  const outside = await openDirectDb(vault.directory);
  await outside.run(`UPDATE checkpoints SET note = 'x'`);
  await outside.close();
  vault.checkpoints.reset();
  const lines: unknown[][] = [];
  const { stop } = startCheckpointing(vault.ledger, vault.checkpoints, (...line) => lines.push(line));
  await stop();
  const reason = 'The stored checkpoint of 1 entries was altered: the audit log was rolled back or altered.';
  assert.deepEqual(lines[0], [`a checkpoint of the audit log could not be signed; the server retries: ${reason}`]);
});

test('rejected requests, however many, hide no failure', () => {
  const log = JSON.stringify(new URL('../../src/server/log.ts', import.meta.url).href);
  const program = `
    const { createLog } = await import(${log});
    // All lines are of the same second.
    Date.now = () => 0;
    const log = createLog('info');
    const request = { code: 'UNAUTHENTICATED', requestId: 'r', method: 'GET', remoteAddr: undefined };
    for (let count = 0; count < 1000; count++) log.rejected(request);
    log.unexpectedError(new Error('a defect'), 'r');
    process.exit();`;
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' });
  const lines: Line[] = stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(lines.filter(({ msg }) => msg === 'request rejected').length, 50);
  assert.match(lines.at(-1)?.stack ?? '', /^Error\n/);
  assert.equal(lines.length, 51);
});
