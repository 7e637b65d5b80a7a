/** The SQL in which the stores differ, for the procedures that they share. */
import type { CountedCredential } from '../vault/credentials/credential.ts';
import { CREDENTIALS } from './schema.ts';
import { type Procedure, type Row, raw, type Statement, sql } from './statement.ts';

/** Sequence numbers from `from` up to, not including, `before`, and where the next chunk ends: null at the end. */
export interface LeaseChunk {
  readonly from: number;
  readonly before: number;
  readonly next: number | null;
}

export interface Dialect {
  /**
   * The tables or views with encrypted values: columns `credential_id`, `version`, `type` and `sealed`, and a key that
   * begins with the first two.
   */
  readonly valueSources: readonly string[];
  /** Number of rows to read between two checks of the clock. */
  readonly chunkRows: number;
  /** Number of log entries to compare with a filter between two checks of the clock. */
  readonly chunkEntries: number;
  /**
   * Number of comparisons of two characters between two checks of the clock. In the worst case, a glob compares each of
   * its characters with each character of the text.
   */
  readonly chunkComparisons: number;
  /** The newest leases before a sequence number, of one agent name or of all agents; null if none exists. */
  findLeaseChunk(agentName: string | null, before: number): Procedure<LeaseChunk | null>;
  matchesGlob(glob: string): Statement;
  /** The condition that the column contains the text, which is in lower case, in any case. */
  contains(column: string, text: string): Statement;
  /** The condition that the column is one of the texts. Its text is the same for any number of them. */
  isOneOf(column: string, texts: readonly string[]): Statement;
  /**
   * The first rows of all the reads together, in the order of a column that each read finds by an index; at least one
   * read. Each read returns at most `limit` rows.
   */
  merge(reads: readonly Statement[], order: string, limit: number): Statement;
  /** Selects the `name` of each connected program; null if only this one can be. */
  readonly connectedPrograms: Statement | null;
  /**
   * The newest values that are in the rows of their credentials, of ids from the first to the second; null if all
   * values are in `credential_versions`.
   */
  readonly newestValues: ((from: string, through: string) => Statement) | null;
  /** The credentials that the condition selects, by path, with their access counts. */
  selectCredentials(where: Statement, limit: number): Procedure<readonly CountedCredential[]>;
}

/** 0 if the column is null or no row exists. */
export const numberIn = (row: Row | undefined, column: string): number => Number(row?.[column] ?? 0);

/** A listed credential has no MAC. */
export function toCounted(row: Row, accessCount: number): CountedCredential {
  const { mac: _, ...credential } = CREDENTIALS.decode(row);
  return { ...credential, accessCount };
}

/** All rows of the reads, at least one. */
export const unionAll = (reads: readonly Statement[]): Statement =>
  reads.reduce((all, read) => sql`${all} UNION ALL ${read}`);

export const ordered = (read: Statement, order: string, limit: number): Statement =>
  sql`${read} ORDER BY ${raw(order)} LIMIT ${limit}`;
