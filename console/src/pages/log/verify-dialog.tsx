/** Verifies the whole log, shows the progress, and links to the first break. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import type { Verification as Verified } from '../../../../src/client/types.ts';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { ModalDialog } from '../../components/form-dialog.tsx';
import { api, client } from '../../session/console-client.ts';
import { BreakNeighbours } from './break-neighbours.tsx';

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
