// A stop does not wait for a receiver or a file that never settles.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CheckpointSinks } from '../../src/server/checkpoint-sinks.ts';
import { LogStream } from '../../src/server/streams/log-stream.ts';
import { openVault, put } from '../vault/fixture.ts';

const never = (): Promise<never> => new Promise(() => undefined);

test('a stream stops although its sink hangs', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const called = Promise.withResolvers<void>();
  const send = (): Promise<never> => {
    called.resolve();
    return never();
  };
  const log = vault.store.openStreamLog();
  t.after(() => log.close());
  const stream = new LogStream({
    name: 'hangs',
    openLog: () => log,
    openSink: () => ({ send, confirm: never, close: never }),
    newestSeq: () => 1,
    now: () => vault.clock.now(),
    onFailure: () => assert.fail('the sink has failed'),
  });
  await called.promise;
  await stream.stop();
});

test('checkpoints stop although their file hangs', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const file = { path: 'hangs', isOwn: false, append: never, close: never };
  const sinks = new CheckpointSinks([file], () => assert.fail('the file has failed'));
  sinks.publish(await vault.checkpoints.sign());
  await sinks.stop();
});
