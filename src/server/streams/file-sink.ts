/** Appends entries to a file, one JSON object per line, and syncs it before they count as sent. */
import type { AuditEntry } from '../../core/audit.ts';
import { errnoSuffix } from '../../platform/errno.ts';
import { LineFile } from '../../platform/line-file.ts';
import { type Sink, SinkError, toLine } from './sink.ts';

export class FileSink implements Sink {
  readonly #file: LineFile;

  constructor(path: string) {
    this.#file = new LineFile(path);
  }

  async send(entries: readonly AuditEntry[]): Promise<void> {
    try {
      await this.#file.append(entries.map(toLine).join(''));
    } catch (error) {
      throw new SinkError(`${this.#file.path} could not be written${errnoSuffix(error)}`);
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
