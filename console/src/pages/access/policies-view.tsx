/** The policies as a table, each with a sentence about its grants, and the editor. */
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useSearchParams } from 'wouter';
import type { Policy as PolicyText } from '../../../../src/client/types.ts';
import { entriesOf } from '../../../../src/engine/field.ts';
import { shownFields } from '../../../../src/vault/policies/comparison.ts';
import { Policy, type PolicyDraft } from '../../../../src/vault/policies/policy.ts';
import { DataTable, type TableColumn } from '../../components/data-table.tsx';
import { refreshOnConflict } from '../../components/edit-conflict.tsx';
import { FilterBar, type FilterField, useFilters, useSetParameters } from '../../components/filter-bar.tsx';
import { ConfirmDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { type PagedRows, toRows, usePagedRows } from '../../components/paged-rows.ts';
import { RoleButton, RoleHint } from '../../components/role-button.tsx';
import { Facts, SidePanel } from '../../components/side-panel.tsx';
import { EmptyState, ErrorPanel, QueryState } from '../../components/states.tsx';
import { Time } from '../../components/texts.tsx';
import { countText, durationText } from '../../components/words.ts';
import { client, useRole } from '../../session/console-client.ts';
import { PolicyEditor } from './policy-editor.tsx';
import { sentenceOf } from './policy-sentence.ts';
import { forgetDecisions } from './save-policy.ts';

/** The optional fields of a policy, each with its title. */
const OPTIONAL_FIELDS = entriesOf(Policy.fields).flatMap(({ wire, field: { presence, form, label = wire } }) =>
  presence === 'optional' ? [{ wire, title: form.kind === 'record' ? form.title : label, form }] : [],
);

function optionalCells(policy: PolicyText): [title: string, cell: ReactNode][] {
  const shown = shownFields(Policy.fromReply(policy));
  return OPTIONAL_FIELDS.map(({ wire, title, form }) => {
    const text = [shown[wire] ?? []].flat().join(', ');
    return [title, text === '' ? null : form.kind === 'time' ? <Time key={wire} at={text} /> : text];
  });
}

const COLUMNS: readonly TableColumn<PolicyText>[] = [
  { title: 'Name', width: 'minmax(9rem, 1fr)', cell: ({ name }) => name },
  { title: 'Principal', width: 'minmax(9rem, 1fr)', cell: ({ principal }) => principal },
  { title: 'Actions', width: 'minmax(7rem, 1fr)', cell: ({ actions }) => actions.join(', ') },
  { title: 'Resources', width: 'minmax(9rem, 2fr)', cell: ({ resources }) => resources.join(', ') },
  { title: 'Longest lease', width: '7rem', cell: ({ max_ttl }) => durationText(max_ttl) },
  ...OPTIONAL_FIELDS.map(({ title }, at) => ({
    title,
    width: 'minmax(6rem, 1fr)',
    cell: (policy: PolicyText) => optionalCells(policy)[at]?.[1],
  })),
  { title: 'Created', width: '11rem', cell: ({ created_at }) => <Time at={created_at} /> },
];
const FIELDS: readonly FilterField[] = [{ name: 'q', label: 'Find', placeholder: 'name, agent or path' }];
const keyOf = ({ name }: PolicyText): string => name;

export function PoliciesView() {
  const [parameters] = useSearchParams();
  const setParameters = useSetParameters();
  const [isCreating, setCreating] = useState(false);
  const open = parameters.get('policy');
  const { q } = useFilters(FIELDS);
  const { rows, isTruncated } = usePolicyRows(q);
  return (
    <>
      <FilterBar fields={FIELDS} label="Find policies" />
      <div className="page-actions">
        <RoleButton needs="editor" className="primary" onClick={() => setCreating(true)}>
          New policy
        </RoleButton>
        {!rows.isPending && rows.error === null && (
          <span className="count">{countText(rows.total, 'policy', 'policies')}</span>
        )}
      </div>
      {isTruncated && (
        <p className="hint">
          The first {MAX_FILTERED.toLocaleString('en')} policies were searched. Press / to find others by name.
        </p>
      )}
      {rows.error !== null && <ErrorPanel error={rows.error} onRetry={rows.refetch} />}
      <div className="split">
        <DataTable
          label="Policies by name"
          columns={COLUMNS}
          rows={rows}
          keyOf={keyOf}
          openKey={open}
          onOpen={({ name }) => setParameters({ view: 'policies', policy: name })}
          empty={<NoPolicies isFiltered={q !== undefined} />}
        />
        {open !== null && <PolicyPanel key={open} name={open} onClose={() => setParameters({ policy: null })} />}
      </div>
      {isCreating && (
        <PolicyEditor
          policy={null}
          onClose={() => setCreating(false)}
          onSaved={(name) => {
            setCreating(false);
            setParameters({ view: 'policies', policy: name });
          }}
        />
      )}
    </>
  );
}

function NoPolicies({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <EmptyState title="No matching policies">
        Clear the filter to see all. Patterns are compared as they are written; the simulator finds the policies that
        match a path.
      </EmptyState>
    );
  }
  return (
    <EmptyState
      title="No policies yet: every request is denied"
      command="leasehold policy put ci-reads-demo --principal agent:ci-runner --resource 'demo/*' --action retrieve"
    >
      A policy names an agent, actions and paths. Create the first one with the button or this command.
    </EmptyState>
  );
}

