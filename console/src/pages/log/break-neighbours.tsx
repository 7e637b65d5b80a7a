/** The stored entries on both sides of a break, each with its fault. */
import { useQuery } from '@tanstack/react-query';
import type { AuditEntry } from '../../../../src/client/types.ts';
import { Badge } from '../../components/badge.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { Loading } from '../../components/loading.tsx';
import { Time } from '../../components/time.tsx';
import { client } from '../../session/console-client.ts';

const NEIGHBOURS = 3;
const SHOWN_MAC_CHARACTERS = 10;

interface Props {
  readonly breakAt: number;
  /** The result of the verification, as a sentence. */
  readonly message: string;
}

function verdictOf(seq: number, breakAt: number, isMissing: boolean) {
  if (seq < breakAt) return <Badge text="intact" tone="good" />;
  if (seq > breakAt) return <Badge text="not proven: it continues a broken chain" />;
  return <Badge text={isMissing ? 'missing' : 'broken here'} tone="danger" />;
}

export function BreakNeighbours({ breakAt, message }: Props) {
  const around = useQuery({
    queryKey: ['audit-around', breakAt],
    queryFn: ({ signal }) => {
      const after = Math.max(0, breakAt - 1 - NEIGHBOURS);
      const range = { after, before: breakAt + NEIGHBOURS + 1, order: 'asc', limit: 2 * NEIGHBOURS + 1 } as const;
      return client.audit.list(range, { signal });
    },
  });
  if (around.error !== null) return <ErrorPanel error={around.error} />;
  if (around.data === undefined) return <Loading what="the entries around the break" />;
  const { data } = around.data;
  const known = new Map(data.map((entry) => [entry.seq, entry]));
  const rows = [...new Set([...known.keys(), breakAt])].sort((a, b) => a - b);
  return (
    <>
      <h3>Around the break</h3>
      <table className="neighbours">
        <thead>
          <tr>
            <th scope="col">No.</th>
            <th scope="col">Entry</th>
            <th scope="col">MAC begins</th>
            <th scope="col">Fault</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((seq) => (
            <tr key={seq} className={seq === breakAt ? 'broken' : ''}>
              <th scope="row">{seq.toLocaleString('en')}</th>
              <td>
                <EntryText entry={known.get(seq)} />
              </td>
              <td>
                <code>{known.get(seq)?.hmac.slice(0, SHOWN_MAC_CHARACTERS) ?? '–'}</code>
              </td>
              <td>
                {verdictOf(seq, breakAt, !known.has(seq))}
                {seq === breakAt && <p>{message}</p>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function EntryText({ entry }: { readonly entry: AuditEntry | undefined }) {
  if (entry === undefined) return <>No entry with this number is stored.</>;
  return (
    <>
      <Time at={entry.timestamp} isPrecise /> {entry.event_type} of {entry.agent_name} on {entry.resource}
    </>
  );
}
