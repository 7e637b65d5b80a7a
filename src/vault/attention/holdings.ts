/** Leases that end soon, and credentials that no caller needs. */

import type { AttentionItem } from '../../core/attention.ts';
import type { CountedCredential } from '../../core/credential.ts';
import { ALL_PATHS } from '../../core/pattern.ts';
import { listCredentials } from '../../store/credential-lists.ts';
import { FIRST_EXPOSURE, listExposures } from '../../store/exposures.ts';
import { readLeaseSigns } from '../../store/lease-lists.ts';
import { type CredentialCursor, FIRST_CREDENTIAL, NEWEST_LEASE } from '../../store/queries.ts';
import type { ResultOf } from '../../store/statement.ts';
import { Slice, STEP_ROWS, yieldToEventLoop } from '../paging.ts';
import { type AttentionPart, type AttentionVault, MAX_ITEMS, startTimer } from './part.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const ENDS_WITHIN_MS = 5 * MINUTE_MS;
/** A shorter lease ends as intended; a longer one belongs to work that may still go on. */
const LONG_LEASE_MS = 15 * MINUTE_MS;
const UNUSED_DAYS = 30;

export async function examineHoldings(vault: AttentionVault): Promise<AttentionPart> {
  const { ending, usedIds, isComplete: hasSeenLeases } = await examineLeases(vault);
  const unused = await findUnused(vault, usedIds, hasSeenLeases);
  return { items: [...ending, ...unused.items], isComplete: hasSeenLeases && unused.isComplete };
}

async function examineLeases({ store, clock }: AttentionVault) {
  const timer = startTimer();
  const now = clock.now();
  const query = { now, endsBy: now + ENDS_WITHIN_MS, minimumMs: LONG_LEASE_MS };
  const byHolder = new Map<string, { agentName: string; path: string; count: number; firstEndAt: number }>();
  const usedIds = new Set<string>();
  let before: number | null = NEWEST_LEASE;
  while (before !== null && !timer.isUp()) {
    await yieldToEventLoop();
    const step: ResultOf<typeof readLeaseSigns> = await store.run(readLeaseSigns(store.dialect, query, before));
    for (const row of step.ending) {
      const key = `${row.agentName} ${row.path}`;
      const known = byHolder.get(key);
      if (known === undefined) byHolder.set(key, { ...row });
      else {
        known.count += row.count;
        known.firstEndAt = Math.min(known.firstEndAt, row.firstEndAt);
      }
    }
    for (const id of step.usedCredentials) usedIds.add(id);
    before = step.next;
  }
  const ending = [...byHolder.values()]
    .sort((a, b) => a.firstEndAt - b.firstEndAt)
    .slice(0, MAX_ITEMS)
    .map(({ agentName, path, count, firstEndAt }): AttentionItem => {
      const what = count === 1 ? `A lease of ${agentName} ends` : `${count} leases of ${agentName} end`;
      const text = `${what} in ${minutes(firstEndAt - now)}. Renew it if the work goes on, or let it end.`;
      return { kind: 'lease_expiring', subject: path, text, count, since: null };
    });
  return { ending, usedIds, isComplete: before === null };
}

const minutes = (ms: number): string => (ms < MINUTE_MS ? 'less than a minute' : count(Math.round(ms / MINUTE_MS)));
const count = (number: number): string => (number === 1 ? 'a minute' : `${number} minutes`);

/** Nothing is called unused if some leases were not examined. */
async function findUnused({ store, clock }: AttentionVault, usedIds: ReadonlySet<string>, hasSeenLeases: boolean) {
  const items: AttentionItem[] = [];
  const [timer, slice] = [startTimer(), new Slice()];
  const now = clock.now();
  const createdBy = now - UNUSED_DAYS * DAY_MS;
  const isCandidate = ({ createdAt, accessCount, id }: CountedCredential): boolean =>
    createdAt <= createdBy && accessCount === 0 && !usedIds.has(id);
  let from: CredentialCursor | null = hasSeenLeases ? FIRST_CREDENTIAL : null;
  while (from !== null && items.length < MAX_ITEMS && !timer.isUp()) {
    await yieldToEventLoop();
    const query = { ranges: ALL_PATHS, type: null };
    const step: ResultOf<typeof listCredentials> = await store.run(
      listCredentials(store.dialect, query, from, STEP_ROWS),
    );
    for (const credential of step.rows.filter(isCandidate)) {
      await slice.pause();
      if (items.length >= MAX_ITEMS || timer.isUp()) break;
      if (await wasUsed(store, credential)) continue;
      const days = Math.floor((now - credential.createdAt) / DAY_MS);
      const text = `Stored ${days} days ago and never retrieved or used. Delete it if no agent needs it.`;
      items.push({
        kind: 'credential_unused',
        subject: credential.path,
        text,
        count: null,
        since: credential.createdAt,
      });
    }
    from = step.next;
  }
  return { items, isComplete: hasSeenLeases && from === null };
}

/** Whether the stored exposures have a use; those of leases were examined. */
async function wasUsed(store: AttentionVault['store'], { path, id }: CountedCredential): Promise<boolean> {
  const { rows } = await store.run(listExposures({ path, agentName: null }, FIRST_EXPOSURE, STEP_ROWS));
  return rows.some(({ credentialId }) => credentialId === id);
}
