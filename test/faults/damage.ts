/** Random damage to one file of a vault: flipped bits, and pages that are lost, torn, swapped or overwritten. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Dice } from '../kit/dice.ts';

const PAGE_BYTES = 8192;
const SECTOR_BYTES = 512;

type Damager = (bytes: Buffer, dice: Dice) => Buffer;

const DAMAGERS: Readonly<Record<string, Damager>> = {
  'one bit flipped': (bytes, dice) => flip(bytes, dice),
  'several bits flipped': (bytes, dice) => {
    for (let flips = 2 + dice.below(30); flips > 0; flips--) flip(bytes, dice);
    return bytes;
  },
  'a page overwritten': (bytes, dice) => overPage(bytes, PAGE_BYTES, dice, () => dice.below(256)),
  'a page zeroed': (bytes, dice) => overPage(bytes, PAGE_BYTES, dice, () => 0),
  'a sector overwritten': (bytes, dice) => overPage(bytes, SECTOR_BYTES, dice, () => dice.below(256)),
  'a sector zeroed': (bytes, dice) => overPage(bytes, SECTOR_BYTES, dice, () => 0),
  'two pages swapped': (bytes, dice) => copyPages(bytes, dice, true),
  'a page written to the wrong place': (bytes, dice) => copyPages(bytes, dice, false),
  'a range zeroed': (bytes, dice) => {
    const start = dice.below(bytes.length + 1);
    return bytes.fill(0, start, start + dice.below(bytes.length - start + 1));
  },
  truncated: (bytes, dice) => bytes.subarray(0, dice.below(bytes.length + 1)),
  'truncated to whole pages': (bytes, dice) =>
    bytes.subarray(0, PAGE_BYTES * dice.below(Math.ceil(bytes.length / PAGE_BYTES))),
  'bytes appended': (bytes, dice) =>
    Buffer.concat([bytes, Buffer.from(Array.from({ length: 1 + dice.below(2 * PAGE_BYTES) }, () => dice.below(256)))]),
};

function flip(bytes: Buffer, dice: Dice): Buffer {
  const at = dice.below(bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << dice.below(8));
  return bytes;
}

function overPage(bytes: Buffer, size: number, dice: Dice, next: () => number): Buffer {
  const start = size * dice.below(Math.ceil(bytes.length / size));
  for (let at = start; at < Math.min(bytes.length, start + size); at++) bytes[at] = next();
  return bytes;
}

function copyPages(bytes: Buffer, dice: Dice, isSwap: boolean): Buffer {
  const pages = Math.max(1, Math.floor(bytes.length / PAGE_BYTES));
  const [from, to] = [PAGE_BYTES * dice.below(pages), PAGE_BYTES * dice.below(pages)];
  const overwritten = Buffer.from(bytes.subarray(to, to + PAGE_BYTES));
  bytes.copy(bytes, to, from, from + PAGE_BYTES);
  if (isSwap) overwritten.copy(bytes, from);
  return bytes;
}

/** Damages one file of the data directory, most often the database or its write-ahead log. Returns what it did. */
export function damage(dataDir: string, dice: Dice): string {
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dataDir, join(entry.parentPath, entry.name)))
    .filter((name) => !name.endsWith('-shm'))
    .sort();
  const often = ['leasehold.db', 'leasehold.db', 'leasehold.db-wal', 'rollback.marker'].filter((name) =>
    files.includes(name),
  );
  const name = dice.chance(0.85) ? dice.pick(often) : dice.pick(files);
  const [what, damager] = dice.pick(Object.entries(DAMAGERS));
  const bytes = readFileSync(join(dataDir, name));
  if (bytes.length === 0) return `${name}: empty, unchanged`;
  writeFileSync(join(dataDir, name), damager(bytes, dice));
  return `${name}: ${what}`;
}
