/** One entry with all its fields, and the receipt with which a third party verifies it. */
import { useQuery } from '@tanstack/react-query';
import type { AuditEntry } from '../../../../src/client/types.ts';
import { saveFile } from '../../components/download.ts';
import { Facts, SidePanel } from '../../components/side-panel.tsx';
import { ErrorPanel, QueryState } from '../../components/states.tsx';
import { Copyable, Time } from '../../components/texts.tsx';
import { client } from '../../session/console-client.ts';

/** Reads an entry. Entries are numbered without gaps, so the oldest-first list has entry N at N - 1. */
async function readEntry(seq: number, signal: AbortSignal): Promise<AuditEntry | null> {
  const { data } = await client.audit.list({ order: 'asc', offset: seq - 1, limit: 1 }, { signal });
  return data[0]?.seq === seq ? data[0] : null;
}

const COPIED: ReadonlySet<string> = new Set(['id', 'request_id', 'lease_id', 'hmac']);

/** The label of a field: `event_type` becomes `event type`. */
const labelOf = (name: string): string =>
  name
    .replaceAll('_', ' ')
    .replace(/\b(?:id|hmac|ip)\b/g, (word) => word.toUpperCase())
    .replace(/^seq$/, 'number')
    .replace(/ addr$/, ' address');

function toFact([name, value]: readonly [string, string | number | null]) {
  const label = labelOf(name);
  if (value === null) return [label, null] as const;
  if (name === 'timestamp') return ['time', <Time key={name} at={String(value)} isPrecise />] as const;
  if (COPIED.has(name)) return [label, <Copyable key={name} text={String(value)} what={`the ${label}`} />] as const;
  return [label, String(value)] as const;
}

export function EntryPanel({ seq, onClose }: { readonly seq: string; readonly onClose: () => void }) {
  const number = /^[1-9]\d{0,14}$/.test(seq) ? Number(seq) : null;
  const entry = useQuery({
    queryKey: ['audit-entry', number],
    queryFn: ({ signal }) => (number === null ? null : readEntry(number, signal)),
  });
  return (
    <SidePanel title={`Entry ${number ?? ''}`} onClose={onClose}>
      <QueryState query={entry} what="the entry" />
      {entry.data === null && <p>The audit log contains no entry with this number.</p>}
      {entry.data != null && (
        <>
          <Facts rows={Object.entries(entry.data).map(toFact)} />
          <Receipt seq={entry.data.seq} />
        </>
      )}
    </SidePanel>
  );
}

function Receipt({ seq }: { readonly seq: number }) {
  const receipt = useQuery({
    queryKey: ['audit-receipt', seq],
    queryFn: ({ signal }) => client.audit.proveEntry(seq, { signal }),
    enabled: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const { data, error, isFetching } = receipt;
  return (
    <section aria-label="Receipt">
      <h3>Receipt</h3>
      <p>Proves to anyone who has the public key that this entry is in the audit log.</p>
      {data === undefined && (
        <button type="button" disabled={isFetching} onClick={() => void receipt.refetch()}>
          {isFetching ? 'Creating the receipt…' : 'Create the receipt'}
        </button>
      )}
      {error !== null && <ErrorPanel error={error} />}
      {data !== undefined && (
        <>
          <Facts
            rows={[
              ['tree size', data.size],
              ['hashes', data.proof.length],
              ['public key', <Copyable key="key" text={data.verifier_key} what="the public key" />],
            ]}
          />
          <button type="button" onClick={() => saveFile(`entry-${seq}.tlog-proof`, 'text/plain', [data.receipt])}>
            Save the receipt
          </button>
        </>
      )}
    </section>
  );
}
