/** Backups: the newest one, the command that takes one, and a download for an admin. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { saveFile } from '../../components/download.ts';
import { announce } from '../../components/live-region.tsx';
import { RoleButton, RoleHint } from '../../components/role-button.tsx';
import { ErrorPanel } from '../../components/states.tsx';
import { Badge, Copyable, Time } from '../../components/texts.tsx';
import { client } from '../../session/console-client.ts';

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
          <p className="notice warning">
            No backup exists yet. Without a backup, losing this machine means losing the vault.
          </p>
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
      <section className="setting" aria-label="With the CLI">
        <h2>With the CLI</h2>
        <p>
          The CLI encrypts a backup and reads it again. docs/backup.md describes the timer that runs it, and how to
          practise a restore.
        </p>
        <Copyable text="leasehold backup /backups --recipients-file operators.txt" what="the command" />
      </section>
      <Download onTaken={() => void refetch()} />
    </>
  );
}

function Download({ onTaken }: { readonly onTaken: () => void }) {
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
        Saves the records as the server streams them. Values in them stay encrypted, but names, policies and the audit
        log are readable: the CLI encrypts the file, this download does not.
      </p>
      <p>Encrypt it before it leaves this machine; only then can it be restored:</p>
      <Copyable text="zstd -c leasehold-backup.ndjson | age -r age1… > vault.age" what="the command that encrypts it" />
      {error !== null && <ErrorPanel error={error} />}
      <RoleButton needs="admin" disabled={isRunning} onClick={() => void take()}>
        {isRunning ? 'Taking the backup…' : 'Download a backup'}
      </RoleButton>
      <RoleHint needs="admin" />
    </section>
  );
}
