/**
 * Keeps use leases active while their program runs. WHY these and not others: a program that got a value keeps it, but
 * one that got a token needs the lease. The service decides each renewal again, by the current policies.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { LeaseholdError } from '../client/errors.ts';
import type { UseLeaseClient } from './use-leases.ts';

/** WHY bounded below: leases of a second must not fill the log. Above: of what a timer can wait for. */
const MIN_INTERVAL_MS = 250;
const MAX_INTERVAL_MS = 12 * 3600 * 1000;
const READ_RETRY_MS = 1000;
const MAX_READS = 60;
/** Errors after which a renewal is tried again, while the lease lasts. */
const TRANSIENT: ReadonlySet<string> = new Set(['UNREACHABLE', 'UNAVAILABLE', 'RATE_LIMITED', 'VAULT_LOCKED']);

interface Held {
  readonly leaseId: string;
  readonly path: string;
}

/** Renews the leases until the signal is aborted, and says which could not be renewed. Never rejects. */
export async function keepRenewed(
  client: Pick<UseLeaseClient, 'read' | 'renew'>,
  held: readonly Held[],
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<void> {
  const ends = held.map(async ({ leaseId, path }): Promise<void> => {
    try {
      await renewOne(client, leaseId, signal);
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof LeaseholdError ? error.message : 'the service did not answer';
      say(`${path}: the use lease was not renewed: ${reason}`);
    }
  });
  await Promise.all(ends);
}

/** Rejects when the lease cannot be renewed, or the signal is aborted. */
async function renewOne(
  client: Pick<UseLeaseClient, 'read' | 'renew'>,
  leaseId: string,
  signal: AbortSignal,
): Promise<never> {
  const startedAt = performance.now();
  let { issued_at, expires_at } = await readTimes(client, leaseId, signal);
  // This machine's clock may differ from the service's, so only the time that has passed is measured here.
  const remaining = (): number => Date.parse(expires_at) - Date.parse(issued_at) - (performance.now() - startedAt);
  for (;;) {
    const half = remaining() / 2;
    await sleep(Math.min(Math.max(half, MIN_INTERVAL_MS), MAX_INTERVAL_MS), undefined, { signal });
    try {
      ({ expires_at } = await client.renew(leaseId, { signal }));
    } catch (error) {
      if (!isTransient(error) || remaining() <= 0) throw error;
    }
  }
}

/** Tries for a minute. */
async function readTimes(client: Pick<UseLeaseClient, 'read'>, leaseId: string, signal: AbortSignal) {
  for (let tries = 1; ; tries++) {
    try {
      return await client.read(leaseId, { signal });
    } catch (error) {
      if (tries === MAX_READS || !isTransient(error)) throw error;
      await sleep(READ_RETRY_MS, undefined, { signal });
    }
  }
}

const isTransient = (error: unknown): boolean => error instanceof LeaseholdError && TRANSIENT.has(error.code);
