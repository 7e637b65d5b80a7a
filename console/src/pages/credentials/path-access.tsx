/** Which agents may do what on one path, with the reasons. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { Loading } from '../../components/loading.tsx';
import { client } from '../../session/console-client.ts';

const AGENTS_SHOWN = 50;

export function PathAccess({ path }: { readonly path: string }) {
  const [offset, setOffset] = useState(0);
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['path-access', path, offset],
    queryFn: ({ signal }) =>
      // The path itself is before those below it.
      client.overview.matrix(
        { prefix: path, path_limit: 1, agent_offset: offset, agent_limit: AGENTS_SHOWN },
        { signal },
      ),
    placeholderData: keepPreviousData,
  });
  const total = data?.agents_total ?? 0;
  const agents = (data?.agents ?? []).map(({ name }, index) => ({
    name,
    allowed: (data?.actions ?? []).flatMap((action, at) => {
      const decision = data?.decisions[data.cells[index]?.[0]?.[at] ?? -1];
      return decision?.allowed === true ? [{ action, reason: decision.reason }] : [];
    }),
  }));
  const shown = agents.filter(({ allowed }) => allowed.length > 0);
  return (
    <section className="panel-section" aria-label="Who may do what">
      <h3>Who may do what</h3>
      {isPending && <Loading what="the decisions" />}
      {error !== null && <ErrorPanel error={error} onRetry={() => void refetch()} />}
      {data !== undefined && shown.length === 0 && (
        <p>{total === 0 ? 'No agents yet.' : 'None of these agents may do anything here.'}</p>
      )}
      <ul>
        {shown.map(({ name, allowed }) => (
          <li key={name}>
            <details>
              <summary>
                {name}: {allowed.map(({ action }) => action).join(', ')}
              </summary>
              <ul>
                {allowed.map(({ action, reason }) => (
                  <li key={action} className="hint">
                    {reason}
                  </li>
                ))}
              </ul>
              <Link href={simulatorOf(name, allowed[0]?.action ?? 'retrieve', path)}>Open the simulator</Link>
            </details>
          </li>
        ))}
      </ul>
      {total > 0 && (
        <div className="buttons">
          <span className="count">
            {`${shown.length} of agents ${Math.min(offset + 1, total)}–${offset + agents.length} of ${total}`}
          </span>
          {total > AGENTS_SHOWN && (
            <>
              <button
                type="button"
                className="small"
                disabled={offset === 0}
                onClick={() => setOffset(Math.max(0, offset - AGENTS_SHOWN))}
              >
                Previous agents
              </button>
              <button
                type="button"
                className="small"
                disabled={offset + AGENTS_SHOWN >= total}
                onClick={() => setOffset(offset + AGENTS_SHOWN)}
              >
                Next agents
              </button>
            </>
          )}
        </div>
      )}
    </section>
  );
}

function simulatorOf(agent: string, action: string, path: string): string {
  return `/access?${new URLSearchParams({ view: 'simulator', for: agent, action, path }).toString()}`;
}
