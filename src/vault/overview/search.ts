/** Searches the names of credentials, agents, policies and operators. */

import { authorize, type Context } from '../../core/operation.ts';
import {
  FIRST_CREDENTIAL,
  listCredentials,
  searchCredentials as searchStoredPaths,
} from '../../store/credential-lists.ts';
import type { Store } from '../../store/port.ts';
import type { ResultOf } from '../../store/statement.ts';
import { yieldToEventLoop } from '../paging.ts';
import type { Vault } from '../vault.ts';
import type { FoundName, SearchResults } from './overview.ts';

const SEARCH_TIMEOUT_MS = 250;
const MAX_MATCHES = 1000;

/** Equal names first, then those that begin with the text, then the others; each by name. */
export async function search(
  vault: Vault,
  context: Context,
  text: string,
  limit: number,
  signal: AbortSignal,
): Promise<SearchResults> {
  await vault.ledger.read(authorize(context, 'service.read'));
  const wanted = text.toLowerCase();
  const named = searchNames(vault, wanted);
  const reader = vault.scanTurns.readerOf(context, signal);
  const stored = await reader.inTurn(() => searchCredentials(vault, text, limit, signal));
  const ranked = [...named.found, ...stored.found]
    .map((found) => ({ found, rank: rankOf(found.name.toLowerCase(), wanted) }))
    .sort((a, b) => a.rank - b.rank || compare(a.found.name, b.found.name));
  const isComplete = named.isComplete && stored.isComplete;
  return { isComplete, results: ranked.slice(0, limit).map(({ found }) => found) };
}

const compare = (a: string, b: string): number => Number(a > b) - Number(a < b);

function rankOf(name: string, wanted: string): number {
  if (name === wanted) return 0;
  return name.startsWith(wanted) ? 1 : 2;
}

interface Matches {
  readonly found: readonly FoundName[];
  readonly isComplete: boolean;
}

/** Searches the names that the node has in memory. */
function searchNames({ ledger }: Vault, wanted: string): Matches {
  const { control } = ledger.memory;
  const found: FoundName[] = [];
  let isComplete = true;
  const add = (
    kind: FoundName['kind'],
    rows: readonly { readonly name: string; readonly description: string }[],
  ): void => {
    const matching = rows.filter(({ name }) => name.toLowerCase().includes(wanted));
    isComplete &&= matching.length <= MAX_MATCHES;
    for (const { name, description } of matching.slice(0, MAX_MATCHES)) found.push({ kind, name, description });
  };
  add('agent', control.agents());
  add(
    'policy',
    control.policies.all().map(({ name, principal }) => ({ name, description: principal })),
  );
  add('operator', control.operators());
  return { found, isComplete };
}

/**
 * WHY first those that begin with the text, by the index: the search for parts of paths stops before it has seen all.
 * The index tells upper from lower case, so it finds the text as typed, and in lower case.
 */
async function searchCredentials({ store }: Vault, text: string, limit: number, signal: AbortSignal): Promise<Matches> {
  const byPath = new Map<string, FoundName>();
  for (const beginning of new Set([text, text.toLowerCase()])) {
    for (const found of await readBeginning(store, beginning, limit, signal)) byPath.set(found.name, found);
  }
  const { found, isComplete } = await searchPaths(store, text.toLowerCase(), signal);
  for (const each of found) byPath.set(each.name, each);
  return { found: [...byPath.values()], isComplete };
}

async function readBeginning(
  store: Store,
  beginning: string,
  limit: number,
  signal: AbortSignal,
): Promise<readonly FoundName[]> {
  if (!/^[!-~]+$/.test(beginning)) return []; // No path has another character.
  await yieldToEventLoop(signal);
  const query = { ranges: [{ from: beginning, to: `${beginning}\u007f` }], type: null };
  const { rows } = await store.run(listCredentials(store.dialect, query, FIRST_CREDENTIAL, limit));
  return rows.map(toFound);
}

const toFound = ({ path, description }: { readonly path: string; readonly description: string }): FoundName => ({
  kind: 'credential',
  name: path,
  description,
});

/** Parts of paths, in order, until the time is up or there are enough. */
async function searchPaths(store: Store, wanted: string, signal: AbortSignal): Promise<Matches> {
  const endsAt = performance.now() + SEARCH_TIMEOUT_MS;
  const found: FoundName[] = [];
  // No path has U+0000, and PostgreSQL cannot receive it.
  let from: string | null = wanted.includes('\0') ? null : '';
  while (from !== null && found.length < MAX_MATCHES && performance.now() < endsAt) {
    await yieldToEventLoop(signal);
    const step: ResultOf<typeof searchStoredPaths> = await store.run(searchStoredPaths(store.dialect, wanted, from));
    found.push(...step.rows.map(toFound));
    from = step.next;
  }
  return { found, isComplete: from === null };
}
