/** The matrix of agents and paths. The filters and both page numbers are in the URL. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useSearchParams } from 'wouter';
import { FilterBar, useFilters, useSetParameters } from '../../components/filter-bar.tsx';
import { EmptyState, QueryState } from '../../components/states.tsx';
import { client } from '../../session/console-client.ts';
import { MatrixGrid } from './matrix-grid.tsx';

const AGENTS_SHOWN = 10;
const PATHS_SHOWN = 50;
const FIELDS = [
  { name: 'agent', label: 'Agents that begin with', placeholder: 'ci-' },
  { name: 'prefix', label: 'Path and below', placeholder: 'prod/db' },
] as const;

const toOffset = (text: string | null): number => (text !== null && /^\d{1,9}$/.test(text) ? Number(text) : 0);

/** `prod/`, `prod/*` and `prod` mean the same. */
const toPrefix = (text: string): string => text.replace(/\/\*?$/, '');

export function MatrixView() {
  const [parameters] = useSearchParams();
  const setParameters = useSetParameters();
  const { agent, prefix } = useFilters(FIELDS);
  const agentOffset = toOffset(parameters.get('agents_from'));
  const pathOffset = toOffset(parameters.get('paths_from'));
  const query = {
    agent_offset: agentOffset,
    agent_limit: AGENTS_SHOWN,
    path_offset: pathOffset,
    path_limit: PATHS_SHOWN,
    ...(agent === undefined ? {} : { agent }),
    ...(prefix === undefined ? {} : { prefix: toPrefix(prefix) }),
  };
  const matrix = useQuery({
    queryKey: ['matrix', query],
    queryFn: ({ signal }) => client.overview.matrix(query, { signal }),
    placeholderData: keepPreviousData,
  });
  const { data } = matrix;
  const isFiltered = agent !== undefined || prefix !== undefined;
  const isEmpty = data !== undefined && (data.agents_total === 0 || data.paths_total === 0);
  return (
    <>
      <FilterBar fields={FIELDS} label="Filter the matrix" />
      <QueryState query={matrix} what="the matrix" />
      {data !== undefined && isEmpty && <NothingToDecide isFiltered={isFiltered} hasAgents={data.agents_total > 0} />}
      {data !== undefined && !isEmpty && (
        <>
          <div className="pagers">
            <Pager
              what="agents"
              offset={agentOffset}
              shown={data.agents.length}
              step={AGENTS_SHOWN}
              total={data.agents_total}
              onMove={(offset) => setParameters({ agents_from: offset === 0 ? null : String(offset) })}
            />
            <Pager
              what="paths"
              offset={pathOffset}
              shown={data.paths.length}
              step={PATHS_SHOWN}
              total={data.paths_total}
              onMove={(offset) => setParameters({ paths_from: offset === 0 ? null : String(offset) })}
            />
          </div>
          <p className="hint">Select a cell to simulate or grant access.</p>
          <MatrixGrid
            matrix={data}
            onOpen={({ agent: name, path, action }) =>
              setParameters({ view: 'simulator', for: name, path, action, method: null, url: null })
            }
          />
        </>
      )}
    </>
  );
}

interface PagerProps {
  readonly what: string;
  readonly offset: number;
  readonly shown: number;
  readonly step: number;
  readonly total: number;
  readonly onMove: (offset: number) => void;
}

function Pager({ what, offset, shown, step, total, onMove }: PagerProps) {
  const range = shown === 0 ? 'none' : `${(offset + 1).toLocaleString('en')}–${(offset + shown).toLocaleString('en')}`;
  return (
    <fieldset className="pager">
      <legend className="visually-hidden">{`Pages of ${what}`}</legend>
      <button
        type="button"
        className="small"
        disabled={offset === 0}
        onClick={() => onMove(Math.max(0, Math.min(offset, total) - step))}
      >
        Previous {what}
      </button>
      <span className="count">{`${what} ${range} of ${total.toLocaleString('en')}`}</span>
      <button type="button" className="small" disabled={offset + step >= total} onClick={() => onMove(offset + step)}>
        Next {what}
      </button>
    </fieldset>
  );
}

function NothingToDecide({ isFiltered, hasAgents }: { readonly isFiltered: boolean; readonly hasAgents: boolean }) {
  if (isFiltered) {
    return (
      <EmptyState title={hasAgents ? 'No credentials below this path' : 'No matching agents'}>
        Remove a filter, or shorten it.
      </EmptyState>
    );
  }
  if (!hasAgents) {
    return (
      <EmptyState title="No agents yet" command="leasehold agent add ci-runner">
        The matrix shows what each agent may do. <Link href="/agents">Register a first agent</Link>.
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No credentials yet" command="leasehold put demo/first">
      The matrix shows what each agent may do with each credential.{' '}
      <Link href="/credentials">Store a first credential</Link>.
    </EmptyState>
  );
}
