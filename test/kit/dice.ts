/** Seeded random choices. A seed repeats the choices, but not the interleaving of the work that they start. */
import { randomInt } from 'node:crypto';

/** A test prints its seed, and `SEED=n` repeats it. */
export function newSeed(byDefault = randomInt(2 ** 31)): number {
  const { SEED } = process.env;
  return SEED === undefined ? byDefault : Number(SEED);
}

export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 ≤ number < 1. SOURCE: mulberry32, public domain. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, 0 ≤ number < `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined && items.length === 0) throw new Error('there is nothing to pick from');
    return item as T;
  }

  bytes(maxLength: number): Buffer {
    return Buffer.from(Array.from({ length: this.below(maxLength + 1) }, () => this.below(256)));
  }

  /** Text of the length, or shorter, that may be part of a header. */
  text(maxLength: number): string {
    return Array.from({ length: this.below(maxLength + 1) }, () => String.fromCharCode(0x20 + this.below(0x5f))).join(
      '',
    );
  }

  /** The bytes in pieces, divided anywhere. */
  split(bytes: Buffer): Buffer[] {
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const end = this.chance(0.7) ? bytes.length : at + 1 + this.below(bytes.length - at);
      pieces.push(bytes.subarray(at, end));
      at = end;
    }
    return pieces;
  }

  /** Another one, so that clients side by side do not change each other's choices. */
  fork(): Dice {
    return new Dice(this.below(2 ** 32));
  }
}
