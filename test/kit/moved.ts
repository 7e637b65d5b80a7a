/**
 * Moves the wall clock of this process, and with it that of every service it runs; real timers and the monotonic clock go on.
 * A file that moves it has it for itself: the test runner gives each file a process.
 */
import { mock } from 'node:test';
import type { Scope } from './folder.ts';

export interface MovedClock {
  /** Sets the wall clock forward, or back with a negative number. It stands still there. */
  move(milliseconds: number): void;
  /** Sets it to the timestamp. */
  moveTo(timestamp: string): void;
}

export function moveClock(scope: Scope): MovedClock {
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  scope.after(() => mock.timers.reset());
  return {
    move: (milliseconds) => mock.timers.setTime(Date.now() + milliseconds),
    moveTo: (timestamp) => mock.timers.setTime(Date.parse(timestamp)),
  };
}
