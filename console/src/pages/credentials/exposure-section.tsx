/**
 * The exposure of each version of a credential: who has seen it, who has used it without seeing it, and whether to
 * rotate it.
 */
import { useQuery } from '@tanstack/react-query';
import type { CredentialExposure } from '../../../../src/client/types.ts';
import { QueryState } from '../../components/states.tsx';
import { Badge, Time } from '../../components/texts.tsx';
import { client } from '../../session/console-client.ts';

interface Props {
  readonly path: string;
  readonly newest: number;
}

type Version = CredentialExposure['versions'][number];

export function ExposureSection({ path, newest }: Props) {
  const exposure = useQuery({
    queryKey: ['exposure', path],
    queryFn: ({ signal }) => client.exposure.read(path, { signal }),
  });
  const { data } = exposure;
  return (
    <section className="panel-section" aria-label="Exposure">
      <h3>Exposure</h3>
      <QueryState query={exposure} what="the exposure" />
      {data !== undefined && data.versions.length === 0 && <p>No version was seen or used.</p>}
      {data?.versions.map((version) => (
        <VersionExposure
          key={`${version.version}-${version.deleted}`}
          version={version}
          isCurrent={version.version === newest && !version.deleted}
        />
      ))}
    </section>
  );
}

function VersionExposure({ version, isCurrent }: { readonly version: Version; readonly isCurrent: boolean }) {
  const { version: number, deleted, seen_by, used_by } = version;
  const advice =
    seen_by.length === 0
      ? ({ text: 'keep: used, never seen', tone: 'good' } as const)
      : isCurrent
        ? ({ text: 'rotate: the current version was seen', tone: 'warning' } as const)
        : ({ text: 'replaced: withdraw it where it was issued', tone: 'neutral' } as const);
  const rows = [
    ...seen_by.map((each) => ({ ...each, kind: 'seen' })),
    ...used_by.map((each) => ({ ...each, kind: 'used' })),
  ];
  return (
    <>
      <p>
        Version {number}
        {deleted ? ' of a deleted credential' : ''} <Badge {...advice} />
      </p>
      <div className="scrolls">
        <table className="plain-table">
          <caption className="visually-hidden">{`Exposure of version ${number}`}</caption>
          <thead>
            <tr>
              <th scope="col">Agent</th>
              <th scope="col">Exposure</th>
              <th scope="col">Times</th>
              <th scope="col">Last</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ agent_name, kind, times, last_at, live }) => (
              <tr key={`${kind}-${agent_name}`}>
                <td>{agent_name}</td>
                <td>{live ? `${kind}, lease active` : kind}</td>
                <td>{times.toLocaleString('en')}</td>
                <td>
                  <Time at={last_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
