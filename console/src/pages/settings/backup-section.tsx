/** Backups: the newest one, how to take them on a schedule, and a download for an admin. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Badge } from '../../components/badge.tsx';
import { Copyable } from '../../components/copyable.tsx';
import { saveFile } from '../../components/download.ts';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { announce } from '../../components/live-region.tsx';
import { Time } from '../../components/time.tsx';
import { client } from '../../session/console-client.ts';
import { useRole } from '../../session/use-session.ts';

const NDJSON = 'application/x-ndjson';

export function BackupSection() {
  const { data, error, refetch } = useQuery({
    queryKey: ['newest-backup'],
    queryFn: ({ signal }) => client.audit.list({ event_type: 'service.backup_result', limit: 1 }, { signal }),
  });
  const newest = data?.data[0];
  return (
    <>
      <section className="setting" aria-label="Newest backup">
        <h2>Newest backup</h2>
        {error !== null && <ErrorPanel error={error} onRetry={() => void refetch()} />}
        {data !== undefined && newest === undefined && (
          <p className="notice warning">No backup was taken yet. If this machine is lost, so is the vault.</p>
        )}
        {newest !== undefined && (
          <p>
            <Time at={newest.timestamp} />{' '}
            <Badge
              text={newest.result === 'allowed' ? 'complete' : 'incomplete'}
              tone={newest.result === 'allowed' ? 'good' : 'danger'}
            />{' '}
            {newest.reason}
          </p>
        )}
      </section>
      <section className="setting" aria-label="Schedule">
        <h2>On a schedule</h2>
        <p>
          The command encrypts a backup and reads it again. A systemd timer runs it every six hours and deletes old
          ones: deploy/leasehold-backup.timer.
        </p>
        <Copyable text="leasehold backup /backups --recipients-file operators.txt" what="the command" />
      </section>
      <section className="setting" aria-label="Drill">
        <h2>Drill</h2>
        <p>A backup that was never restored is a hope. Read one completely, then restore it to an empty directory:</p>
        <p>
          <Copyable
            text="leasehold backup vault.age --verify --identity-file backup-key.txt"
            what="the command that reads it"
          />
        </p>
        <p>
          <Copyable
            text="leasehold restore vault.age --data-dir DRILL --identity-file backup-key.txt"
            what="the command that restores it"
          />
        </p>
      </section>
      <Download onTaken={() => void refetch()} />
    </>
  );
}

function Download({ onTaken }: { readonly onTaken: () => void }) {
  const isAdmin = useRole('admin');
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const take = async (): Promise<void> => {
    setRunning(true);
    setError(null);
    try {
      const records = await new Response(await client.backup()).blob();
      saveFile('leasehold-backup.ndjson', NDJSON, [records]);
      announce('The backup is saved.');
      onTaken();
    } catch (failure) {
      setError(failure);
    } finally {
      setRunning(false);
    }
  };
  return (
    <section className="setting" aria-label="Download">
      <h2>Download</h2>
      <p>
        Saves the records as the service streams them. Values in them stay sealed, but names, policies and the log are
        readable: the command encrypts the file, this download does not.
      </p>
      <p>Encrypt it before it leaves this machine; only then can it be restored:</p>
      <Copyable text="zstd -c leasehold-backup.ndjson | age -r age1… > vault.age" what="the command that encrypts it" />
      {error !== null && <ErrorPanel error={error} />}
      <button type="button" disabled={!isAdmin || isRunning} onClick={() => void take()}>
        {isRunning ? 'Taking the backup …' : 'Download a backup'}
      </button>
      {!isAdmin && <p className="hint">Needs the role admin.</p>}
    </section>
  );
}
