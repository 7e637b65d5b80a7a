// A node's copy of the database's clock: it never goes back, and advances with the monotonic clock if the database's is
// moved back.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DatabaseClock } from '../../src/ledger/clock.ts';

const NOW = Date.UTC(2026, 0, 31);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The node's monotonic clock, and a database whose clock may drift and be set. */
class Clocks {
  #passed = 1000;
  #database = NOW;
  readonly #pace: number;

  constructor(pace = 1) {
    this.#pace = pace;
  }

  readonly source = { monotonic: () => this.#passed };

  /** Time passes, and an operator sets the database's clock by `jump`. */
  pass(milliseconds: number, jump = 0): void {
    this.#passed += milliseconds;
    this.#database += milliseconds * this.#pace + jump;
  }

  /** The database's time in whole milliseconds. */
  get database(): number {
    return Math.floor(this.#database);
  }

  open(notBefore = 0): DatabaseClock {
    return new DatabaseClock(this.database, notBefore, this.source);
  }
}

test('it starts at the database’s time and advances with the node’s monotonic clock', () => {
  const clocks = new Clocks();
  const clock = clocks.open();
  assert.equal(clock.now(), NOW);
  clocks.pass(90_000);
  assert.equal(clock.now(), NOW + 90_000);
});

test('it starts at the latest known time if the database is behind it, and advances from there', () => {
  const clocks = new Clocks();
  const clock = clocks.open(NOW + 60_000);
  assert.equal(clock.now(), NOW + 60_000);
  clocks.pass(5000);
  clock.sync(clocks.database);
  assert.equal(clock.now(), NOW + 65_000);
});

test('it follows the database immediately when that is set forward', () => {
  const clocks = new Clocks();
  const clock = clocks.open();
  clocks.pass(1000, HOUR_MS);
  assert.equal(clock.now(), NOW + 1000, 'it has no reading yet');
  clock.sync(clocks.database);
  assert.equal(clock.now(), NOW + 1000 + HOUR_MS);
});

test('when the database is moved back, it advances with the monotonic clock until the database has caught up', () => {
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
  test(`drift does not add up: after a day with a database whose clock goes a little ${what}, it equals the database’s`, () => {
    const clocks = new Clocks(pace);
    const clock = clocks.open();
    for (let passed = 0; passed < DAY_MS; passed += 10_000) {
      clocks.pass(10_000);
      clock.sync(clocks.database);
      const apart = Math.abs(clock.now() - clocks.database);
      assert.ok(apart <= 10, `${apart} ms apart`);
    }
  });

  test(`after a day without a reading it follows the first one, also if the database’s clock goes ${what}`, () => {
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

test('a delayed reading does not set it back, and the next one is followed', () => {
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

test('it never goes back for any readings, and returns whole milliseconds', () => {
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
        // The node's clock is never ahead of the database's.
        if (isAsked) assert.ok(now >= clocks.database);
        latest = now;
      }
    }),
  );
});
