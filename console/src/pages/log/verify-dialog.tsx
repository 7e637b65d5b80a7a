/** Verifies the whole audit log, shows the progress, and the entries around the first break. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import type { AuditEntry, Verification as Verified } from '../../../../src/client/types.ts';
import { ModalDialog } from '../../components/form-dialog.tsx';
import { ErrorPanel, QueryState } from '../../components/states.tsx';
import { Badge, Time } from '../../components/texts.tsx';
import { api, client } from '../../session/console-client.ts';

/** Verifying tens of millions of entries takes minutes. */
const TIMEOUT_MS = 30 * 60_000;
const PROGRESS_INTERVAL_MS = 500;

interface Props {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

export function VerifyDialog({ isOpen, onClose }: Props) {
  return (
    <ModalDialog isOpen={isOpen} title="Verify the audit log" className="wide" onClose={onClose}>
      <Verification />
      <div className="buttons">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </ModalDialog>
  );
}

function Verification() {
  const running = useRef<AbortController | null>(null);
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => {
      running.current = new AbortController();
      const { signal } = running.current;
      // The client's default limit is for calls that take seconds.
      return api.read<Verified>('/api/v1/audit/verify', {}, { signal, timeoutMs: TIMEOUT_MS });
    },
  });
  const progress = useQuery({
    queryKey: ['audit-verify-progress'],
    queryFn: ({ signal }) => client.audit.readProgress({ signal }),
    refetchInterval: PROGRESS_INTERVAL_MS,
    enabled: isPending,
  });
  const isStarted = useRef(false);
  useEffect(() => {
    if (!isStarted.current) mutate();
    isStarted.current = true;
  }, [mutate]);
  useEffect(() => () => running.current?.abort(), []);
  if (error !== null) return <ErrorPanel error={error} onRetry={() => mutate()} />;
  if (data === undefined) {
    const { entries_checked: checked = null, entries_total: total = null } = progress.data ?? {};
    return (
      <div role="status">
        <p>
          {checked === null || total === null
            ? 'Reading every entry…'
            : `${checked.toLocaleString('en')} of ${total.toLocaleString('en')} entries`}
        </p>
        <progress aria-label="Progress of the verification" {...(total ? { max: total, value: checked ?? 0 } : {})} />
      </div>
    );
  }
  return <Finding found={data} />;
}

function Finding({ found }: { readonly found: Verified }) {
  return (
    <div className="finding">
      <p role="status" className={`notice ${found.valid ? 'good' : 'danger'}`}>
        {found.valid
          ? `The chain is intact: ${found.entries.toLocaleString('en')} entries, every MAC computed again.`
          : `The audit log was modified at entry ${found.break_at_entry}. ${found.message}`}
      </p>
      {!found.valid && <BreakNeighbours breakAt={found.break_at_entry} message={found.message} />}
      {!found.valid && (
        <p>
          Keep a copy of the database, and compare the audit log with an export or a checkpoint that was kept elsewhere:{' '}
          <code>leasehold audit verify --checkpoint FILE</code>.
        </p>
      )}
    </div>
  );
}

const NEIGHBOURS = 3;
const SHOWN_MAC_CHARACTERS = 10;

interface NeighboursProps {
  readonly breakAt: number;
  /** The result of the verification, as a sentence. */
  readonly message: string;
}

function verdictOf(seq: number, breakAt: number, isMissing: boolean) {
  if (seq < breakAt) return <Badge text="intact" tone="good" />;
  if (seq > breakAt) return <Badge text="not proven: it continues a broken chain" />;
  return <Badge text={isMissing ? 'missing' : 'broken here'} tone="danger" />;
}

/** The stored entries on both sides of a break, each with its fault. */
function BreakNeighbours({ breakAt, message }: NeighboursProps) {
  const around = useQuery({
    queryKey: ['audit-around', breakAt],
    queryFn: ({ signal }) => {
      const after = Math.max(0, breakAt - 1 - NEIGHBOURS);
      const range = { after, before: breakAt + NEIGHBOURS + 1, order: 'asc', limit: 2 * NEIGHBOURS + 1 } as const;
      return client.audit.list(range, { signal });
    },
  });
  if (around.data === undefined) return <QueryState query={around} what="the entries around the break" />;
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
