/** Agents: the list, their leases, registration, details, and panic. The view is in the URL. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useSearchParams } from 'wouter';
import type { Agent, Panicked } from '../../../../src/client/types.ts';
import { DataTable, type TableColumn } from '../../components/data-table.tsx';
import { FormTextField, textOf } from '../../components/fields.tsx';
import { FilterBar, type FilterField, useFilters, useSetParameters } from '../../components/filter-bar.tsx';
import { FormDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { PageHeading } from '../../components/page-heading.tsx';
import { type PagedRows, toRows, usePagedRows } from '../../components/paged-rows.ts';
import { RoleButton } from '../../components/role-button.tsx';
import { EmptyState, ErrorPanel } from '../../components/states.tsx';
import { Time } from '../../components/texts.tsx';
import { countText } from '../../components/words.ts';
import { client } from '../../session/console-client.ts';
import { AgentPanel } from './agent-panel.tsx';
import { KeyFields, keyOf } from './key-fields.tsx';
import { LEASE_PARAMETERS, LeasesView } from './leases-view.tsx';
import { PanicDialog, PanicResult, type PanicScope } from './panic.tsx';

/** Search results contain only the name and the description. */
type Row = Pick<Agent, 'name' | 'description'> & Partial<Agent>;

const FIELDS: readonly FilterField[] = [{ name: 'q', label: 'Find', placeholder: 'part of a name' }];
const COLUMNS: readonly TableColumn<Row>[] = [
  { title: 'Name', width: 'minmax(10rem, 2fr)', cell: ({ name }) => name },
  { title: 'Description', width: 'minmax(8rem, 3fr)', cell: ({ description }) => description },
  {
    title: 'Registered',
    width: '11rem',
    cell: ({ registered_at }) => (registered_at === undefined ? '' : <Time at={registered_at} />),
  },
  { title: 'Public key', width: 'minmax(8rem, 1fr)', cell: ({ public_key }) => <code>{public_key ?? ''}</code> },
];
const nameOf = ({ name }: Row): string => name;
const MAX_FOUND = 50;
const VIEWS = [
  { name: 'agents', title: 'Agents' },
  { name: 'leases', title: 'Leases' },
] as const;

interface FoundRows extends PagedRows<Row> {
  /** Whether a search found more names than it returned, so that agents may be missing. */
  readonly isTruncated: boolean;
}

function useRows(q: string | undefined): FoundRows {
  const all = usePagedRows<Row>({
    queryKey: ['agents', 'list'],
    read: (page, signal) => client.agents.list(page, { signal }),
  });
  const found = useQuery({
    queryKey: ['agents', 'found', q],
    queryFn: ({ signal }) => client.overview.search({ q: q ?? '', limit: MAX_FOUND }, { signal }),
    enabled: q !== undefined,
  });
  if (q === undefined) return { ...all, isTruncated: false };
  const agents = found.data?.results.filter(({ kind }) => kind === 'agent') ?? [];
  const { isPending, error, data } = found;
  const isTruncated = data !== undefined && (!data.complete || data.results.length >= MAX_FOUND);
  return { ...toRows<Row>(agents), isPending, error, refetch: () => void found.refetch(), isTruncated };
}

