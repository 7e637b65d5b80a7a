/** The audit log: all entries, with filters in the URL, a live tail and details. */
import { useEffect, useState } from 'react';
import { useSearchParams } from 'wouter';
import type { AuditEntry, AuditFilter } from '../../../../src/client/types.ts';
import { EVENT_TYPES } from '../../../../src/core/permissions.ts';
import { RESULTS } from '../../../../src/vault/audit/audit-entry.ts';
import { DataTable, type TableColumn } from '../../components/data-table.tsx';
import { FilterBar, type FilterField, useFilters, useSetParameters } from '../../components/filter-bar.tsx';
import { announceQuietly } from '../../components/live-region.tsx';
import { PageHeading } from '../../components/page-heading.tsx';
import { EmptyState, ErrorPanel } from '../../components/states.tsx';
import { Badge, Time, type Tone } from '../../components/texts.tsx';
import { countText } from '../../components/words.ts';
import { EntryPanel } from './entry-panel.tsx';
import { ExportButton } from './export-button.tsx';
import { useLogRows } from './log-rows.ts';
import { VerifyDialog } from './verify-dialog.tsx';

const TONES: Readonly<Record<string, Tone>> = { allowed: 'good', denied: 'danger', error: 'warning' };

const COLUMNS: readonly TableColumn<AuditEntry>[] = [
  { title: 'No.', width: '5.5rem', leaves: 1, cell: ({ seq }) => seq },
  { title: 'Time', width: '13rem', cell: ({ timestamp }) => <Time at={timestamp} isPrecise /> },
  { title: 'Event', width: 'minmax(9rem, 1fr)', cell: ({ event_type }) => event_type },
  { title: 'Agent', width: 'minmax(7rem, 1fr)', leaves: 2, cell: ({ agent_name }) => agent_name },
  { title: 'Resource', width: 'minmax(9rem, 2fr)', leaves: 3, cell: ({ resource }) => resource },
  { title: 'Result', width: '6.5rem', cell: ({ result }) => <Badge text={result} tone={TONES[result] ?? 'neutral'} /> },
  { title: 'Reason', width: 'minmax(8rem, 2fr)', cell: ({ reason }) => reason ?? '' },
];

const FIELDS: readonly FilterField[] = [
  { name: 'agent', label: 'Agent', placeholder: 'ci-runner' },
  { name: 'resource', label: 'Resource', placeholder: 'prod/*' },
  { name: 'event_type', label: 'Event', suggestions: EVENT_TYPES },
  { name: 'result', label: 'Result', options: RESULTS },
  { name: 'since', label: 'Since', isTime: true },
  { name: 'until', label: 'Until', isTime: true },
];

const countOf = (total: number): string => countText(total, 'entry', 'entries');
const keyOf = ({ seq }: AuditEntry): string => String(seq);

export function LogPage() {
  const filter: AuditFilter = useFilters(FIELDS);
  const [parameters] = useSearchParams();
  const setParameters = useSetParameters();
  const [isVerifying, setVerifying] = useState(false);
  const isTail = parameters.get('tail') === 'on';
  const open = parameters.get('entry');
  const { rows, tail, refresh } = useLogRows(filter, isTail);
  const { total, isPending, error } = rows;
  const isCounted = !isPending && error === null;
  useEffect(() => {
    if (isCounted && !isTail) announceQuietly(countOf(total));
  }, [total, isCounted, isTail]);
  return (
    <>
      <PageHeading title="Audit log">
        <label className="toggle">
          <input
            type="checkbox"
            checked={isTail}
            onChange={({ target }) => setParameters({ tail: target.checked ? 'on' : null })}
          />
          Live
        </label>
        {!isTail && (
          <button type="button" onClick={refresh}>
            Refresh
          </button>
        )}
        <button type="button" onClick={() => setVerifying(true)}>
          Verify
        </button>
        <ExportButton filter={filter} />
      </PageHeading>
      <FilterBar fields={FIELDS} label="Filter the audit log" />
      {error !== null && <ErrorPanel error={error} onRetry={rows.refetch} />}
      {tail.isFull && (
        <p className="notice warning">
          Many entries were added. Refresh to continue with the newest.
          <button type="button" onClick={refresh}>
            Refresh
          </button>
        </p>
      )}
      {error === null && <p className="count">{isPending ? 'Loading…' : countOf(total)}</p>}
      <div className="split">
        <DataTable
          label="Audit entries, newest first"
          columns={COLUMNS}
          rows={rows}
          keyOf={keyOf}
          openKey={open}
          onOpen={({ seq }) => setParameters({ entry: String(seq) })}
          empty={<NoEntries isFiltered={Object.keys(filter).length > 0} />}
        />
        {open !== null && <EntryPanel seq={open} onClose={() => setParameters({ entry: null })} />}
      </div>
      <VerifyDialog isOpen={isVerifying} onClose={() => setVerifying(false)} />
    </>
  );
}

function NoEntries({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return <EmptyState title="No matching entries">Remove a filter, or widen the time range.</EmptyState>;
  }
  return (
    <EmptyState title="The audit log is empty" command="leasehold put demo/first">
      Every decision of the vault is recorded here. Store a first credential to see its entry.
    </EmptyState>
  );
}
