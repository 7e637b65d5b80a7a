/**
 * The values in files and in running commands, all of which a command's output can contain. The cost of masking them is
 * bounded when a value is registered, so that the output of every command can be masked after its end.
 */
import type { Secret } from '../core/secret.ts';
import { patternBytesOf } from '../masking/masking.ts';
import { ToolError } from './errors.ts';

/**
 * For all forms of all values: about fifty private keys. Masking them takes 100 MB and blocks the event loop for a
 * second.
 */
const MAX_PATTERN_BYTES = 2 * 1024 * 1024;

interface Entry {
  readonly value: Secret;
  readonly patternBytes: number;
  readonly uses: Set<symbol>;
  /** Observations during which the value was in use. */
  readonly observations: Set<symbol>;
}

/** Collects values from its start to `end`. */
export interface Observation {
  /** Each value that was in use at any time since the start, once. */
  values(): Secret[];
  end(): void;
}

export class OutstandingValues {
  readonly #entries = new Set<Entry>();
  readonly #observations = new Set<symbol>();

  /**
   * ORDER: call before the value can be read. Returns a function to call when it can no longer be read. `field` is
   * named in errors.
   * @throws ToolError when the value cannot be masked, alone or together with the others
   */
  register(value: Secret, field: string): () => void {
    const entry = this.#find(value) ?? this.#add(value, field);
    const use = Symbol('use');
    entry.uses.add(use);
    for (const observation of this.#observations) entry.observations.add(observation);
    return () => this.#remove(use);
  }

  observe(): Observation {
    const observation = Symbol('observation');
    this.#observations.add(observation);
    for (const { uses, observations } of this.#entries) if (uses.size > 0) observations.add(observation);
    return {
      values: () =>
        [...this.#entries].filter(({ observations }) => observations.has(observation)).map(({ value }) => value),
      end: () => {
        this.#observations.delete(observation);
        this.#remove(observation);
      },
    };
  }

  /** Equal values share an entry: their patterns are the same. */
  #find(value: Secret): Entry | undefined {
    const text = value.reveal();
    return [...this.#entries].find((entry) => entry.value.reveal() === text);
  }

  #add(value: Secret, field: string): Entry {
    const patternBytes = patternBytesOf(value);
    if (patternBytes === 0) {
      throw new ToolError('FAILED', `${field}: the value is too short to be masked in the output of commands`);
    }
    if (patternBytes > MAX_PATTERN_BYTES) {
      throw new ToolError('FAILED', `${field}: the value is too large to be masked in the output of commands`);
    }
    const others = [...this.#entries].reduce((sum, entry) => sum + entry.patternBytes, 0);
    if (others + patternBytes > MAX_PATTERN_BYTES) {
      throw new ToolError(
        'BUSY',
        `${field}: together with the values in use it is too large to be masked in the output of commands; remove a file with remove_file, or wait until running commands have ended`,
      );
    }
    const entry = { value, patternBytes, uses: new Set<symbol>(), observations: new Set<symbol>() };
    this.#entries.add(entry);
    return entry;
  }

  #remove(holder: symbol): void {
    for (const entry of this.#entries) {
      entry.uses.delete(holder);
      entry.observations.delete(holder);
      if (entry.uses.size + entry.observations.size === 0) this.#entries.delete(entry);
    }
  }
}
