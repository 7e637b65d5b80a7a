/** What the filtered entries are: the most frequent events, results and agents with their numbers, each a filter. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { AuditFacets, AuditFilter } from '../../../../src/client/types.ts';
import { useSetParameters } from '../../components/filter-bar.tsx';
import { client } from '../../session/console-client.ts';
import { type ReadFacets, withInterval } from './facet-interval.ts';

const LIVE_INTERVAL_MS = 1000;
const STALE_MS = 60_000;
const SHOWN = 6;

type Facet = AuditFacets['result'];

/** Repeated while entries are added to the list below, and while the service has not counted every entry. */
export function useFacets(filter: AuditFilter, generation: number, isLive: boolean): AuditFacets | null {
  const queries = useQueryClient();
  const { data = null } = useQuery<ReadFacets>({
    queryKey: ['audit-facets', filter, generation],
    staleTime: isLive ? 0 : STALE_MS,
    // The numbers stay until the next ones are read; those of another filter would be wrong.
    placeholderData: (before, query) => (isSameFilter(query?.queryKey[1], filter) ? before : undefined),
    queryFn: async ({ signal, queryKey }) => {
      const facets = await client.audit.facets(filter, { signal });
      return withInterval(facets, queries.getQueryData<ReadFacets>(queryKey));
    },
    refetchInterval: ({ state }) => state.data?.againMs || (isLive && LIVE_INTERVAL_MS),
  });
  return data;
}

const isSameFilter = (before: unknown, filter: AuditFilter): boolean =>
  JSON.stringify(before) === JSON.stringify(filter);

interface GroupProps {
  readonly label: string;
  /** Of the parameter that the filter sets. */
  readonly name: string;
  readonly selected: string | undefined;
  readonly facet: Facet;
}

function FacetGroup({ label, name, selected, facet }: GroupProps) {
  const setParameters = useSetParameters();
  if (facet.length === 0) return null;
  return (
    <fieldset className="facets">
      <legend>{label}</legend>
      {facet.slice(0, SHOWN).map(({ value, count }) => {
        const isOn = value === selected;
        return (
          <button
            key={value}
            type="button"
            className="facet"
            aria-pressed={isOn}
            onClick={() => setParameters({ [name]: isOn ? null : value })}
          >
            <span>{value}</span> <small>{count.toLocaleString('en')}</small>
          </button>
        );
      })}
    </fieldset>
  );
}

export function FacetBar({ facets, filter }: { readonly facets: AuditFacets | null; readonly filter: AuditFilter }) {
  // The place is kept while they are read, so that the table below does not move.
  return (
    <div className="facet-bar">
      {facets !== null && (
        <>
          <FacetGroup label="Result" name="result" selected={filter.result} facet={facets.result} />
          <FacetGroup label="Event" name="event_type" selected={filter.event_type} facet={facets.event_type} />
          <FacetGroup label="Agent" name="agent" selected={filter.agent} facet={facets.agent_name} />
          {!facets.complete && (
            <span className="hint">{`counted in the newest ${facets.counted.toLocaleString('en')} entries`}</span>
          )}
        </>
      )}
    </div>
  );
}
