/** Answers every request of a card with the nonces of the requests that the card showed. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Approval } from '../../../../src/client/types.ts';
import { announce } from '../../components/live-region.tsx';
import { client } from '../../session/console-client.ts';

interface GivenAnswer {
  readonly isApproved: boolean;
  readonly reason: string;
}

export function useAnswer(shown: readonly Approval[], onAnswered: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ isApproved, reason }: GivenAnswer) => {
      const given = reason.trim() === '' ? {} : { reason: reason.trim() };
      const results = await Promise.allSettled(
        shown.map(({ approval_id, nonce }) =>
          isApproved
            ? client.approvals.approve(approval_id, nonce)
            : client.approvals.deny(approval_id, { nonce, ...given }),
        ),
      );
      const failed = results.find((result) => result.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    },
    onSuccess: (answered, { isApproved }) => {
      const isWaiting = answered.some(({ status }) => status === 'pending');
      const what = answered.length === 1 ? 'The request' : `${answered.length} requests`;
      const verb = isApproved ? 'approved' : 'denied';
      announce(isWaiting ? `${what}: your approval counts; more are needed.` : `${what}: ${verb}.`);
      onAnswered();
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['approvals'] }),
  });
}
