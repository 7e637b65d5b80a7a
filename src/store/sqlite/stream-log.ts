/**
 * The log of the embedded database for one stream. Entries are read over a read-only connection; the end of the log
 * and the position go through the store, which knows what is durable and owns all writes.
 */
import type { StreamLog } from '../stream-log.ts';
import { SqliteLogFile } from './log-file.ts';

export class SqliteStreamLog implements StreamLog {
  readonly #store: Pick<StreamLog, 'readEnd' | 'readPosition' | 'savePosition'>;
  readonly #file: SqliteLogFile;

  constructor(file: string, store: Pick<StreamLog, 'readEnd' | 'readPosition' | 'savePosition'>) {
    this.#store = store;
    this.#file = new SqliteLogFile(file);
  }

  /** One process owns the file. */
  async claim(): Promise<boolean> {
    return true;
  }

  readEnd() {
    return this.#store.readEnd();
  }

  readEntries(fromSeq: number, toSeq: number, limit: number) {
    return this.#file.readEntries(fromSeq, toSeq, limit);
  }

  readPosition(name: string) {
    return this.#store.readPosition(name);
  }

  savePosition(name: string, seq: number) {
    return this.#store.savePosition(name, seq);
  }

  close(): void {
    this.#file.close();
  }
}
