/** Finds credentials, agents, policies and operators by a part of their names. SOURCE: docs/api.md, "Overview". */
import type { SearchResults } from '../../../src/client/types.ts';
import { client } from '../session/console-client.ts';

type Found = SearchResults['results'][number];

const LIMIT = 20;
/** The page of each kind, and the parameter that selects the row. */
const PAGE_OF: Readonly<Record<Found['kind'], string>> = {
  credential: '/credentials?path=',
  agent: '/agents?agent=',
  policy: '/access?policy=',
  operator: '/settings?operator=',
};

export async function search(q: string, signal: AbortSignal): Promise<readonly (Found & { readonly href: string })[]> {
  const { results } = await client.overview.search({ q, limit: LIMIT }, { signal });
  return results.map((found) => ({ ...found, href: PAGE_OF[found.kind] + encodeURIComponent(found.name) }));
}
