/** The reads of a store that are about approvals. */
import type { ApprovalId } from '../core/approval.ts';
import {
  countApprovals,
  findAnswered,
  findApproval,
  findLiveApprovals,
  findTimedOut,
  listApprovals,
  readApprovalRequest,
} from './approval-lists.ts';
import type { ApprovalQuery } from './queries.ts';
import { StateReads } from './state-reads.ts';

export abstract class ApprovalReads extends StateReads {
  /** Newest first, those before the id; at most `limit` rows, at least 1. */
  listApprovals(query: ApprovalQuery, beforeId: string, limit: number) {
    return this.run(listApprovals(this.dialect, query, beforeId, limit));
  }

  /** Counts those before the id, and stops after `atMost`, which is at least 1. */
  countApprovals(query: ApprovalQuery, beforeId: string, atMost: number) {
    return this.run(countApprovals(this.dialect, query, beforeId, atMost));
  }

  /** At most `limit` requests whose time has ended without an answer. */
  findTimedOut(now: number, limit: number) {
    return this.run(findTimedOut(now, limit));
  }

  /** A step: at most `limit` requests that wait, and grants that may still be used, after the id. */
  findLiveApprovals(now: number, afterId: string, limit: number) {
    return this.run(findLiveApprovals(this.dialect, now, afterId, limit));
  }

  /** Those of the approvals that do not wait any more. */
  findAnswered(ids: readonly ApprovalId[]) {
    return this.run(findAnswered(this.dialect, ids), true);
  }

  /** With the path of its credential; null if it does not exist. */
  findApproval(id: ApprovalId) {
    return this.run(findApproval(id), true);
  }

  /** What was requested, sealed; null if it was removed. */
  readApprovalRequest(id: ApprovalId) {
    return this.run(readApprovalRequest(id));
  }
}
