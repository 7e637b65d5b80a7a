/** The reads of the overview lists. Each is a step of a few milliseconds. */

import { ApprovalReads } from './approval-reads.ts';
import { type LevelQuery, readConnectedPrograms, readLevel } from './credential-levels.ts';
import { searchCredentials } from './credential-lists.ts';
import { type EndingQuery, readLeaseSigns } from './lease-lists.ts';
import { countDenials, readColumns } from './log-columns.ts';

export abstract class OverviewReads extends ApprovalReads {
  /** The credentials with the text, in lower case, in their paths, from that path on. */
  searchCredentials(text: string, from: string) {
    return this.run(searchCredentials(this.dialect, text, from));
  }

  /** The names of one level of the tree of paths, in order. */
  readLevel(query: LevelQuery, from: string) {
    return this.run(readLevel(this.dialect, query, from));
  }

  /** The programs that are connected to the database with names of Leasehold; none if this is the only one. */
  readConnectedPrograms() {
    return this.run(readConnectedPrograms(this.dialect));
  }

  /** The leases before `beforeSeq` that end soon, and the credentials with a use among them, newest first. */
  readLeaseSigns(query: EndingQuery, beforeSeq: number) {
    return this.run(readLeaseSigns(this.dialect, query, beforeSeq));
  }

  /** A step through the range in that order, as above. */
  readColumns(fromSeq: number, toSeq: number, order: 'asc' | 'desc') {
    return this.run(readColumns(this.dialect, fromSeq, toSeq, order));
  }

  /** A step through the range, newest first. */
  countDenials(fromSeq: number, toSeq: number) {
    return this.run(countDenials(this.dialect, fromSeq, toSeq));
  }
}
