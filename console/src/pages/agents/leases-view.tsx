/** The leases of all agents and operators, newest first. The filters are in the URL. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import type { Lease, LeasesFilter } from '../../../../src/client/types.ts';
import { AGENT_NAME } from '../../../../src/core/names.ts';
import { LEASE_STATUSES } from '../../../../src/vault/leases/lease.ts';
import { DataTable, type TableColumn } from '../../components/data-table.tsx';
import { FilterBar, type FilterField, useFilters, useSetParameters } from '../../components/filter-bar.tsx';
import { ConfirmDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { usePagedRows } from '../../components/paged-rows.ts';
import { RoleButton, RoleHint } from '../../components/role-button.tsx';
import { Facts, SidePanel } from '../../components/side-panel.tsx';
import { EmptyState, ErrorPanel, QueryState } from '../../components/states.tsx';
import { AgentLink, Badge, Copyable, CredentialLink, Time } from '../../components/texts.tsx';
import { countText } from '../../components/words.ts';
import { client } from '../../session/console-client.ts';
import { intervalOf } from '../../session/queries.ts';

const INTERVAL_MS = 3000;
const FIELDS: readonly FilterField[] = [
  { name: 'agent', label: 'Agent', placeholder: 'ci-runner' },
  { name: 'path', label: 'Path', placeholder: 'prod/db' },
  { name: 'status', label: 'Status', options: LEASE_STATUSES },
];
/** All URL parameters of this view. */
export const LEASE_PARAMETERS = [...FIELDS.map(({ name }) => name), 'lease'];

const StatusBadge = ({ status }: Pick<Lease, 'status'>) => (
  <Badge text={status} tone={status === 'active' ? 'good' : 'neutral'} />
);
const COLUMNS: readonly TableColumn<Lease>[] = [
  { title: 'Agent', width: 'minmax(8rem, 1fr)', cell: ({ agent_name }) => agent_name },
  { title: 'Path', width: 'minmax(10rem, 2fr)', cell: ({ path }) => <bdi>{path}</bdi> },
  { title: 'Version', width: '5rem', cell: ({ version }) => version },
  { title: 'Status', width: '6rem', cell: ({ status }) => <StatusBadge status={status} /> },
  { title: 'Issued', width: '11rem', cell: ({ issued_at }) => <Time at={issued_at} /> },
  { title: 'Until', width: '11rem', cell: ({ revoked_at, expires_at }) => <Time at={revoked_at ?? expires_at} /> },
  { title: 'Policy', width: 'minmax(8rem, 1fr)', cell: ({ policy_name }) => policy_name },
];

export function LeasesView() {
  const given = useFilters(FIELDS);
  const status = LEASE_STATUSES.find((each) => each === given['status']);
  const { agent, path } = given;
  const filter: LeasesFilter = {
    ...(agent === undefined ? {} : { agent }),
    ...(path === undefined ? {} : { path }),
    ...(status === undefined ? {} : { status }),
  };
  const [parameters] = useSearchParams();
  const setParameters = useSetParameters();
  const open = parameters.get('lease');
  const rows = usePagedRows<Lease>({
    queryKey: ['leases', 'list', filter],
    read: (page, signal) => client.leases.list({ ...filter, ...page }, { signal }),
    refetchIntervalMs: INTERVAL_MS,
  });
  return (
    <>
      <FilterBar fields={FIELDS} label="Filter the leases" />
      {rows.error !== null && <ErrorPanel error={rows.error} onRetry={rows.refetch} />}
      {rows.error === null && (
        <p className="count">{rows.isPending ? 'Loading…' : countText(rows.total, `${status ?? ''} lease`.trim())}</p>
      )}
      <div className="split">
        <DataTable
          label="Leases, newest first"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ lease_id }) => lease_id}
          openKey={open}
          onOpen={({ lease_id }) => setParameters({ lease: lease_id })}
          empty={<NoLeases isFiltered={Object.keys(given).length > 0} />}
        />
        {open !== null && <LeasePanel key={open} id={open} onClose={() => setParameters({ lease: null })} />}
      </div>
    </>
  );
}

function NoLeases({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return <EmptyState title="No matching leases">Remove a filter to see more leases.</EmptyState>;
  }
  return (
    <EmptyState title="No leases yet" command="leasehold get demo/first">
      Each retrieval and each brokered request issues a lease, which records the agent, the credential and the expiry.
      Ended leases are listed for 7 days.
    </EmptyState>
  );
}

function LeasePanel({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const [isRevoking, setRevoking] = useState(false);
  const read = useQuery({
    queryKey: ['leases', 'one', id],
    queryFn: ({ signal }) => client.leases.read(id, { signal }),
    refetchInterval: intervalOf(INTERVAL_MS),
  });
  const { data } = read;
  return (
    <SidePanel title={data === undefined ? 'Lease' : `Lease of ${data.agent_name}`} onClose={onClose}>
      <QueryState query={read} what="the lease" />
      {data !== undefined && (
        <>
          <LeaseFacts lease={data} />
          <div className="page-actions">
            <RoleButton
              needs="editor"
              className="danger"
              disabled={data.status !== 'active'}
              onClick={() => setRevoking(true)}
            >
              Revoke…
            </RoleButton>
          </div>
          <RoleHint needs="editor" verb="Revoking leases" />
          {data.status !== 'active' && <p className="hint">The lease has already ended.</p>}
          <RevokeDialog lease={data} isOpen={isRevoking} onClose={() => setRevoking(false)} />
        </>
      )}
    </SidePanel>
  );
}

function LeaseFacts({ lease }: { readonly lease: Lease }) {
  const { lease_id, agent_name, path, version, policy_name, issued_at, expires_at, revoked_at, status } = lease;
  return (
    <Facts
      rows={[
        ['Status', <StatusBadge key="status" status={status} />],
        ['Agent', AGENT_NAME.test(agent_name) ? <AgentLink key="agent" name={agent_name} /> : agent_name],
        ['Path', <CredentialLink key="path" path={path} />],
        ['Version', version],
        ['Policy', policy_name],
        ['Issued', <Time key="issued" at={issued_at} />],
        ['Expires', <Time key="expires" at={expires_at} />],
        ['Revoked', revoked_at === null ? null : <Time key="revoked" at={revoked_at} />],
        ['Lease', <Copyable key="id" text={lease_id} what="the id of the lease" />],
      ]}
    />
  );
}

interface RevokeProps {
  readonly lease: Lease;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

function RevokeDialog({ lease: { lease_id, agent_name, path, version, expires_at }, isOpen, onClose }: RevokeProps) {
  const queries = useQueryClient();
  const revoke = async (): Promise<void> => {
    await client.leases.revoke(lease_id);
    announce(`The lease of ${agent_name} for ${path} is revoked.`);
    const read = ['leases', 'now-leases', 'held', 'exposure'];
    await queries.invalidateQueries({ predicate: ({ queryKey }) => read.includes(String(queryKey[0])) });
  };
  return (
    <ConfirmDialog
      isOpen={isOpen}
      title="Revoke the lease?"
      verb="Revoke the lease"
      onConfirm={revoke}
      onClose={onClose}
    >
      <p>
        This ends the lease of <strong>{agent_name}</strong> for version {version} of <code>{path}</code>, which would
        otherwise end at <Time at={expires_at} />. Its requests in flight are aborted.
      </p>
      <p>
        Other leases, sessions and policies stay, so {agent_name} can obtain a new lease. Rotate the value if it was
        seen.
      </p>
    </ConfirmDialog>
  );
}
