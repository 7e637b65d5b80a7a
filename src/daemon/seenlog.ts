/**
 * The last entry of a shared log that this node has seen, kept in its own data directory: so that a start notices, too, that the
 * database has lost what was acknowledged. An anchor that a writer of the database does not reach.
 */
import { readFileSync } from 'node:fs';
import type { Store } from '../store/port.ts';
import { checkPrivateFile, StartError, writePrivateFile } from './files.ts';

interface Seen {
  readonly seq: number;
  readonly hmac: string;
}

export class SeenLog {
  readonly #file: string;
  #written = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** Null where nothing was seen yet. @throws StartError where the file is not ours */
  read(): Seen | null {
    if (!checkPrivateFile(this.#file)) return null;
    try {
      const seen: unknown = JSON.parse(readFileSync(this.#file, 'utf8'));
      if (typeof seen === 'object' && seen !== null && 'seq' in seen && 'hmac' in seen) {
        return { seq: Number(seen.seq), hmac: String(seen.hmac) };
      }
    } catch {
      // Told below.
    }
    throw new StartError(`${this.#file} is not what this node wrote; put it back, or remove it to trust the database.`);
  }

  /** To be called now and then. */
  write(known: Seen | null): void {
    if (known === null || known.seq === this.#written) return;
    writePrivateFile(this.#file, `${JSON.stringify({ seq: known.seq, hmac: known.hmac })}\n`);
    this.#written = known.seq;
  }

  /**
   * Holds the log against what was seen. Resolves to what to say of a loss that the operator accepts, or null.
   * @throws StartError for one that he does not
   */
  async check(store: Store, acceptsRollback: boolean): Promise<string | null> {
    const seen = this.read();
    if (seen === null) return null;
    const [entry] = await store.readEntries(seen.seq, seen.seq, 1);
    if (entry?.hmac === seen.hmac) return null;
    const { last } = await store.readHead();
    const what = `The database has lost entries of the log: this node has seen entry ${seen.seq}, ${
      entry === undefined ? `and the log ends at ${last?.seq ?? 0}` : 'and another one stands there'
    }.`;
    if (acceptsRollback) return `${what} It goes on all the same (--accept-rollback).`;
    throw new StartError(
      `${what} Was a standby promoted that lagged behind, or a backup restored? Bring them back, or go on without with --accept-rollback.`,
    );
  }
}
