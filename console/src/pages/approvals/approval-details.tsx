/** Shows one request, even after its answer: the request, its outcome, and the access that is still allowed. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { LeaseholdError } from '../../../../src/client/errors.ts';
import type { Approval, ListedApproval } from '../../../../src/client/types.ts';
import { UUID } from '../../../../src/core/names.ts';
import { ConfirmDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { RoleButton } from '../../components/role-button.tsx';
import { Facts } from '../../components/side-panel.tsx';
import { ErrorPanel, Loading } from '../../components/states.tsx';
import { Badge, Copyable, Time } from '../../components/texts.tsx';
import { client, useRole } from '../../session/console-client.ts';
import { serverNow } from '../../session/server-clock.ts';
import { ApprovalCard } from './approval-card.tsx';
import { ExactRequest, showInvisible } from './exact-request.tsx';
import { isLiveGrant, nameOf, OUTCOMES, titleOf } from './outcomes.ts';
import { useCards } from './use-cards.ts';

const INTERVAL_MS = 1000;

/**
 * Reads the approval. The server rejects a URL without a valid id as an invalid field, which the operator did not fill
 * in.
 */
async function readApproval(id: string, signal: AbortSignal): Promise<Approval> {
  if (!UUID.test(id)) throw new LeaseholdError('NOT_FOUND', 'No request has this id. The link may be incomplete.');
  return client.approvals.read(id, { signal });
}

export function ApprovalDetails({ id }: { readonly id: string }) {
  const mayRead = useRole('approver');
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['approvals', 'one', id],
    queryFn: ({ signal }) => readApproval(id, signal),
    enabled: mayRead,
    refetchInterval: ({ state }) =>
      state.data?.status === 'pending' && !isForbidden(state.error) ? INTERVAL_MS : false,
  });
  if (!mayRead) {
    return (
      <p className="notice warning">
        Viewing the request requires the approver role, which an administrator can assign under Settings.
      </p>
    );
  }
  if (error !== null && (data === undefined || isForbidden(error)))
    return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (isPending) return <Loading what="the request" />;
  if (data.status === 'pending') return <Waiting approval={data} onAnswered={() => void refetch()} />;
  return <Answered approval={data} />;
}

function Waiting({ approval, onAnswered }: { readonly approval: Approval; readonly onAnswered: () => void }) {
  return useCards([[approval]]).map((requests) => (
    <ApprovalCard key={approval.approval_id} requests={requests} onAnswered={onAnswered} />
  ));
}

/** Whether the operator has lost the role, so that reading again is useless. */
const isForbidden = (error: unknown): boolean => error instanceof LeaseholdError && error.status === 403;

function Answered({ approval }: { readonly approval: Approval }) {
  const { status, approvals, answered_by, answered_at, reason, request, covers } = approval;
  const { label, tone, meaning } = OUTCOMES[status];
  return (
    <section className="approval" aria-label={titleOf(approval)}>
      <header>
        <h2>{showInvisible(titleOf(approval))}</h2>
        <Badge text={label} tone={tone} />
      </header>
      <p>{meaning}</p>
      <p className="covers">{covers}</p>
      <Facts
        rows={[
          ['Agent', approval.agent_name],
          ['Credential', approval.path],
          ['Stated purpose', approval.purpose === null ? null : <q key="says">{showInvisible(approval.purpose)}</q>],
          ['Requested', <Time key="asked" at={approval.requested_at} isPrecise />],
          ['Answered', answered_at === null ? null : <Time key="answered" at={answered_at} isPrecise />],
          ['By', approvals.length > 0 ? approvals.map(({ operator }) => nameOf(operator)).join(', ') : answered_by],
          ['Reason', reason === null ? null : showInvisible(reason)],
          ['Uses left', status === 'approved' ? (approval.uses_left ?? 'any number') : null],
          ['Ends', approval.grant_ends_at === null ? null : <Time key="ends" at={approval.grant_ends_at} />],
          ['Id', <Copyable key="id" text={approval.approval_id} what="the id" />],
        ]}
      />
      {request !== null && <ExactRequest request={request} />}
      {isLiveGrant(approval, serverNow()) && <EndGrant approval={approval} />}
    </section>
  );
}

/** Withdraws the access that an approval still allows. */
export function EndGrant({ approval }: { readonly approval: ListedApproval }) {
  const [isOpen, setOpen] = useState(false);
  const queries = useQueryClient();
  const end = async (): Promise<void> => {
    await client.approvals.withdraw(approval.approval_id);
    announce('The grant has ended.');
    await queries.invalidateQueries({ queryKey: ['approvals'] });
  };
  return (
    <>
      <RoleButton needs="approver" onClick={() => setOpen(true)}>
        End
      </RoleButton>
      <ConfirmDialog
        isOpen={isOpen}
        title="End this grant?"
        verb="End it"
        onConfirm={end}
        onClose={() => setOpen(false)}
      >
        <p>{approval.covers}</p>
        <p>The agent must ask again. Requests that were already sent are not affected.</p>
      </ConfirmDialog>
    </>
  );
}
