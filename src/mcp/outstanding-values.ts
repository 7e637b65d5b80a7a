/**
 * The values in files and in running commands, all of which the output of a command or an upstream can contain. The
 * cost of masking them is bounded when a value is registered, so that all output can be masked after its end.
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
}

export class OutstandingValues {
  readonly #uses = new Set<{ readonly entry: Entry }>();
  /** The values that were in use during each observation. */
  readonly #observations = new Set<Set<Entry>>();

  /**
   * ORDER: call before the value can be read. Returns a function to call when it can no longer be read. `field` is
   * named in errors.
   * @throws ToolError when the value cannot be masked, alone or together with the others
   */
  register(value: Secret, field: string): () => void {
    const use = { entry: this.#admit(value, field) };
    this.#uses.add(use);
    for (const seen of this.#observations) seen.add(use.entry);
    return () => void this.#uses.delete(use);
  }

  /** Collects, until `end`, each value that is in use at any time, once. */
  observe() {
    const seen = new Set([...this.#uses].map(({ entry }) => entry));
    this.#observations.add(seen);
    return {
      values: () => [...seen].map(({ value }) => value),
      end: () => void this.#observations.delete(seen),
    };
  }

  /** Equal values share an entry: their patterns are the same. */
  #admit(value: Secret, field: string): Entry {
    const used = [...this.#uses].map(({ entry }) => entry);
    const entries = [...new Set(used).union(new Set([...this.#observations].flatMap((seen) => [...seen])))];
    const text = value.reveal();
    const known = entries.find((entry) => entry.value.reveal() === text);
    if (known !== undefined) return known;
    const patternBytes = patternBytesOf(value);
    if (patternBytes === 0) {
      throw new ToolError('FAILED', `${field}: the value is too short to be masked in output`);
    }
    if (patternBytes > MAX_PATTERN_BYTES) {
      throw new ToolError('FAILED', `${field}: the value is too large to be masked in output`);
    }
    if (entries.reduce((sum, entry) => sum + entry.patternBytes, patternBytes) > MAX_PATTERN_BYTES) {
      throw new ToolError(
        'BUSY',
        `${field}: together with the values in use it is too large to be masked in output; remove a file with remove_file, or wait until running commands have ended`,
      );
    }
    return { value, patternBytes };
  }
}
