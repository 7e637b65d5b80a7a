/** Single-flight execution of shared work. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SingleFlight } from '../../src/ledger/single-flight.ts';
import { settle } from '../vault/fixture.ts';

const STAY = new AbortController().signal;

/** Runs that each end when the test says so. */
function controlled() {
  const begun: { signal: AbortSignal; end: (answer: string) => void; fail: (error: Error) => void }[] = [];
  const rounds = new SingleFlight<string>((signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    begun.push({ signal, end: resolve, fail: reject });
    return promise;
  });
  return { rounds, begun };
}

/** Calls `run`, and aborts when `leave` is called, which resolves when the caller got the abort. */
function askToLeave(rounds: SingleFlight<string>): { leave(): Promise<void> } {
  const leaving = new AbortController();
  const left = rounds.run(leaving.signal);
  return {
    async leave() {
      leaving.abort(new Error('gone'));
      await assert.rejects(left, /gone/);
    },
  };
}

test('a caller without others gets a separate run, each time', async () => {
  const { rounds, begun } = controlled();
  for (const word of ['first', 'second']) {
    const answer = rounds.run(STAY);
    begun.at(-1)?.end(word);
    assert.equal(await answer, word);
    await settle();
  }
  assert.equal(begun.length, 2);
});

test('callers during a run share the next one, which begins when the first has ended', async () => {
  const { rounds, begun } = controlled();
  const first = rounds.run(STAY);
  const others = Array.from({ length: 50 }, () => rounds.run(STAY));
  await settle();
  assert.equal(begun.length, 1);
  begun[0]?.end('first');
  assert.equal(await first, 'first');
  await settle();
  assert.equal(begun.length, 2);
  const late = rounds.run(STAY);
  begun[1]?.end('second');
  assert.deepEqual(new Set(await Promise.all(others)), new Set(['second']));
  await settle();
  begun[2]?.end('third');
  assert.equal(await late, 'third');
});

test('a caller that aborts is rejected immediately, and the run continues for the others', async () => {
  const { rounds, begun } = controlled();
  const running = rounds.run(STAY);
  const leaving = askToLeave(rounds);
  const stayed = rounds.run(STAY);
  begun[0]?.end('first');
  await running;
  await settle();
  await leaving.leave();
  assert.equal(begun[1]?.signal.aborted, false);
  begun[1]?.end('second');
  assert.equal(await stayed, 'second');
});

test('a run that all callers have left is aborted, and the next one begins only when it has ended', async () => {
  const { rounds, begun } = controlled();
  await askToLeave(rounds).leave();
  assert.equal(begun[0]?.signal.aborted, true);
  const next = rounds.run(STAY);
  await settle();
  assert.equal(begun.length, 1);
  begun[0]?.fail(new Error('ended'));
  await settle();
  assert.equal(begun.length, 2);
  begun[1]?.end('second');
  assert.equal(await next, 'second');
});

test('a run for which no caller waits is not started', async () => {
  const { rounds, begun } = controlled();
  const running = rounds.run(STAY);
  await askToLeave(rounds).leave();
  begun[0]?.end('first');
  await running;
  await settle();
  assert.equal(begun.length, 1);
});

test('a caller after all others left the next run gets a new one', async () => {
  const { rounds, begun } = controlled();
  const running = rounds.run(STAY);
  await askToLeave(rounds).leave();
  const late = rounds.run(STAY);
  begun[0]?.end('first');
  await running;
  await settle();
  begun[1]?.end('second');
  assert.equal(await late, 'second');
  await settle();
  assert.equal(begun.length, 2);
});

test('a call with an aborted signal starts a run that is aborted', async () => {
  const { rounds, begun } = controlled();
  await assert.rejects(rounds.run(AbortSignal.abort(new Error('gone'))), /gone/);
  assert.equal(
    begun.every(({ signal }) => signal.aborted),
    true,
  );
});

test('a run that fails rejects the callers that share it, and no others', async () => {
  const { rounds, begun } = controlled();
  const first = rounds.run(STAY);
  const second = rounds.run(STAY);
  begun[0]?.fail(new Error('broken'));
  await assert.rejects(first, /broken/);
  await settle();
  begun[1]?.end('second');
  assert.equal(await second, 'second');
});
