/** Advisories for operators: repeated denials, leases that end soon, and credentials that were never used. */

import { type ActorName, actorResource } from '../../core/names.ts';
import { authorize, type Context } from '../../core/operation.ts';
import { SingleFlight } from '../../ledger/single-flight.ts';
import {
  countDenials,
  type DeniedAccess,
  type EndingLeases,
  type LeaseSigns,
  listUnexposed,
  readLeaseSigns,
  type UnexposedCredential,
} from '../../store/advisory-reads.ts';
import { findSeqAt, readHead } from '../../store/audit-log.ts';
import { NEWEST_LEASE } from '../../store/lease-lists.ts';
import type { ListStep } from '../../store/statement.ts';
import { yieldToEventLoop } from '../paging.ts';
import type { Vault } from '../vault.ts';
import type { Advisory } from './overview.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const ENDS_WITHIN_MS = 5 * MINUTE_MS;
/** A shorter lease ends as intended; a longer one belongs to work that may still continue. */
const LONG_LEASE_MS = 15 * MINUTE_MS;
const UNUSED_DAYS = 30;
const MIN_DENIALS = 5;
const MAX_ITEMS = 20;

type AdvisoryParts = Pick<Vault, 'store' | 'clock'>;

export async function readAdvisories(
  { ledger, advisories }: Vault,
  context: Context,
  signal: AbortSignal,
): Promise<readonly Advisory[]> {
  await ledger.read(authorize(context, 'service.read'));
  return advisories.read(signal);
}

/**
 * A search of more steps is not repeated for `REST_FACTOR` times as long as it took. WHY steps: a short search can take
 * long on a busy machine, and its result must be current.
 */
const SHORT_STEPS = 10;
const REST_FACTOR = 20;

/** Counts the steps of a search, and lets other work in between. */
class Steps {
  readonly #signal: AbortSignal;
  count = 0;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  async next(): Promise<void> {
    this.count += 1;
    await yieldToEventLoop(this.#signal);
  }
}

/** The advisories of a vault. One search runs at a time, for all callers, and ends when the last of them has left. */
export class Advisories {
  readonly #searches: SingleFlight<readonly Advisory[]>;
  readonly #timer: Pick<Performance, 'now'>;
  #latest: readonly Advisory[] | null = null;
  #validUntil = 0;

  constructor(vault: AdvisoryParts, timer: Pick<Performance, 'now'> = performance) {
    this.#timer = timer;
    this.#searches = new SingleFlight((signal) => this.#find(vault, signal));
  }

  /** @throws the signal's reason if it aborts first; StoreError */
  async read(signal: AbortSignal): Promise<readonly Advisory[]> {
    if (this.#latest !== null && this.#timer.now() < this.#validUntil) return this.#latest;
    return this.#searches.run(signal);
  }

  async #find(vault: AdvisoryParts, signal: AbortSignal): Promise<readonly Advisory[]> {
    const startedAt = this.#timer.now();
    const steps = new Steps(signal);
    const denied = await findDenied(vault, steps);
    const { ending, heldIds } = await readLeases(vault, steps);
    this.#latest = [...denied, ...ending, ...(await findUnused(vault, heldIds, steps))];
    const now = this.#timer.now();
    this.#validUntil = steps.count <= SHORT_STEPS ? 0 : now + REST_FACTOR * (now - startedAt);
    return this.#latest;
  }
}

async function findDenied({ store, clock }: AdvisoryParts, steps: Steps): Promise<Advisory[]> {
  const { last } = await store.run(readHead());
  const from = await store.run(findSeqAt(new Date(Math.max(0, clock.now() - HOUR_MS)).toISOString()));
  const counts = new Map<string, DeniedAccess>();
  let place = from === null ? null : (last?.seq ?? null);
  while (from !== null && place !== null) {
    await steps.next();
    const step: ListStep<DeniedAccess, number> = await store.run(countDenials(store.dialect, from, place));
    for (const row of step.rows) {
      const key = JSON.stringify([row.agentName, row.resource]);
      counts.set(key, { ...row, count: row.count + (counts.get(key)?.count ?? 0) });
    }
    place = step.next;
  }
  return [...counts.values()]
    .filter(({ count }) => count >= MIN_DENIALS)
    .sort((a, b) => b.count - a.count)
    .slice(0, MAX_ITEMS)
    .map(({ agentName, resource, count, firstAt }) => {
      const since = Date.parse(firstAt);
      const text = `${agentName} was denied ${resource} ${count} times in the last hour. Grant it with a policy, or stop the agent from asking.`;
      const subject = actorResource(agentName as ActorName);
      return { kind: 'denied_repeatedly', subject, text, count, since: Number.isNaN(since) ? null : since };
    });
}

async function readLeases({ store, clock }: AdvisoryParts, steps: Steps) {
  const now = clock.now();
  const query = { now, endsBy: now + ENDS_WITHIN_MS, minimumMs: LONG_LEASE_MS };
  const byHolder = new Map<string, EndingLeases>();
  const heldIds = new Set<string>();
  for (let before: number | null = NEWEST_LEASE; before !== null; ) {
    await steps.next();
    const step: LeaseSigns = await store.run(readLeaseSigns(store.dialect, query, before));
    for (const row of step.ending) {
      const key = `${row.agentName} ${row.path}`;
      const { count = 0, firstEndAt = row.firstEndAt } = byHolder.get(key) ?? {};
      byHolder.set(key, { ...row, count: row.count + count, firstEndAt: Math.min(row.firstEndAt, firstEndAt) });
    }
    for (const id of step.credentialIds) heldIds.add(id);
    before = step.next;
  }
  const ending = [...byHolder.values()]
    .sort((a, b) => a.firstEndAt - b.firstEndAt)
    .slice(0, MAX_ITEMS)
    .map(({ agentName, path, count, firstEndAt }): Advisory => {
      const what = count === 1 ? `A lease of ${agentName} ends` : `${count} leases of ${agentName} end`;
      const text = `${what} in ${minutes(firstEndAt - now)}. Renew it if the work continues, or let it end.`;
      return { kind: 'lease_expiring', subject: path, text, count, since: null };
    });
  return { ending, heldIds };
}

function minutes(ms: number): string {
  if (ms < MINUTE_MS) return 'less than a minute';
  const rounded = Math.round(ms / MINUTE_MS);
  return rounded === 1 ? 'a minute' : `${rounded} minutes`;
}

/** A retrieval or a use leaves a lease, which later becomes a stored exposure. */
async function findUnused(
  { store, clock }: AdvisoryParts,
  heldIds: ReadonlySet<string>,
  steps: Steps,
): Promise<Advisory[]> {
  const now = clock.now();
  const found: UnexposedCredential[] = [];
  for (let after: string | null = ''; after !== null && found.length < MAX_ITEMS; ) {
    await steps.next();
    const step: ListStep<UnexposedCredential, string> = await store.run(
      listUnexposed(store.dialect, now - UNUSED_DAYS * DAY_MS, after),
    );
    found.push(...step.rows.filter(({ id }) => !heldIds.has(id)));
    after = step.next;
  }
  return found.slice(0, MAX_ITEMS).map(({ path, createdAt }) => {
    const days = Math.floor((now - createdAt) / DAY_MS);
    const text = `Stored ${days} days ago and never retrieved or used. Delete it if no agent needs it.`;
    return { kind: 'credential_unused', subject: path, text, count: null, since: createdAt };
  });
}
