// One caller's work does not delay another's: each has a piece in each turn, and large values are compiled in pieces.

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { Maskings } from '../../src/broker/maskings.ts';
import { Redactor } from '../../src/broker/redaction.ts';
import { type TurnShare, Turns, UNLIMITED } from '../../src/broker/turns.ts';
import { MAX_USED_VALUE_BYTES } from '../../src/vault/credentials/credential.ts';
import { specFor } from './upstream.ts';

/** The value of 4 KiB is compiled in about 33 pieces. */
const FEWEST_PIECES = 20;
const REQUESTS = 50;
const PIECES = 10;

test('a caller with one request gets as many turns as a caller with fifty', async () => {
  const turns = new Turns();
  const done: string[] = [];
  const work = async (caller: string): Promise<void> => {
    for (let piece = 0; piece < PIECES; piece++) {
      await turns.shareOf(caller).next();
      done.push(caller);
    }
  };
  const busy = Array.from({ length: REQUESTS }, () => work('busy'));
  await work('calm');
  // Until the calm caller has ended, both had the same number of pieces.
  assert.deepEqual([...new Set(done.slice(0, 2 * PIECES - 1))].toSorted(), ['busy', 'calm']);
  assert.ok(done.filter((caller) => caller === 'busy').length <= PIECES, done.join(' '));
  await Promise.all(busy);
  assert.equal(done.length, (REQUESTS + 1) * PIECES);
});

test('bodies of a caller that are ready together are redacted in turns, and another caller does not wait', async () => {
  const masking = await new Maskings().for(specFor({ port: 1, caPem: null }));
  const turns = new Turns();
  const redact = async (caller: string, text: string): Promise<void> => {
    const redactor = new Redactor(masking, turns.shareOf(caller));
    for await (const _ of redactor.body(Readable.from([Buffer.from(text)]), 'text/plain'));
  };
  let isCalmDone = false;
  let done = 0;
  // Every byte of it may begin a spelling.
  const busy = Array.from({ length: REQUESTS }, () => redact('busy', '%25'.repeat(1365)).then(() => void done++));
  const calm = redact('calm', 'a short body').then(() => {
    isCalmDone = true;
  });
  await Promise.race([calm, Promise.all(busy)]);
  assert.ok(isCalmDone);
  assert.ok(done < REQUESTS / 10, `${done} of the other caller were done before`);
  await Promise.all(busy);
});

test('empty and short messages of a caller also take turns', async () => {
  const masking = await new Maskings().for(specFor({ port: 1, caPem: null }));
  for (const length of [0, 1]) {
    const turns = new Turns();
    let messages = 0;
    const busy = async (): Promise<void> => {
      const redactor = new Redactor(masking, turns.shareOf('busy'));
      for (let count = 0; count < 100; count++, messages++) await redactor.message(Buffer.alloc(length));
    };
    const flood = Array.from({ length: REQUESTS }, busy);
    await new Redactor(masking, turns.shareOf('calm')).message(Buffer.from('a message'));
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(messages < REQUESTS * 10, `${messages} of the other caller passed before`);
    await Promise.all(flood);
  }
});

test('uses of one value at the same time compile it once', async () => {
  const maskings = new Maskings();
  const spec = specFor({ port: 1, caPem: null }, { value: 'x'.repeat(MAX_USED_VALUE_BYTES) });
  const found = await Promise.all(Array.from({ length: REQUESTS }, () => maskings.for(spec)));
  assert.equal(new Set(found).size, 1);
  // Another caller does not wait for the first, and then both have the same one.
  const [one, two] = [new Maskings(), specFor({ port: 1, caPem: null }, { caller: 'another', value: spec.value })];
  const both = await Promise.all([one.for(spec), one.for(two)]);
  assert.equal(both[0], both[1]);
});

test('the largest value is compiled in pieces, between which others get their turns', async () => {
  const marks = '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~';
  const value = marks.repeat(MAX_USED_VALUE_BYTES / marks.length);
  const maskings = new Maskings();
  let pieces = 0;
  const count: TurnShare = { ...UNLIMITED, next: async () => void pieces++ };
  const spec = specFor({ port: 1, caPem: null }, { value });
  const masking = await maskings.for(spec, count);
  assert.ok(pieces >= FEWEST_PIECES, `${pieces} pieces`);
  // It is kept.
  pieces = 0;
  assert.equal(await maskings.for(spec, count), masking);
  assert.equal(pieces, 0);
  maskings.clear();
});
