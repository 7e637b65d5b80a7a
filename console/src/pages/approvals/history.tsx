/** Requests of the last week by their outcome, and active grants. */
import { useQuery } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import type { ApprovalsFilter, ListedApproval } from '../../../../src/client/types.ts';
import { APPROVAL_STATUSES } from '../../../../src/vault/approvals/approval.ts';
import { DataTable, type TableColumn } from '../../components/data-table.tsx';
import { FilterBar, type FilterField, useFilters } from '../../components/filter-bar.tsx';
import { usePagedRows } from '../../components/paged-rows.ts';
import { EmptyState, ErrorPanel, QueryState } from '../../components/states.tsx';
import { Badge, Time } from '../../components/texts.tsx';
import { countText } from '../../components/words.ts';
import { client } from '../../session/console-client.ts';
import { serverNow } from '../../session/server-clock.ts';
import { EndGrant } from './approval-details.tsx';
import { showInvisible } from './exact-request.tsx';
import { isLiveGrant, NO_APPROVER, nameOf, OUTCOMES, titleOf } from './outcomes.ts';

const FIELDS: readonly FilterField[] = [
  { name: 'status', label: 'Outcome', options: APPROVAL_STATUSES },
  { name: 'agent', label: 'Agent', placeholder: 'ci-runner' },
];
const COLUMNS: readonly TableColumn<ListedApproval>[] = [
  {
    title: 'Outcome',
    width: '7.5rem',
    cell: ({ status }) => <Badge text={OUTCOMES[status].label} tone={OUTCOMES[status].tone} />,
  },
  { title: 'Requested', width: '11rem', cell: ({ requested_at }) => <Time at={requested_at} /> },
  { title: 'Agent', width: 'minmax(7rem, 1fr)', cell: ({ agent_name }) => agent_name },
  { title: 'Request', width: 'minmax(12rem, 3fr)', cell: (approval) => showInvisible(titleOf(approval)) },
  { title: 'Credential', width: 'minmax(8rem, 1fr)', cell: ({ path }) => path },
  {
    title: 'By',
    width: 'minmax(6rem, 1fr)',
    cell: ({ answered_by }) => (answered_by === null ? '' : nameOf(answered_by)),
  },
];
const keyOf = ({ approval_id }: ListedApproval): string => approval_id;

export function History() {
  const filter: ApprovalsFilter = useFilters(FIELDS);
  const [, navigate] = useLocation();
  const rows = usePagedRows<ListedApproval>({
    queryKey: ['approvals', 'history', filter],
    read: (page, signal) => client.approvals.list({ ...filter, ...page }, { signal }),
  });
  const { status } = filter;
  return (
    <>
      <FilterBar fields={FIELDS} label="Filter the requests" />
      {rows.error !== null && <ErrorPanel error={rows.error} onRetry={rows.refetch} />}
      <p className="hint">
        {status === undefined ? 'Requests are shown for a week after they have ended.' : OUTCOMES[status].meaning}{' '}
        {NO_APPROVER} <Link href="/log?event_type=approval.request&result=denied">Show them in the audit log</Link>
      </p>
      <p className="count">{rows.isPending ? 'Loading…' : countText(rows.total, 'request')}</p>
      <div className="split">
        <DataTable
          label="Requests for approval, newest first"
          columns={COLUMNS}
          rows={rows}
          keyOf={keyOf}
          onOpen={({ approval_id }) => navigate(`/approvals/${approval_id}`)}
          empty={
            <EmptyState title="No approval requests">
              Requests that need an approval are listed here, with their outcome.
            </EmptyState>
          }
        />
      </div>
    </>
  );
}

const MAX_READ = 1000;

export function Grants() {
  const grants = useQuery({
    queryKey: ['approvals', 'grants'],
    queryFn: ({ signal }) => client.approvals.list({ status: 'approved', limit: MAX_READ }, { signal }),
    refetchInterval: 5000,
  });
  if (grants.data === undefined) return <QueryState query={grants} what="the grants" />;
  const { data, meta } = grants.data;
  const live = data.filter((approval) => isLiveGrant(approval, serverNow()));
  if (live.length === 0) {
    return (
      <EmptyState title="No active grants">
        Approvals for several uses, for a period or for a session are listed here until they are used up or end.
      </EmptyState>
    );
  }
  return (
    <>
      <ul className="grants" aria-label="Active grants">
        {live.map((approval) => (
          <li key={approval.approval_id}>
            <div>
              <Link href={`/approvals/${approval.approval_id}`}>{showInvisible(titleOf(approval))}</Link>
              <p>{approval.covers}</p>
              <p className="hint">
                {approval.agent_name} ·{' '}
                {approval.uses_left === null ? 'any number of uses' : `${approval.uses_left} uses left`}
                {approval.grant_ends_at !== null && (
                  <>
                    {' · until '}
                    <Time at={approval.grant_ends_at} />
                  </>
                )}
              </p>
            </div>
            <EndGrant approval={approval} />
          </li>
        ))}
      </ul>
      {meta.total > MAX_READ && <p className="hint">From the newest {MAX_READ} approved requests.</p>}
    </>
  );
}
