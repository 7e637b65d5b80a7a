/** What proves the log to others: the newest signed checkpoint. */
import { useQuery } from '@tanstack/react-query';
import { Copyable } from '../../components/copyable.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { Loading } from '../../components/loading.tsx';
import { Facts } from '../../components/side-panel.tsx';
import { Time } from '../../components/time.tsx';
import { client } from '../../session/console-client.ts';

const INTERVAL_MS = 5000;

export function EvidenceSection() {
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['newest-checkpoint'],
    queryFn: ({ signal }) => client.audit.readCheckpoint({ signal }),
    refetchInterval: INTERVAL_MS,
  });
  return (
    <section className="setting" aria-label="Evidence of the log">
      <h2>Evidence of the log</h2>
      <p>
        A signed checkpoint proves the log to others, and the rollback marker in the data directory shows a startup with
        an older database. docs/audit.md describes both.
      </p>
      {isPending && <Loading what="the newest checkpoint" />}
      {error !== null && <ErrorPanel error={error} onRetry={() => void refetch()} />}
      {data !== undefined && error === null && (
        <Facts
          rows={[
            ['Newest', <Time key="signed" at={data.signed_at} />],
            ['Entries', data.size.toLocaleString('en')],
            ['Root', <Copyable key="root" text={data.root} what="the root" />],
            ['Public key', <Copyable key="key" text={data.verifier_key} what="the public key of the log" />],
          ]}
        />
      )}
    </section>
  );
}
