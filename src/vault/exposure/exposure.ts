/** Exposures of credentials: the stored ones and the leases since, read in steps after the decision. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type ActorName, actorResource, type CredentialId } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { ApiError } from '../../engine/errors.ts';
import {
  type ExposureFilter,
  FIRST_EXPOSURE,
  listExposures,
  listLeaseExposures,
  readExposureProgress,
  type StoredExposure,
} from '../../store/exposures.ts';
import { NEWEST_LEASE } from '../../store/lease-lists.ts';
import type { Store } from '../../store/port.ts';
import type { ResultOf } from '../../store/statement.ts';
import { STEP_ROWS, yieldToEventLoop } from '../paging.ts';
import type { Vault } from '../vault.ts';
import { readExposure } from './exposure-operations.ts';
import type { AgentExposure, VersionExposure } from './exposure-record.ts';

/** The time between two tries, if leases became part of the stored exposures during the first. */
const RETRY_MS = 100;

/** The exposure of each credential and version. @throws NOT_FOUND if no credential has or had the path */
export async function exposureOf(
  { ledger, store, scanTurns }: Vault,
  context: Context,
  path: CredentialPath,
  signal: AbortSignal,
): Promise<VersionExposure[]> {
  const { now, exists } = await ledger.read(readExposure(context, path, path));
  const read = () => readExposures(store, { path, agentName: null }, now, signal);
  const versions = await scanTurns.readerOf(context, signal).inTurn(read);
  if (versions.length === 0 && !exists) throw new ApiError('NOT_FOUND', 'The credential does not exist.');
  return versions;
}

/** The versions that the agent has seen and used, by path and version; empty for an unknown name. */
export async function exposureBy(
  { ledger, store, scanTurns }: Vault,
  context: Context,
  agentName: ActorName,
  signal: AbortSignal,
): Promise<VersionExposure[]> {
  const { now } = await ledger.read(readExposure(context, null, actorResource(agentName)));
  const read = () => readExposures(store, { path: null, agentName }, now, signal);
  return scanTurns.readerOf(context, signal).inTurn(read);
}

/**
 * Includes everything that was committed before the call. INVARIANT: while the progress does not change, a lease is
 * either counted among the stored exposures or still there; a read during a change is repeated.
 */
export async function readExposures(
  store: Store,
  filter: ExposureFilter,
  now: number,
  signal: AbortSignal,
): Promise<VersionExposure[]> {
  for (;;) {
    const through = await store.run(readExposureProgress());
    const found = new Exposures();
    await addStored(found, store, filter, signal);
    await addLeases(found, store, filter, { through, now, signal });
    if ((await store.run(readExposureProgress())) === through) return found.versions();
    await sleep(RETRY_MS);
  }
}

async function addStored(found: Exposures, store: Store, filter: ExposureFilter, signal: AbortSignal): Promise<void> {
  for (let after: typeof FIRST_EXPOSURE | null = FIRST_EXPOSURE; after !== null; ) {
    await yieldToEventLoop(signal);
    const { rows, next }: ResultOf<typeof listExposures> = await store.run(listExposures(filter, after, STEP_ROWS));
    for (const row of rows) found.add(row, row.kind === 'retrieve' ? 'retrieve' : 'use', false);
    after = next;
  }
}

async function addLeases(
  found: Exposures,
  store: Store,
  filter: ExposureFilter,
  { through, now, signal }: { readonly through: number; readonly now: number; readonly signal: AbortSignal },
): Promise<void> {
  for (let before: number | null = NEWEST_LEASE; before !== null; ) {
    await yieldToEventLoop(signal);
    const { rows, next }: ResultOf<typeof listLeaseExposures> = await store.run(
      listLeaseExposures(store.dialect, filter, through, now, before),
    );
    for (const row of rows) {
      if (!row.hasToken) found.add(row, row.kind === 'retrieve' ? 'retrieve' : 'use', row.isLive);
      else if (row.isLive) found.addToken(row);
    }
    before = next;
  }
}

type Sums = Map<ActorName, AgentExposure>;

class Exposures {
  readonly #versions = new Map<string, { readonly of: StoredExposure; readonly retrieve: Sums; readonly use: Sums }>();
  /** The agents with an active lease with a token, by credential. A token uses the newest version. */
  readonly #tokens = new Map<CredentialId, Set<ActorName>>();

  add(row: StoredExposure, kind: 'retrieve' | 'use', isLive: boolean): void {
    const { credentialId, version, agentName, firstAt, lastAt, times } = row;
    const key = `${credentialId} ${version}`;
    const entry = this.#versions.get(key) ?? { of: row, retrieve: new Map(), use: new Map() };
    this.#versions.set(key, entry);
    const sum = entry[kind].get(agentName) ?? { agentName, firstAt, lastAt, times: 0, isLive: false };
    entry[kind].set(agentName, {
      agentName,
      firstAt: Math.min(sum.firstAt, firstAt),
      lastAt: Math.max(sum.lastAt, lastAt),
      times: sum.times + times,
      isLive: sum.isLive || isLive,
    });
  }

  addToken({ credentialId, agentName }: StoredExposure): void {
    this.#tokens.set(credentialId, (this.#tokens.get(credentialId) ?? new Set()).add(agentName));
  }

  versions(): VersionExposure[] {
    const all = [...this.#versions.values()].map(({ of, retrieve, use }) => {
      const { path, credentialId, version, newestVersion } = of;
      const tokens = version === newestVersion ? this.#tokens.get(credentialId) : undefined;
      const usedBy = byName(use).map((each) => (tokens?.has(each.agentName) ? { ...each, isLive: true } : each));
      return { path, credentialId, version, newestVersion, seenBy: byName(retrieve), usedBy };
    });
    return all.sort(
      (a, b) => compare(a.path, b.path) || compare(a.credentialId, b.credentialId) || a.version - b.version,
    );
  }
}

const compare = (a: string, b: string): number => Number(a > b) - Number(a < b);
const byName = (sums: Sums): AgentExposure[] => [...sums.values()].sort((a, b) => compare(a.agentName, b.agentName));