function PolicyPanel({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const isEditor = useRole('editor');
  const [dialog, setDialog] = useState<'edit' | 'delete' | null>(null);
  const read = useQuery({
    queryKey: ['policy', name],
    queryFn: ({ signal }) => client.policies.readTagged(name, { signal }),
  });
  const { data } = read;
  const text = data?.data;
  const policy: PolicyDraft | null = text === undefined ? null : Policy.fromReply(text);
  const remove = async (): Promise<void> => {
    // After a conflict, the dialog describes the present policy.
    const deletion = client.policies.delete(name, data === undefined ? {} : { ifMatch: data.tag });
    await refreshOnConflict(deletion, () => read.refetch());
    announce(`The policy ${name} is deleted.`);
    onClose();
    await forgetDecisions();
  };
  return (
    <SidePanel title={name} onClose={onClose}>
      <QueryState query={read} what="the policy" />
      {data !== undefined && text !== undefined && policy !== null && (
        <>
          <p>{sentenceOf(policy)}</p>
          <Facts
            rows={[
              ['Principal', text.principal],
              ['Actions', text.actions.join(', ')],
              ['Resources', <List key="resources" texts={text.resources} />],
              ['Longest lease', durationText(text.max_ttl)],
              ...optionalCells(text),
              ['Created', <Time key="created" at={text.created_at} />],
            ]}
          />
          {isEditor ? (
            <div className="buttons">
              <button type="button" onClick={() => setDialog('edit')}>
                Edit
              </button>
              <button type="button" className="danger" onClick={() => setDialog('delete')}>
                Delete
              </button>
            </div>
          ) : (
            <RoleHint needs="editor" />
          )}
          {dialog === 'edit' && (
            <PolicyEditor policy={data} onClose={() => setDialog(null)} onSaved={() => setDialog(null)} />
          )}
          <ConfirmDialog
            isOpen={dialog === 'delete'}
            title={`Delete the policy ${name}?`}
            verb="Delete the policy"
            typed={name}
            onConfirm={remove}
            onClose={() => setDialog(null)}
          >
            <p>This ends, unless another policy grants it too: {sentenceOf(policy)}</p>
            <p>Leases that were already issued stay valid until they expire or are revoked.</p>
          </ConfirmDialog>
        </>
      )}
    </SidePanel>
  );
}

function List({ texts }: { readonly texts: readonly string[] }) {
  return (
    <ul>
      {texts.map((text) => (
        <li key={text}>
          <code>{text}</code>
        </li>
      ))}
    </ul>
  );
}

const PAGE_ROWS = 1000;
/** Limit for a filter. The server does not filter policies, so the page reads them all. */
const MAX_FILTERED = 10_000;

interface Filtered {
  readonly policies: readonly PolicyText[];
  /** Whether more policies exist than were read. */
  readonly isTruncated: boolean;
}

async function readAll(signal: AbortSignal): Promise<Filtered> {
  const policies: PolicyText[] = [];
  for (;;) {
    const { data } = await client.policies.list({ offset: policies.length, limit: PAGE_ROWS }, { signal });
    policies.push(...data);
    if (data.length < PAGE_ROWS) return { policies, isTruncated: false };
    if (policies.length >= MAX_FILTERED) return { policies, isTruncated: true };
  }
}

interface PolicyRows {
  readonly rows: PagedRows<PolicyText>;
  readonly isTruncated: boolean;
}

/** `text`: undefined for all policies. */
function usePolicyRows(text: string | undefined): PolicyRows {
  const all = usePagedRows<PolicyText>({
    queryKey: ['policies', 'pages'],
    read: (page, signal) => client.policies.list(page, { signal }),
  });
  const { data, isPending, error, refetch } = useQuery({
    queryKey: ['policies', 'all'],
    queryFn: ({ signal }) => readAll(signal),
    enabled: text !== undefined,
  });
  if (text === undefined) return { rows: all, isTruncated: false };
  const wanted = text.toLowerCase();
  const found = data?.policies.filter(({ name, principal, resources }) =>
    [name, principal, ...resources].some((each) => each.toLowerCase().includes(wanted)),
  );
  const rows = { ...toRows(found ?? []), isPending, error, refetch: () => void refetch() };
  return { rows, isTruncated: data?.isTruncated === true };
}
