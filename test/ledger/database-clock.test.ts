// The database's clock as a node knows it: it decides, it never goes back, and where it was set back the node goes on by itself.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DatabaseClock } from '../../src/ledger/database-clock.ts';

const NOW = Date.UTC(2026, 0, 31);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The node's own hand, and a database whose clock may go at another pace and be set. */
class Clocks {
  #passed = 1000;
  #database = NOW;
  readonly #pace: number;

  constructor(pace = 1) {
    this.#pace = pace;
  }

  readonly source = { monotonic: () => this.#passed };

  /** Time passes, and somebody sets the database's clock by `jump`. */
  pass(milliseconds: number, jump = 0): void {
    this.#passed += milliseconds;
    this.#database += milliseconds * this.#pace + jump;
  }

  /** What the database says: whole milliseconds. */
  get database(): number {
    return Math.floor(this.#database);
  }

  open(notBefore = 0): DatabaseClock {
    return new DatabaseClock(this.database, notBefore, this.source);
  }
}

test('it begins with what the database says, and goes on by the time that passes here', () => {
  const clocks = new Clocks();
  const clock = clocks.open();
  assert.equal(clock.now(), NOW);
  clocks.pass(90_000);
  assert.equal(clock.now(), NOW + 90_000);
});

test('it begins at the latest time that is known where the database is behind that, and does not stand there', () => {
  const clocks = new Clocks();
  const clock = clocks.open(NOW + 60_000);
  assert.equal(clock.now(), NOW + 60_000);
  clocks.pass(5000);
  clock.sync(clocks.database);
  assert.equal(clock.now(), NOW + 65_000);
});

test('it follows the database where that was set forward, at once', () => {
  const clocks = new Clocks();
  const clock = clocks.open();
  clocks.pass(1000, HOUR_MS);
  assert.equal(clock.now(), NOW + 1000, 'nobody has told it yet');
  clock.sync(clocks.database);
  assert.equal(clock.now(), NOW + 1000 + HOUR_MS);
});

test('where the database was set back it goes on by itself, until the database has caught up', () => {
  const clocks = new Clocks();
  const clock = clocks.open();
  clocks.pass(1000);
  clock.sync(clocks.database);
  clocks.pass(0, -HOUR_MS);
  for (let minute = 1; minute < 60; minute++) {
    clocks.pass(60_000);
    clock.sync(clocks.database);
    assert.equal(clock.now(), NOW + 1000 + minute * 60_000);
  }
  clocks.pass(0, 2 * HOUR_MS);
  clock.sync(clocks.database);
  assert.equal(clock.now(), clocks.database);
});

for (const [what, pace] of [
  ['slower', 0.9995],
  ['faster', 1.0005],
] as const) {
  test(`drift does not add up: a day with a database whose clock goes a little ${what} ends where the database is`, () => {
    const clocks = new Clocks(pace);
    const clock = clocks.open();
    for (let passed = 0; passed < DAY_MS; passed += 10_000) {
      clocks.pass(10_000);
      clock.sync(clocks.database);
      const apart = Math.abs(clock.now() - clocks.database);
      assert.ok(apart <= 10, `${apart} ms apart`);
    }
  });

  test(`nor where nobody asked the database for a day: the first answer is followed, ${what} as it goes`, () => {
    const clocks = new Clocks(pace);
    const clock = clocks.open();
    clocks.pass(DAY_MS);
    clock.sync(clocks.database);
    clocks.pass(2 * 60_000);
    clock.sync(clocks.database);
    const apart = Math.abs(clock.now() - clocks.database);
    assert.ok(apart <= 10, `${apart} ms apart`);
  });
}

test('an answer that was long on its way does not pull it back, and the next one is followed', () => {
  const clocks = new Clocks();
  const clock = clocks.open();
  clocks.pass(1000);
  const late = clocks.database;
  clocks.pass(200);
  assert.equal(clock.now(), NOW + 1200);
  clock.sync(late);
  assert.equal(clock.now(), NOW + 1200);
  clocks.pass(1000);
  clock.sync(clocks.database);
  assert.equal(clock.now(), NOW + 2200);
});

test('whatever the database says, it never goes back, and tells whole milliseconds', () => {
  const step = fc.record({
    passes: fc.double({ min: 0, max: 5000, noNaN: true }),
    jump: fc.integer({ min: -10_000, max: 10_000 }),
    isAsked: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step), fc.integer({ min: -5000, max: 5000 }), (steps, ahead) => {
      const clocks = new Clocks();
      const clock = clocks.open(NOW + ahead);
      let latest = clock.now();
      for (const { passes, jump, isAsked } of steps) {
        clocks.pass(passes, jump);
        if (isAsked) clock.sync(clocks.database);
        const now = clock.now();
        assert.ok(Number.isInteger(now) && now >= latest, `${latest}, then ${now}`);
        // What it follows is never ahead of it.
        if (isAsked) assert.ok(now >= clocks.database);
        latest = now;
      }
    }),
  );
});
