// A stop does not wait for a receiver that never settles, not even when it is aborted.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CheckpointDelivery } from '../../src/server/checkpoint-delivery.ts';
import { LogStream } from '../../src/server/streams/stream.ts';
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

test('the delivery of checkpoints stops although the destination hangs', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a');
  const destination = { name: 'hangs', kind: 'webhook', send: never, close: never } as const;
  const delivery = new CheckpointDelivery(destination, 'webhook', () => assert.fail('the destination has failed'));
  delivery.offer(await vault.checkpoints.sign());
  await delivery.stop();
});
