/** When a call is tried again, and after how long: never where it could be done twice, and each time at another moment. */
import { LeaseholdError } from './errors.ts';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
const LONGEST_ASKED_MS = 60_000;

/** Faults of the moment: nothing says that the same request would fail again. */
const PASSING: ReadonlySet<string> = new Set([
  'UNREACHABLE',
  'TIMED_OUT',
  'RATE_LIMITED',
  'UNAVAILABLE',
  'VAULT_LOCKED',
]);

export function isTransient(error: unknown): error is LeaseholdError {
  return error instanceof LeaseholdError && PASSING.has(error.code);
}

/** Whether the request may have been done although it was answered with a fault, or not at all. */
export function mayHaveSucceeded({ code }: LeaseholdError): boolean {
  return code === 'UNREACHABLE' || code === 'TIMED_OUT' || code === 'UNAVAILABLE';
}

/**
 * After the try with this number (from 1): a pause that doubles, between half and the whole of it by chance, and never less than the
 * service asked for. Null where it is not worth trying again, or to be asked again later than anybody would wait.
 */
export function backoffMs(tried: number, error: LeaseholdError, chance = Math.random()): number | null {
  const askedMs = (error.retryAfterSeconds ?? 0) * 1000;
  if (!isTransient(error) || askedMs > LONGEST_ASKED_MS) return null;
  const doubling = Math.min(FIRST_PAUSE_MS * 2 ** (tried - 1), LONGEST_PAUSE_MS);
  return askedMs + doubling * (0.5 + chance / 2);
}

/** @throws the signal's reason where it is aborted first */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    signal.addEventListener('abort', stop, { once: true });
  });
}
