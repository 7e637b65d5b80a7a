/** When facets that do not count every entry are read again. */
import type { AuditFacets } from '../../../../src/client/types.ts';

const FIRST_MS = 1000;
const MAX_MS = 60_000;

/** The facets, and after how many milliseconds to read them again; false if they are complete. */
export interface ReadFacets extends AuditFacets {
  readonly againMs: number | false;
  /** Of all reads of this filter. */
  readonly mostCounted: number;
}

/** New entries of a log that is not counted completely are no reason to read again soon. */
const GROWTH = 1.1;

/** Waits twice as long each time that not many more are counted: some filters are never counted within the limit. */
export function withInterval(facets: AuditFacets, before: ReadFacets | undefined): ReadFacets {
  const mostCounted = Math.max(facets.counted, before?.mostCounted ?? 0);
  if (facets.complete) return { ...facets, againMs: false, mostCounted };
  const hasGrown = before === undefined || before.againMs === false || facets.counted > GROWTH * before.mostCounted;
  return { ...facets, againMs: hasGrown ? FIRST_MS : Math.min(MAX_MS, 2 * Number(before.againMs)), mostCounted };
}
