// Kills the service in the middle of streaming under load: no entry of the log is missing in any receiver, and each has
// them in order. `SEED=n` repeats the moments.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../kit/client.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { assertComplete, type LogEntry, startHttpReceiver, until } from '../kit/log-receivers.ts';
import { startProcess } from '../kit/process.ts';
import { scaled } from '../kit/scale.ts';

const seed = newSeed();
const kills = scaled(4, 40);
const CALLERS = 8;
const MAX_DELAY_MS = 1500;

test(`${kills} kills in the middle of streaming lose no entry of any stream (SEED=${seed})`, async (t) => {
  const dice = new Dice(seed);
  const directory = temporaryDirectory(t);
  const dataDir = join(directory, 'data');
  const [file, secret] = [join(directory, 'log.ndjson'), join(directory, 'secret')];
  writeFileSync(secret, `whsec_${Buffer.alloc(32, 7).toString('base64')}`, { mode: 0o600 });
  const received: number[] = [];
  let willBeKilled = true;
  // It fails at times until the last kill, before or after it has taken the entries.
  const webhook = await startHttpReceiver(t, ({ body }, response) => {
    const luck = willBeKilled ? dice.below(6) : 2;
    if (luck === 0) return void response.writeHead(503).end();
    received.push(...JSON.parse(body).data.entries.map(({ seq }: LogEntry) => seq));
    if (luck === 1) return void response.destroy();
    response.end('{}');
  });
  const streams = [`file:${file}`, `webhook+http://127.0.0.1:${webhook}/`].join();
  const flags = ['--log-stream', streams, '--log-stream-secret-file', secret, '--log-level', 'silent'];
  const seqsOfFile = (): number[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line) => {
        // A kill may leave a part of a line.
        try {
          return [JSON.parse(line).seq];
        } catch {
          return [];
        }
      });

  for (let round = 0; round < kills; round++) {
    const service = await startProcess(t, dataDir, flags);
    const admin = createClient(service.address, service.adminToken);
    await admin.post('/api/v1/credentials', { path: 'a/b', value: 'a value' });
    const retrieveUntilDead = async (): Promise<void> => {
      while (
        await admin.get('/api/v1/credentials/a/b').then(
          () => true,
          () => false,
        )
      );
    };
    const callers = Array.from({ length: CALLERS }, retrieveUntilDead);
    await sleep(dice.below(MAX_DELAY_MS));
    await service.end('SIGKILL');
    await Promise.all(callers);
  }

  willBeKilled = false;
  const service = await startProcess(t, dataDir, flags);
  const admin = createClient(service.address, service.adminToken);
  const { total } = (await admin.get('/api/v1/audit?limit=1')).body.meta;
  const all = () => [seqsOfFile(), received];
  await until(() => all().every((seqs) => seqs.at(-1) === total));
  for (const seqs of all()) assertComplete(seqs, total);
  assert.ok(total > kills);
  assert.equal(await service.end('SIGTERM'), 0);
});
