/** The current activity of agents: brokered requests and retrievals, denials with their reasons, and active leases. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { AuditEntry, Lease } from '../../../../src/client/types.ts';
import { AGENT_NAME } from '../../../../src/core/names.ts';
import { Badge, CredentialLink, Time } from '../../components/texts.tsx';
import { client } from '../../session/console-client.ts';
import { liveInterval } from '../../session/queries.ts';
import { useLiveEntries } from './live-entries.ts';
import { Section } from './section.tsx';

const ACTIONS: readonly string[] = ['retrieve', 'use', 'list', 'store', 'delete'];
const LEASES = 8;

/** The simulator's URL; null for a denial that no policy of an agent decides. */
function simulatorUrl(entry: AuditEntry): string | null {
  const { agent_name, action, resource, method, host, target_path } = entry;
  const isDecidedByPolicy = entry.event_type.startsWith('credential.') || entry.event_type.startsWith('lease.');
  if (!isDecidedByPolicy || !AGENT_NAME.test(agent_name) || !ACTIONS.includes(action) || resource === '*') return null;
  const query = new URLSearchParams({ view: 'simulator', for: agent_name, action, path: resource });
  if (method != null) query.set('method', method);
  // An entry records neither scheme nor port, so the simulator reads them from the targets.
  if (host != null) query.set('url', `//${host}${target_path ?? '/'}`);
  return `/access?${query}`;
}

function requestOf({ method, host, target_path }: AuditEntry): string | null {
  return method == null ? null : `${method} ${host ?? ''}${target_path ?? ''}`;
}

function outcomeOf({ event_type, result, status }: AuditEntry) {
  if (result !== 'allowed') return <Badge text={result} tone="warning" />;
  if (event_type === 'credential.use') return <Badge text="running" />;
  return <Badge text={status == null ? 'allowed' : `status ${status}`} tone="good" />;
}

export function Happening() {
  const entries = useLiveEntries();
  return (
    <>
      <Section
        title="Brokered requests and retrievals"
        query={entries}
        empty={{
          isEmpty: entries.data?.happened.length === 0,
          text: 'No brokered requests or retrievals yet.',
        }}
        more={{ href: '/log?tail=on', text: 'Live audit log' }}
      >
        <ul className="now-list">
          {entries.data?.happened.map((entry) => (
            <li key={entry.seq}>
              <Time at={entry.timestamp} />
              <span className="now-what">
                <strong>{entry.agent_name}</strong> {entry.event_type === 'credential.retrieve' ? 'retrieved' : 'used'}{' '}
                <Link href={`/log?entry=${entry.seq}`}>{entry.resource}</Link>
                {requestOf(entry) !== null && <code>{requestOf(entry)}</code>}
              </span>
              {outcomeOf(entry)}
            </li>
          ))}
        </ul>
      </Section>
      <Section
        title="Denials"
        query={entries}
        empty={{ isEmpty: entries.data?.denials.length === 0, text: 'No denials.' }}
        more={{ href: '/log?result=denied', text: 'All denials' }}
      >
        <ul className="now-list">
          {entries.data?.denials.map((entry) => (
            <Denial key={entry.seq} entry={entry} />
          ))}
        </ul>
      </Section>
    </>
  );
}

function Denial({ entry }: { readonly entry: AuditEntry }) {
  const simulator = simulatorUrl(entry);
  return (
    <li>
      <Time at={entry.timestamp} />
      <span className="now-what">
        <strong>{entry.agent_name}</strong> was denied {entry.action} of{' '}
        <Link href={`/log?entry=${entry.seq}`}>{entry.resource}</Link>
        {requestOf(entry) !== null && <code>{requestOf(entry)}</code>}
        <span className="now-reason">{entry.reason ?? 'No reason was recorded.'}</span>
      </span>
      {simulator !== null && (
        <Link href={simulator} aria-label={`Explain why ${entry.agent_name} was denied ${entry.resource}`}>
          Explain
        </Link>
      )}
    </li>
  );
}

export function ActiveLeases() {
  const leases = useQuery({
    queryKey: ['now-leases'],
    queryFn: ({ signal }) => client.leases.list({ status: 'active', limit: LEASES }, { signal }),
    refetchInterval: liveInterval,
  });
  const total = leases.data?.meta.total;
  return (
    <Section
      title="Active leases"
      count={total}
      query={leases}
      empty={{ isEmpty: total === 0, text: 'No active leases.' }}
      more={{ href: '/agents?view=leases&status=active', text: 'All active leases' }}
    >
      <ul className="now-list">
        {leases.data?.data.map((lease) => (
          <LeaseLine key={lease.lease_id} lease={lease} />
        ))}
      </ul>
    </Section>
  );
}

function LeaseLine({ lease: { agent_name, path, expires_at } }: { readonly lease: Lease }) {
  return (
    <li>
      <span className="now-what">
        <strong>{agent_name}</strong> holds <CredentialLink path={path} />
      </span>
      <span>
        until <Time at={expires_at} />
      </span>
    </li>
  );
}
