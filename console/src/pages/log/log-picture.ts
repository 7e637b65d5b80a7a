/** Where things are in the picture of the log: blocks of entries, the tree over them, and positions in proportion. */

export const WIDTH = 640;
const MAX_LEVELS = 4;

export interface Block {
  /** The numbers of its entries, both inclusive. */
  readonly first: number;
  readonly last: number;
  readonly x: number;
  readonly width: number;
  readonly state: 'intact' | 'broken' | 'unproven';
}

export interface LogPicture {
  /** Entries of the log, with those that are missing at its end. */
  readonly length: number;
  /** Levels of the tree above the blocks. */
  readonly levels: number;
  readonly blocks: readonly Block[];
  /** The index of the block with the break; null if none. */
  readonly broken: number | null;
}

/** The middle of an entry, from left to right. */
export const positionOf = (seq: number, length: number): number => ((seq - 0.5) / Math.max(1, length)) * WIDTH;

/** A power of two of blocks, at most one for each entry, so that the tree over them is complete. */
export function drawLog(length: number, breakAt: number | null): LogPicture {
  const levels = Math.min(MAX_LEVELS, Math.floor(Math.log2(Math.max(1, length))));
  const count = 2 ** levels;
  const edge = (index: number): number => Math.floor((index * length) / count);
  const blocks = Array.from({ length: count }, (_, index): Block => {
    const [first, last] = [edge(index) + 1, edge(index + 1)];
    const x = (edge(index) / Math.max(1, length)) * WIDTH;
    const width = ((last - first + 1) / Math.max(1, length)) * WIDTH;
    const state = breakAt === null || last < breakAt ? 'intact' : first > breakAt ? 'unproven' : 'broken';
    return { first, last, x, width, state };
  });
  const found = blocks.findIndex(({ state }) => state === 'broken');
  return { length, levels, blocks, broken: found === -1 ? null : found };
}
