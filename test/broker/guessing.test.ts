// An agent that guesses the beginning of a value gains nothing from an upstream that repeats its bytes: the forwarded
// bytes and their times are the same for a right and a wrong guess.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { after, test } from 'node:test';
import { Maskings } from '../../src/broker/maskings.ts';
import type { UpstreamRequestSpec } from '../../src/broker/protocol.ts';
import { HELD_BYTES, Redactor } from '../../src/broker/redaction.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { scaled } from '../kit/scale.ts';
import { bodyOf, headOf, PLAIN_VALUE, specFor, startBroker, startUpstream } from './upstream.ts';

const seed = newSeed(20261127);
const GUESSES = scaled(800, 100_000);
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789-';
const MAX_KNOWN = 30;
/** Each remainder of three, since base64 groups bytes so. */
const LENGTH_STEP = scaled(7, 1);
/** Known beginnings of different lengths; each is tried with each letter in six ways. */
const POSITIONS = scaled(2, 33);
const TYPES = ['text/plain', 'application/json', 'text/event-stream', 'application/x-ndjson', ''];

const maskings = new Maskings();
const spec = specFor({ port: 1, caPem: null });
const masking = await maskings.for(spec);

const broker = startBroker({ after });
const upstream = await startUpstream({ after }, (request, response) => {
  const said = request.headers['x-say'] ?? '';
  if (request.url === '/header') return void response.setHeader('x-said', said).end('said');
  if (request.url === '/part') return void response.writeHead(206, { 'content-range': 'bytes 0-9/20' }).end(said);
  if (request.url === '/events') response.setHeader('content-type', 'text/event-stream');
  // Begins to answer before the request's body has ended.
  response.writeHead(request.url === '/rejecting' ? 413 : 200);
  response.write(`answered ${request.url}`);
  if (request.url === '/rejecting') response.end();
  else request.pipe(response);
});
upstream.server.on('upgrade', (_, socket) => {
  socket.on('error', () => undefined);
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
  socket.pipe(socket);
});

/** The bytes that are released after each chunk. */
function released(type: string, chunks: readonly string[]): number[] {
  const redactor = new Redactor(masking);
  redactor.setContentType(type);
  return [...chunks.map((chunk) => redactor.write(Buffer.from(chunk)).length), redactor.end().length];
}

test(`${GUESSES} guesses of a beginning: releases and headers are as for a wrong one (SEED=${seed})`, async () => {
  const dice = new Dice(seed);
  for (let done = 0; done < GUESSES; done++) {
    // Longer forms are searched in pieces, each of which is a secret of thirty characters on its own.
    const known = PLAIN_VALUE.slice(0, dice.below(MAX_KNOWN));
    const right = PLAIN_VALUE.charAt(known.length);
    const wrong = dice.pick([...ALPHABET].filter((letter) => letter !== right));
    const before = 'x'.repeat(dice.below(2 * HELD_BYTES));
    const encode = dice.pick([
      encodeURIComponent,
      (text: string) => text,
      (text: string) => Buffer.from(text).toString('hex'),
    ]);
    const end = dice.pick(['', '\n\n', '}\n', ' ', '!'.repeat(dice.below(HELD_BYTES))]);
    const chunksOf = (letter: string): string[] => {
      const guess = encode(`${known}${letter}`);
      return [before, guess.slice(0, -1), guess.slice(-1), end, 'y', 'z'.repeat(HELD_BYTES)];
    };
    const type = dice.pick(TYPES);
    assert.deepEqual(released(type, chunksOf(right)), released(type, chunksOf(wrong)), `${type}: ${known}`);
    const echoes = [right, wrong].map((letter) => ['x-echo', encode(`${known}${letter}`)] as const);
    assert.deepEqual(await new Redactor(masking).headers(echoes), echoes);
  }
});

test('a response begins after the body of the request has ended, however early the upstream answers', async () => {
  const body = new PassThrough();
  const use = broker.use(specFor(upstream, { method: 'POST', path: '/echo', bodyLength: null }), body);
  let isAnswered = false;
  void use.head.then(() => (isAnswered = true));
  for (const letter of PLAIN_VALUE) {
    body.write(`${letter}${'.'.repeat(HELD_BYTES)}`);
    // The upstream has answered, and has the byte.
    const other = broker.use(specFor(upstream, { path: '/other' }), null);
    await headOf(other);
    await bodyOf(other);
    assert.equal(isAnswered, false);
  }
  body.end();
  await headOf(use);
  assert.match((await bodyOf(use)).toString(), /^answered \/echos\.{1024}k/);
  assert.equal((await use.result).ended, 'complete');
});

test('a response that rejects the request ends its body', async () => {
  const body = new PassThrough();
  const use = broker.use(specFor(upstream, { method: 'POST', path: '/rejecting', bodyLength: null }), body);
  body.write('a');
  assert.equal((await headOf(use)).status, 413);
  assert.equal((await bodyOf(use)).toString(), 'answered /rejecting');
  assert.equal((await use.result).ended, 'complete');
});

