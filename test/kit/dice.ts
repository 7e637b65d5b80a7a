/** Seeded random choices. A test prints its seed, and `SEED=n` repeats them. */
import { randomInt } from 'node:crypto';

export function newSeed(): number {
  const { SEED } = process.env;
  return SEED === undefined ? randomInt(2 ** 31) : Number(SEED);
}

export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** Returns an integer from 0 to `below - 1`. SOURCE: mulberry32. */
  int(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  }

  chance(probability: number): boolean {
    return this.int(1_000_000) < probability * 1_000_000;
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.int(choices.length)] ?? choices[0];
  }

  bytes(maxLength: number): Buffer {
    return Buffer.from(Array.from({ length: this.int(maxLength + 1) }, () => this.int(256)));
  }

  /** Text of the length, or shorter, that may be part of a header. */
  text(maxLength: number): string {
    return Array.from({ length: this.int(maxLength + 1) }, () => String.fromCharCode(0x20 + this.int(0x5f))).join('');
  }

  /** The bytes in pieces, cut anywhere. */
  split(bytes: Buffer): Buffer[] {
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const end = this.chance(0.7) ? bytes.length : at + 1 + this.int(bytes.length - at);
      pieces.push(bytes.subarray(at, end));
      at = end;
    }
    return pieces;
  }
}
