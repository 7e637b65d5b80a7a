/** The nodes of the server, the evidence of its audit log, its version, and its documentation. */
import { useQuery } from '@tanstack/react-query';
import { Facts } from '../../components/side-panel.tsx';
import { QueryState } from '../../components/states.tsx';
import { Badge, Copyable, Time } from '../../components/texts.tsx';
import { client } from '../../session/console-client.ts';

const INTERVAL_MS = 5000;

export function AboutSection() {
  const nodes = useQuery({
    queryKey: ['nodes'],
    queryFn: ({ signal }) => client.overview.nodes({ signal }),
    refetchInterval: INTERVAL_MS,
  });
  const version = nodes.data?.find(({ is_self }) => is_self)?.version;
  return (
    <>
      <section className="setting" aria-label="Nodes">
        <h2>Nodes</h2>
        <QueryState query={nodes} what="the nodes" />
        <ul className="rows">
          {nodes.data?.map(({ name, version: runs, started_at, status, is_self, seen_at, newest_seq }) => (
            <li key={`${name}:${started_at}`}>
              <strong>{name}</strong>{' '}
              {is_self && (
                <Badge
                  text={status === 'ok' ? 'responds to you' : (status ?? 'responds to you')}
                  tone={status === 'ok' ? 'good' : 'warning'}
                />
              )}
              <p className="hint">
                version {runs}, started <Time at={started_at} />
                {is_self ? `, newest entry ${newest_seq ?? 0}` : null}
                {!is_self && (
                  <>
                    , last seen <Time at={seen_at} />
                  </>
                )}
              </p>
            </li>
          ))}
        </ul>
      </section>
      <EvidenceSection />
      <section className="setting" aria-label="About">
        <h2>About</h2>
        <p>Leasehold {version ?? ''}. The documentation is in the directory docs of the installation.</p>
        <ul>
          <li>
            <a href="/openapi.json">The HTTP API as an OpenAPI document</a>
          </li>
        </ul>
      </section>
    </>
  );
}

function EvidenceSection() {
  const checkpoint = useQuery({
    queryKey: ['newest-checkpoint'],
    queryFn: ({ signal }) => client.audit.readCheckpoint({ signal }),
    refetchInterval: INTERVAL_MS,
  });
  const { data, error } = checkpoint;
  return (
    <section className="setting" aria-label="Evidence of the audit log">
      <h2>Evidence of the audit log</h2>
      <p>
        A signed checkpoint proves the audit log to third parties. The rollback marker in the data directory detects a
        startup with an older database. See docs/audit.md.
      </p>
      <QueryState query={checkpoint} what="the newest checkpoint" />
      {data !== undefined && error === null && (
        <Facts
          rows={[
            ['Newest', <Time key="signed" at={data.signed_at} />],
            ['Entries', data.size.toLocaleString('en')],
            ['Root', <Copyable key="root" text={data.root} what="the root" />],
            ['Public key', <Copyable key="key" text={data.verifier_key} what="the public key of the audit log" />],
          ]}
        />
      )}
    </section>
  );
}
