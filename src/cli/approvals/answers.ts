/** Sends an operator's answer to requests for approval, and says what came of it. */

import type { Approvals } from '../../client/approvals.ts';
import { LeaseholdError } from '../../client/errors.ts';
import type { Approval, ListedApproval } from '../../client/types.ts';
import { inParallel } from '../../platform/parallel.ts';

const MAX_CONCURRENT = 4;

export interface GivenAnswer {
  readonly isApproved: boolean;
  readonly reason: string | null;
}

export function sendAnswer(
  approvals: Approvals,
  { approval_id, nonce }: ListedApproval,
  { isApproved, reason }: GivenAnswer,
  signal: AbortSignal,
): Promise<ListedApproval> {
  if (isApproved) return approvals.approve(approval_id, nonce, { signal });
  return approvals.deny(approval_id, { nonce, ...(reason === null ? {} : { reason }) }, { signal });
}

/** What one answer did, as a sentence. */
export function describeAnswer({ status, approvals, quorum }: ListedApproval): string {
  if (status === 'denied') return 'Denied.';
  if (status === 'approved') return 'Approved: the request passes.';
  return `Approved by ${approvals.length} of ${quorum}: it passes when all of them have approved it.`;
}

/** Errors about one request; the others are answered all the same. */
const SINGLE_REQUEST_ERRORS: ReadonlySet<string> = new Set([
  'APPROVAL_ENDED',
  'ACCESS_DENIED',
  'ALREADY_EXISTS',
  'NOT_FOUND',
]);

/** Resolves to the different sentences, each with its count. @throws LeaseholdError that is not about one request */
export async function answerAll(
  approvals: Approvals,
  group: readonly Approval[],
  answer: GivenAnswer,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const sentences = new Map<string, number>();
  await inParallel(group, MAX_CONCURRENT, async (approval) => {
    const sentence = await sendAnswer(approvals, approval, answer, signal).then(describeAnswer, (error: unknown) => {
      if (error instanceof LeaseholdError && SINGLE_REQUEST_ERRORS.has(error.code)) return error.message;
      throw error;
    });
    sentences.set(sentence, (sentences.get(sentence) ?? 0) + 1);
  });
  return sentences;
}
