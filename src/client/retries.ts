/** Decides which failures are retried, and computes the delay. */
import { LeaseholdError } from './errors.ts';

const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 10_000;
const MAX_RETRY_AFTER_MS = 60_000;

/** Errors after which the same request may succeed. */
const TRANSIENT: ReadonlySet<string> = new Set([
  'UNREACHABLE',
  'TIMED_OUT',
  'RATE_LIMITED',
  'UNAVAILABLE',
  'VAULT_LOCKED',
  'APPROVAL_PENDING',
]);

export function isTransient(error: unknown): error is LeaseholdError {
  return error instanceof LeaseholdError && TRANSIENT.has(error.code);
}

/** Whether the request may have taken effect despite the error. */
export function mayHaveSucceeded({ code }: LeaseholdError): boolean {
  return code === 'UNREACHABLE' || code === 'TIMED_OUT' || code === 'UNAVAILABLE';
}

/**
 * Delay after try number `attempt` (from 1): exponential with jitter, added to the server's Retry-After. Null if the
 * error is not transient, or if Retry-After exceeds a minute.
 */
export function backoffMs(attempt: number, error: LeaseholdError, random = Math.random()): number | null {
  const retryAfterMs = (error.retryAfterSeconds ?? 0) * 1000;
  if (!isTransient(error) || retryAfterMs > MAX_RETRY_AFTER_MS) return null;
  const exponential = Math.min(MIN_BACKOFF_MS * 2 ** (attempt - 1), MAX_BACKOFF_MS);
  return retryAfterMs + exponential * (0.5 + random / 2);
}

/** @throws the signal's reason if it is aborted first */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await abortable(over, signal).finally(() => clearTimeout(timer));
}

/** Settles as the promise does, or rejects with the signal's reason if it is aborted first. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
