/**
 * The reads of a store that compare rows with the log, and those of the rows that nodes hold in memory. SOURCE:
 * docs/formats.md, "State in the log".
 */
import type { SubjectKind } from '../core/state.ts';
import type { Dialect } from './dialect.ts';
import { lacksStates, readControlStates, readNewestState } from './recorded-states.ts';
import { scanRows, scanSubjects } from './state-scan.ts';
import type { Procedure } from './statement.ts';
import { scanValues } from './value-scan.ts';
import { readAgents, readOperators, readPolicies } from './vault-metadata.ts';

export abstract class StateReads {
  protected abstract readonly dialect: Dialect;

  /**
   * Runs the procedure outside transactions, and returns committed, durable data. An urgent one, which precedes every
   * batch, does not wait for lists. @throws StoreError
   */
  protected abstract run<T>(procedure: Procedure<T>, isUrgent?: boolean): Promise<T>;

  readAgents() {
    return this.run(readAgents());
  }

  readOperators() {
    return this.run(readOperators());
  }

  readPolicies() {
    return this.run(readPolicies());
  }

  /** What the log records about agents, operators and policies, by subject; removed ones are left out. */
  readControlStates() {
    return this.run(readControlStates());
  }

  /** Whether an earlier version wrote the rows, and no entry records any of them. */
  lacksStates() {
    return this.run(lacksStates());
  }

  /** What the newest entry with the subject records; null if none has it. */
  readNewestState(subject: string) {
    return this.run(readNewestState(subject), true);
  }

  /** The rows of a kind after the key (null: from the first), with what the log records about each. */
  scanRows(kind: SubjectKind, after: string | null, limit: number) {
    return this.run(scanRows(kind, after, limit));
  }

  /** The subjects of a kind that the log records and that have no row; at most `limit` subjects are checked. */
  scanSubjects(kind: SubjectKind, after: string, limit: number) {
    return this.run(scanSubjects(kind, after, limit));
  }

  /** The credentials after the id (null: from the first), with all of their sealed values. */
  scanValues(after: string | null, limit: number) {
    return this.run(scanValues(this.dialect, after, limit));
  }
}
