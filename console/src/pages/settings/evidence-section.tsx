/** What proves the log to others: the newest signed checkpoint, and whether checkpoints and the anchor are late. */
import { useQuery } from '@tanstack/react-query';
import { Badge } from '../../components/badge.tsx';
import { Copyable } from '../../components/copyable.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { Loading } from '../../components/loading.tsx';
import { Facts } from '../../components/side-panel.tsx';
import { Time } from '../../components/time.tsx';
import { client } from '../../session/console-client.ts';

const INTERVAL_MS = 5000;

export function EvidenceSection() {
  return (
    <section className="setting" aria-label="Evidence of the log">
      <h2>Evidence of the log</h2>
      <p>
        A signed checkpoint proves the log to others, and the anchor in the data directory shows a start with an older
        database. docs/audit.md describes both.
      </p>
      <Lateness />
      <Checkpoint />
    </section>
  );
}

function Lateness() {
  const { data, error, refetch } = useQuery({
    queryKey: ['attention', 'evidence'],
    queryFn: ({ signal }) => client.overview.attention({ signal }),
    refetchInterval: INTERVAL_MS,
  });
  const stateOf = (kind: string) => {
    const late = data?.items.filter((item) => item.kind === kind) ?? [];
    if (late.length === 0) return <Badge key={kind} text="on time" tone="good" />;
    return (
      <ul key={kind}>
        {late.map(({ text, since }) => (
          <li key={text}>
            <Badge text="late" tone="warning" />{' '}
            {since !== null && (
              <>
                since <Time at={since} />:{' '}
              </>
            )}
            {text}
          </li>
        ))}
      </ul>
    );
  };
  return (
    <>
      {error !== null && <ErrorPanel error={error} onRetry={() => void refetch()} />}
      {data !== undefined && error === null && (
        <Facts
          rows={[
            ['Checkpoints', stateOf('checkpoint_late')],
            ['Anchor', stateOf('anchor_late')],
          ]}
        />
      )}
    </>
  );
}

function Checkpoint() {
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['newest-checkpoint'],
    queryFn: ({ signal }) => client.audit.readCheckpoint({ signal }),
    refetchInterval: INTERVAL_MS,
  });
  if (isPending) return <Loading what="the newest checkpoint" />;
  if (error !== null) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  return (
    <Facts
      rows={[
        ['Newest', <Time key="signed" at={data.signed_at} />],
        ['Entries', data.size.toLocaleString('en')],
        ['Root', <Copyable key="root" text={data.root} what="the root" />],
        ['Public key', <Copyable key="key" text={data.verifier_key} what="the public key of the log" />],
      ]}
    />
  );
}
