/** Merges what an operator changed in a form into what somebody else stored since the form was filled. */

type Fields = Readonly<Record<string, unknown>>;

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

function includes(list: readonly unknown[], item: unknown): boolean {
  return list.some((each) => isSame(each, item));
}

/** Theirs, without the items that I removed, and with those that I added. */
function mergeList(base: readonly unknown[], mine: readonly unknown[], theirs: readonly unknown[]): unknown[] {
  const kept = theirs.filter((item) => includes(mine, item) || !includes(base, item));
  const added = mine.filter((item) => !includes(base, item) && !includes(theirs, item));
  return [...kept, ...added];
}

function mergeField(base: unknown, mine: unknown, theirs: unknown): unknown {
  if (isSame(mine, base)) return theirs;
  const isList = Array.isArray(base) && Array.isArray(mine) && Array.isArray(theirs);
  return isList ? mergeList(base, mine, theirs) : mine;
}

/**
 * A field that only one side changed has that change. Of a list, the items that either side removed are removed, so
 * that a merge never restores what somebody took away. A single value that both sides changed is mine.
 */
export function mergeEdit<F extends object>(base: F, mine: F, theirs: F): F {
  const [before, changed] = [base as Fields, mine as Fields];
  const merged = Object.entries(theirs).map(([name, value]) => [name, mergeField(before[name], changed[name], value)]);
  return Object.fromEntries(merged) as F;
}
