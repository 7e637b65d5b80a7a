/** When facets that do not count every entry are read again. */
import type { AuditFacets } from '../../../../src/client/types.ts';

const FIRST_MS = 1000;
const MAX_MS = 60_000;

/** The facets, and after how many milliseconds to read them again; false if they are complete. */
export interface ReadFacets extends AuditFacets {
  readonly againMs: number | false;
}

/** Waits twice as long each time that no more entries are counted: some filters are never counted within the limit. */
export function withInterval(facets: AuditFacets, before: ReadFacets | undefined): ReadFacets {
  if (facets.complete) return { ...facets, againMs: false };
  const hasGrown = before === undefined || before.againMs === false || facets.counted > before.counted;
  return { ...facets, againMs: hasGrown ? FIRST_MS : Math.min(MAX_MS, 2 * Number(before.againMs)) };
}
