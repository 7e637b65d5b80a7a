/**
 * Takes backups at an interval until the command is interrupted. A backup that fails is reported and tried again; the
 * interval runs from the newest backup of the vault in the directory, so that restarts neither skip one nor add one.
 */
import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_RETRY_MS = 60_000;

export interface Schedule {
  readonly intervalMs: number;
  /** When the newest backup was taken, in milliseconds since 1970; null if none exists, or it is unknown. */
  lastTakenAt(): Promise<number | null>;
  take(): Promise<void>;
  /** Reports the error of `lastTakenAt` or `take`, and says when the next try is. @throws errors that are bugs */
  onFailure(error: unknown, retryMs: number): void;
  /** For tests. */
  readonly firstRetryMs?: number;
}

/** Resolves when the signal aborts. */
export async function runSchedule(schedule: Schedule, signal: AbortSignal): Promise<void> {
  const { intervalMs, firstRetryMs = FIRST_RETRY_MS } = schedule;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const last = await schedule.lastTakenAt();
      // A time in the future is that of a clock that was wrong.
      const sinceMs = last === null ? intervalMs : Math.max(0, Date.now() - last);
      if (sinceMs < intervalMs) await pause(intervalMs - sinceMs, signal);
      if (signal.aborted) return;
      await schedule.take();
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      const retryMs = Math.min(intervalMs, firstRetryMs * 2 ** failures);
      failures += 1;
      schedule.onFailure(error, retryMs);
      await pause(retryMs, signal);
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
