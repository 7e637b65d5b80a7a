// Where one chain's limit lies: turns go one after the other, so that what a turn takes for itself and for each entry is all of it.

/** A turn of that many entries took that long, in milliseconds, from one commit to the next. */
export interface TurnTime {
  readonly entries: number;
  readonly ms: number;
}

export interface ChainCost {
  /** Of a turn, whatever is in it: round trips, the head, the sync. In milliseconds. */
  readonly turnMs: number;
  /** Of each entry, in milliseconds. */
  readonly entryMs: number;
}

/** The straight line that lies nearest to the turns. SOURCE: least squares. */
export function fitCost(turns: readonly TurnTime[]): ChainCost {
  const count = turns.length;
  const meanEntries = turns.reduce((sum, { entries }) => sum + entries, 0) / count;
  const meanMs = turns.reduce((sum, { ms }) => sum + ms, 0) / count;
  const spread = turns.reduce((sum, { entries }) => sum + (entries - meanEntries) ** 2, 0);
  const slope = turns.reduce((sum, { entries, ms }) => sum + (entries - meanEntries) * (ms - meanMs), 0) / spread;
  return { turnMs: Math.max(0, meanMs - slope * meanEntries), entryMs: slope };
}

/** Entries a second where each turn has so many. */
export function entriesPerSecond({ turnMs, entryMs }: ChainCost, entriesInTurn: number): number {
  return (entriesInTurn * 1000) / (turnMs + entriesInTurn * entryMs);
}
