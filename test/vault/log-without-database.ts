/** The columns of a log in memory, without a database or without limits of time. */

import assert from 'node:assert/strict';
import type { EntryColumns } from '../../src/store/log-columns.ts';
import type { AuditFilter } from '../../src/store/queries.ts';
import { LogColumns } from '../../src/vault/log-columns.ts';

const KIND = { eventType: 'credential.retrieve', action: 'retrieve', agentName: 'ci', result: 'allowed' };
/** Selects every entry. */
export const ALL = { agentName: null, resource: null, action: null, eventType: null, result: null };
export const FOREVER = Number.POSITIVE_INFINITY;

type Visit = Parameters<LogColumns['visit']>;

/** Takes as long as it needs: on a busy machine a short time is up before a short log was read. */
export class UnhurriedColumns extends LogColumns {
  override cover(from: number, to: number): Promise<number> {
    return super.cover(from, to, FOREVER);
  }

  override visit(range: Visit[0], filter: Visit[1], visit: Visit[2]): Promise<number> {
    return super.visit(range, filter, visit);
  }
}

const isoOf = (seq: number): string => new Date(seq).toISOString();

interface Texts {
  readonly toTimestamp?: (seq: number) => string;
  readonly toResource?: (seq: number) => string;
  readonly toAgent?: (seq: number) => string;
}

/** Each entry's time is its number, and each step reads so many rows. It counts the entries that were read. */
export function startLog(
  stepRows: number,
  { toTimestamp = isoOf, toResource = () => 'a', toAgent = () => 'ci' }: Texts = {},
) {
  let [read, matched] = [0, 0];
  const store: ConstructorParameters<typeof LogColumns>[0] = {
    async matchEntries({ resource }, from, to) {
      const seqs = Array.from({ length: to - from + 1 }, (_, index) => from + index);
      matched += seqs.length;
      return { seqs: seqs.filter((seq) => toResource(seq) === resource), next: null };
    },
    async readColumns(from, to, order) {
      const [low, high] =
        order === 'asc' ? [from, Math.min(to, from + stepRows - 1)] : [Math.max(from, to - stepRows + 1), to];
      const rows: EntryColumns[] = [];
      for (let seq = low; seq <= high; seq++) {
        rows.push({
          seq,
          timestamp: toTimestamp(seq),
          resource: toResource(seq),
          kind: { ...KIND, agentName: toAgent(seq) },
        });
      }
      read += rows.length;
      const next = order === 'asc' ? high + 1 : low - 1;
      return { rows, next: next > to || next < from ? null : next };
    },
  };
  const columns = new LogColumns(store);
  const visited = async (from: number, to: number, order: 'asc' | 'desc', filter: AuditFilter = ALL) => {
    const seqs: number[] = [];
    await columns.visit({ from, to, order }, filter, (_, at, seq) => {
      if (at !== Date.parse(toTimestamp(seq))) assert.fail(`entry ${seq} has the time ${at}`);
      seqs.push(seq);
    });
    return seqs;
  };
  return { store, columns, visited, read: () => read, matched: () => matched };
}