export function AgentsPage() {
  const [parameters] = useSearchParams();
  const setParameters = useSetParameters();
  const shown = parameters.get('view') === 'leases' ? 'leases' : 'agents';
  const change = (view: (typeof VIEWS)[number]['name']): void => {
    const cleared = Object.fromEntries(['q', ...LEASE_PARAMETERS].map((name) => [name, null]));
    setParameters(view === 'agents' ? { ...cleared, view: null } : { ...cleared, view, status: 'active' });
  };
  const [isRegistering, setRegistering] = useState(false);
  const [scope, setScope] = useState<PanicScope | null>(null);
  const [done, setDone] = useState<{ scope: PanicScope; result: Panicked } | null>(null);
  return (
    <>
      <PageHeading title="Agents">
        <nav aria-label="Views of agents" className="views">
          {VIEWS.map(({ name, title }) => (
            <button
              key={name}
              type="button"
              aria-current={name === shown ? 'page' : undefined}
              onClick={() => change(name)}
            >
              {title}
            </button>
          ))}
        </nav>
        <RoleButton needs="editor" onClick={() => setRegistering(true)}>
          Register an agent
        </RoleButton>
        <RoleButton needs="admin" className="danger" onClick={() => setScope('everything')}>
          Panic: end everything
        </RoleButton>
      </PageHeading>
      {/* Before the result: the closing dialog returns the focus, and the result then takes it. */}
      <PanicDialog
        scope={scope}
        onDone={(result) => scope !== null && setDone({ scope, result })}
        onClose={() => setScope(null)}
      />
      {done !== null && scope === null && <PanicResult {...done} onClose={() => setDone(null)} />}
      {shown === 'leases' ? <LeasesView /> : <AgentList onPanic={(agent) => setScope({ agent })} />}
      <RegisterDialog isOpen={isRegistering} onClose={() => setRegistering(false)} />
    </>
  );
}

function AgentList({ onPanic }: { readonly onPanic: (agent: string) => void }) {
  const { q } = useFilters(FIELDS);
  const [parameters] = useSearchParams();
  const setParameters = useSetParameters();
  const open = parameters.get('agent');
  const rows = useRows(q);
  const count = countText(rows.total, 'agent');
  return (
    <>
      <FilterBar fields={FIELDS} label="Find agents" />
      {rows.error !== null && <ErrorPanel error={rows.error} onRetry={rows.refetch} />}
      {rows.error === null && (
        <p className="count">
          {rows.isPending && 'Loading…'}
          {!rows.isPending &&
            (rows.isTruncated ? `${count} of the first ${MAX_FOUND} names found; type more of the name` : count)}
        </p>
      )}
      <div className="split">
        <DataTable
          label="Agents by name"
          columns={COLUMNS}
          rows={rows}
          keyOf={nameOf}
          openKey={open}
          onOpen={({ name }) => setParameters({ agent: name })}
          empty={<NoAgents isFiltered={q !== undefined} isTruncated={rows.isTruncated} />}
        />
        {open !== null && (
          <AgentPanel
            key={open}
            name={open}
            onPanic={() => onPanic(open)}
            onClose={() => setParameters({ agent: null })}
          />
        )}
      </div>
    </>
  );
}

function RegisterDialog({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  const queries = useQueryClient();
  const setParameters = useSetParameters();
  const register = async (values: FormData): Promise<void> => {
    const [name, description] = [textOf(values, 'name'), textOf(values, 'description')];
    await client.agents.register({ name, description, ...keyOf(values) });
    announce(`The agent ${name} is registered. Next, grant it access with a policy.`);
    await queries.invalidateQueries({ queryKey: ['agents'] });
    setParameters({ ...Object.fromEntries(LEASE_PARAMETERS.map((each) => [each, null])), view: null, agent: name });
  };
  return (
    <FormDialog isOpen={isOpen} title="Register an agent" verb="Register" onSubmit={register} onClose={onClose}>
      <FormTextField label="Name" name="name" isRequired maxLength={64} placeholder="deploy-bot" />
      <FormTextField label="Description (optional)" name="description" />
      <KeyFields agent={null} />
      <p className="hint">
        An agent has no access until a policy grants it. To create the key on the agent’s machine and register it in one
        step: <code>leasehold agent add NAME</code>
      </p>
    </FormDialog>
  );
}

function NoAgents({ isFiltered, isTruncated }: { readonly isFiltered: boolean; readonly isTruncated: boolean }) {
  if (isTruncated) {
    return <EmptyState title="No match in the first results">Type more of the name.</EmptyState>;
  }
  if (isFiltered) return <EmptyState title="No matching agents">Clear the filter to see all.</EmptyState>;
  return (
    <EmptyState title="No agents yet" command="leasehold agent add deploy-bot">
      An agent is a program that accesses credentials through leases, under its own name and key. Register the first one
      above, or run this command on its machine, which creates the key there.
    </EmptyState>
  );
}