test('a message of a WebSocket arrives when it is complete, whatever of a value it ends with', async () => {
  const caller = new PassThrough();
  const use = broker.use(specFor(upstream, { isUpgrade: true }), caller);
  await headOf(use);
  for (let length = 1; length < PLAIN_VALUE.length; length++) {
    for (const guess of [PLAIN_VALUE.slice(0, length), `${PLAIN_VALUE.slice(0, length - 1)}!`]) {
      const frame = Buffer.concat([Buffer.from([0x81, guess.length]), Buffer.from(guess)]);
      caller.write(frame);
      assert.deepEqual((await once(use.body, 'data'))[0], frame);
    }
  }
  caller.end();
  await once(use.body.resume(), 'end');
});

/** How an upstream repeats a guess. Each returns what the agent sees, with a mark instead of the guess. */
const ECHOES: Readonly<Record<string, (guess: string) => Promise<string>>> = {
  body: (guess) => sees(guess, { path: '/echo' }, [guess]),
  'body in pieces': (guess) => sees(guess, { path: '/echo' }, [guess.slice(0, -1), guess.slice(-1), ' more']),
  events: (guess) => sees(guess, { path: '/events' }, [`data: ${guess}\n\n`, `data: ${guess}`]),
  header: (guess) => sees(guess, { method: 'GET', path: '/header', headers: [['x-say', guess]] }, null),
  part: (guess) => sees(guess, { method: 'GET', path: '/part', headers: [['x-say', guess]] }, null),
};

async function sees(
  guess: string,
  fields: Partial<UpstreamRequestSpec>,
  body: readonly string[] | null,
): Promise<string> {
  const withBody = specFor(upstream, { method: 'POST', bodyLength: null, ...fields });
  const use = broker.use(
    body === null ? { ...withBody, bodyLength: 0 } : withBody,
    body === null ? null : Readable.from(body.map((text) => Buffer.from(text))),
  );
  const head = await use.head;
  const text = head.kind === 'response' ? (await bodyOf(use)).toString() : '';
  const shown = head.kind === 'response' ? head.headers.filter(([name]) => name.toLowerCase() !== 'date') : head;
  return JSON.stringify({ shown, text, result: await use.result }).replaceAll(guess, '(guess)');
}

/** One connection repeats all guesses. */
async function seesMessages(guesses: readonly string[]): Promise<string[]> {
  const caller = new PassThrough();
  const use = broker.use(specFor(upstream, { isUpgrade: true }), caller);
  await headOf(use);
  const seen: string[] = [];
  for (const guess of guesses) {
    caller.write(Buffer.concat([Buffer.from([0x81, guess.length]), Buffer.from(guess)]));
    const [frame] = (await once(use.body, 'data')) as [Buffer];
    seen.push(frame.toString('latin1').replaceAll(guess, '(guess)'));
  }
  caller.end();
  await once(use.body.resume(), 'end');
  return seen;
}

test(`an agent that knows ${POSITIONS} beginnings of a value learns the next character from no echo`, async () => {
  const last = PLAIN_VALUE.length - 1;
  for (let position = 0; position < POSITIONS; position++) {
    // The last character is the whole value, whose redaction the agent may see.
    const known = PLAIN_VALUE.slice(0, Math.round((position * (last - 1)) / (POSITIONS - 1)));
    const guesses = [...ALPHABET].map((letter) => `(${known}${letter})`);
    assert.ok(guesses.some((guess) => PLAIN_VALUE.startsWith(guess.slice(1, -1))));
    for (const [name, echo] of Object.entries(ECHOES)) {
      const seen = new Set(await Promise.all(guesses.map(echo)));
      assert.equal(seen.size, 1, `${name}, after ${known}: ${[...seen].join('\n')}`);
    }
    assert.equal(new Set(await seesMessages(guesses)).size, 1, known);
  }
  // The agent sees each redaction of the whole value, so the comparison finds the differences.
  const whole = [...ALPHABET].map((letter) => `(${PLAIN_VALUE.slice(0, last)}${letter})`);
  for (const [name, echo] of Object.entries(ECHOES))
    if (name !== 'part') assert.equal(new Set(await Promise.all(whole.map(echo))).size, 2, name);
  assert.equal(new Set(await seesMessages(whole)).size, 2);
});

test('an echo of a Basic header in any form confirms no character of the password after a known user name', async () => {
  const value = 'hunter2Zq9';
  const hex = (text: string): string => Buffer.from(text).toString('hex');
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const encoders = [base64, hex, (text: string) => hex(base64(text)), (text: string) => base64(base64(text))];
  for (let length = 1; length <= 100; length += LENGTH_STEP) {
    const username = 'u'.repeat(length);
    const ofLogin = await maskings.for({ ...spec, value, placement: { kind: 'basic', username } });
    for (const encode of encoders) {
      const echoes = [...'hHx0'].map((letter) => ['x-echo', encode(`${username}:${letter}`)] as const);
      const lengths = (await new Redactor(ofLogin).headers(echoes)).map(([, text]) => text.length);
      assert.equal(new Set(lengths).size, 1, `${length}: ${lengths}`);
    }
  }
});
