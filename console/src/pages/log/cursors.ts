/**
 * Reads pages of the audit log by cursor: the newest entry is fixed when the first page is read, and each later page
 * continues after the nearest known one by `before`. WHY not by `offset` alone: new entries would move every row, and
 * the server would count through all previous rows.
 */
import type { AuditEntry, AuditFilter, Page } from '../../../../src/client/types.ts';
import { client } from '../../session/console-client.ts';

export class CursorPages {
  readonly #filter: AuditFilter;
  /** The sequence number of the entry before a row, by the index of the row. */
  readonly #before = new Map<number, number>();
  #total: number | null = null;
  #newest: number | null = null;

  constructor(filter: AuditFilter) {
    this.#filter = filter;
  }

  /** The newest entry of any kind at the first read; null before it. */
  get newest(): number | null {
    return this.#newest;
  }

  async read(page: { offset: number; limit: number }, signal: AbortSignal): Promise<Page<AuditEntry>> {
    this.#newest ??= (await client.audit.list({ limit: 1 }, { signal })).data[0]?.seq ?? 0;
    const start = this.#nearest(page.offset);
    const cursor = { before: this.#before.get(start) ?? this.#newest + 1 };
    const range = { limit: page.limit, offset: page.offset - start };
    const found = await client.audit.list({ ...this.#filter, ...range, ...cursor }, { signal });
    // The first response counts every entry; later ones count only those after a cursor.
    this.#total ??= found.meta.total;
    this.#note(page.offset, found.data);
    return { data: found.data, meta: { ...found.meta, total: this.#total } };
  }

  #nearest(offset: number): number {
    let nearest = 0;
    for (const index of this.#before.keys()) if (index <= offset && index > nearest) nearest = index;
    return nearest;
  }

  #note(offset: number, rows: readonly AuditEntry[]): void {
    const [first, last] = [rows[0], rows.at(-1)];
    if (first === undefined || last === undefined) return;
    this.#before.set(offset, first.seq + 1);
    this.#before.set(offset + rows.length, last.seq);
  }
}
