/** The leases of an agent, its exposure by credential, and its last login. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { CredentialExposure, Page } from '../../../../src/client/types.ts';
import { QueryState } from '../../components/states.tsx';
import { Badge, CredentialLink, EntriesLink, Time } from '../../components/texts.tsx';
import { countText } from '../../components/words.ts';
import { client } from '../../session/console-client.ts';
import { intervalOf } from '../../session/queries.ts';
import { useHeld } from './use-held.ts';

const ROWS = 20;
const MAX_ROWS = 1000;
const LEASES_INTERVAL_MS = 2000;
const EXPOSURE_INTERVAL_MS = 5000;

interface ListProps<T> {
  readonly label: string;
  readonly queryKey: readonly unknown[];
  readonly read: (limit: number, signal: AbortSignal) => Promise<Page<T>>;
  readonly keyOf: (row: T) => string;
  readonly row: (row: T) => ReactNode;
  readonly empty: string;
  readonly intervalMs: number;
}

/** The first rows of a list, and further rows on demand. */
function ShortList<T>({ label, queryKey, read, keyOf, row, empty, intervalMs }: ListProps<T>) {
  const [limit, setLimit] = useState(ROWS);
  const list = useQuery({
    queryKey: [...queryKey, limit],
    queryFn: ({ signal }) => read(limit, signal),
    placeholderData: keepPreviousData,
    refetchInterval: intervalOf(intervalMs),
  });
  if (list.data === undefined || list.error !== null) return <QueryState query={list} what={label} />;
  const { data: rows, meta } = list.data;
  const { total } = meta;
  if (total === 0) return <p className="hint">{empty}</p>;
  return (
    <>
      <p className="count">{total.toLocaleString('en')} in all</p>
      <ul className="rows" aria-label={label}>
        {rows.map((each) => (
          <li key={keyOf(each)}>{row(each)}</li>
        ))}
      </ul>
      {total > limit && limit < MAX_ROWS && (
        <button type="button" onClick={() => setLimit(Math.min(MAX_ROWS, limit * 5))}>
          Show more
        </button>
      )}
    </>
  );
}

export function Leases({ agent }: { readonly agent: string }) {
  const [isAll, setAll] = useState(false);
  const status = isAll ? {} : ({ status: 'active' } as const);
  return (
    <section aria-label="Leases">
      <h3>{isAll ? 'Leases' : 'Active leases'}</h3>
      <label className="toggle">
        <input type="checkbox" checked={isAll} onChange={({ target }) => setAll(target.checked)} />
        Include ended leases
      </label>
      <ShortList
        key={String(isAll)}
        label="Leases"
        queryKey={['leases', agent, isAll]}
        read={(limit, signal) => client.leases.list({ agent, ...status, limit }, { signal })}
        keyOf={({ lease_id }) => lease_id}
        row={({ path, version, policy_name, expires_at, status: state }) => (
          <>
            <CredentialLink path={path} /> <Badge text={state} tone={state === 'active' ? 'good' : 'neutral'} />
            <p className="hint">
              version {version}, by {policy_name}, until <Time at={expires_at} />
            </p>
          </>
        )}
        empty="No leases."
        intervalMs={LEASES_INTERVAL_MS}
      />
    </section>
  );
}

export function Exposure({ agent }: { readonly agent: string }) {
  return (
    <section aria-label="Exposure">
      <h3>Credentials seen and used</h3>
      <ShortList
        label="Credentials"
        queryKey={['exposure', agent]}
        read={(limit, signal) => client.exposure.list({ agent, limit }, { signal })}
        keyOf={({ path }) => path}
        row={(exposure) => <Exposed exposure={exposure} />}
        empty="No credentials were seen or used."
        intervalMs={EXPOSURE_INTERVAL_MS}
      />
    </section>
  );
}

function Exposed({ exposure: { path, versions } }: { readonly exposure: CredentialExposure }) {
  const hasSeen = versions.some(({ seen_by }) => seen_by.length > 0);
  return (
    <>
      <CredentialLink path={path} />{' '}
      <Badge text={hasSeen ? 'seen: rotate' : 'used only'} tone={hasSeen ? 'warning' : 'neutral'} />
      {versions.map(({ version, deleted, seen_by, used_by }) => (
        <p key={`${version}:${deleted}`} className="hint">
          version {version}
          {deleted ? ' (deleted)' : ''}: {countOf('seen', seen_by)}
          {seen_by.length > 0 && used_by.length > 0 ? ', ' : ''}
          {countOf('used', used_by)}
        </p>
      ))}
    </>
  );
}

function countOf(verb: string, by: CredentialExposure['versions'][number]['seen_by']): ReactNode {
  const [first] = by;
  if (first === undefined) return null;
  return (
    <>
      {verb} {countText(first.times, 'time')}, last <Time at={first.last_at} />
    </>
  );
}

export function Sessions({ agent }: { readonly agent: string }) {
  const { data } = useQuery({
    queryKey: ['last-login', agent],
    queryFn: ({ signal }) =>
      client.audit.list({ agent, event_type: 'auth.verify', result: 'allowed', limit: 1 }, { signal }),
    refetchInterval: intervalOf(EXPOSURE_INTERVAL_MS),
  });
  const [last] = data?.data ?? [];
  const { sessions } = useHeld(agent);
  return (
    <section aria-label="Sessions">
      <h3>Sessions</h3>
      {sessions !== undefined && <p>{`${countText(sessions, 'active session')}. A session lasts one hour.`}</p>}
      <p>
        {data !== undefined && last === undefined && 'No login yet.'}
        {last !== undefined && (
          <>
            Its last login was <Time at={last.timestamp} />.
          </>
        )}
      </p>
      <EntriesLink principal={agent} />
    </section>
  );
}
