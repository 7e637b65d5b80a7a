/**
 * The values that are out of this server's hands: in files and in commands that run, all of which the output of a command could show.
 * What it takes to mask them is bounded when a value is lent, so that no command runs whose output could not be masked after its end.
 */
import type { Secret } from '../core/secret.ts';
import { patternBytesOf } from '../masking/masking.ts';
import { ToolError } from './errors.ts';

/** Of all forms of all values: some fifty private keys. A masking of them takes 100 MB and a second, while nothing else goes on. */
const MOST_PATTERN_BYTES = 2 * 1024 * 1024;

interface Entry {
  readonly value: Secret;
  readonly patternBytes: number;
  readonly loans: Set<symbol>;
  /** Those that have seen a loan of it. */
  readonly watches: Set<symbol>;
}

/** Collects from its beginning to its end. */
export interface Observation {
  /** Each that was lent at any time since the beginning, once. */
  values(): Secret[];
  end(): void;
}

export class OutstandingValues {
  readonly #entries = new Set<Entry>();
  readonly #watches = new Set<symbol>();

  /**
   * ORDER: before anybody can read the value. Answers what ends the loan, when nobody can any more. `field` is what the refusal is about.
   * @throws Refusal where the value can't be masked, or not together with the others
   */
  register(value: Secret, field: string): () => void {
    const entry = this.#find(value) ?? this.#add(value, field);
    const loan = Symbol('loan');
    entry.loans.add(loan);
    for (const watch of this.#watches) entry.watches.add(watch);
    return () => this.#letGo(loan);
  }

  watch(): Observation {
    const watch = Symbol('watch');
    this.#watches.add(watch);
    for (const { loans, watches } of this.#entries) if (loans.size > 0) watches.add(watch);
    return {
      values: () => [...this.#entries].filter(({ watches }) => watches.has(watch)).map(({ value }) => value),
      end: () => {
        this.#watches.delete(watch);
        this.#letGo(watch);
      },
    };
  }

  /** Equal ones are one: their patterns are the same. */
  #find(value: Secret): Entry | undefined {
    const text = value.reveal();
    return [...this.#entries].find((entry) => entry.value.reveal() === text);
  }

  #add(value: Secret, field: string): Entry {
    const patternBytes = patternBytesOf(value);
    if (patternBytes === 0) {
      throw new ToolError('FAILED', `${field}: the value is too short to be masked in the output of commands`);
    }
    if (patternBytes > MOST_PATTERN_BYTES) {
      throw new ToolError('FAILED', `${field}: the value is too large to be masked in the output of commands`);
    }
    const others = [...this.#entries].reduce((sum, entry) => sum + entry.patternBytes, 0);
    if (others + patternBytes > MOST_PATTERN_BYTES) {
      throw new ToolError(
        'BUSY',
        `${field}: together with what is lent already it is too much to be masked in the output of commands; remove a file with remove_file, or wait until the commands that run have ended`,
      );
    }
    const entry = { value, patternBytes, loans: new Set<symbol>(), watches: new Set<symbol>() };
    this.#entries.add(entry);
    return entry;
  }

  #letGo(holder: symbol): void {
    for (const entry of this.#entries) {
      entry.loans.delete(holder);
      entry.watches.delete(holder);
      if (entry.loans.size + entry.watches.size === 0) this.#entries.delete(entry);
    }
  }
}
