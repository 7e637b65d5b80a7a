/** The retrievals, uses and denials of the last hour, by minute, as the node that responds counts them. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import type { ActivityMinute } from '../../../../src/client/types.ts';
import { countText } from '../../components/count-text.ts';
import { Loading } from '../../components/loading.tsx';
import { client } from '../../session/console-client.ts';
import { intervalOf } from './live-interval.ts';
import { Section } from './section.tsx';

// WHY a substitute: the library does not start where the browser's language is not a valid tag, as in the locale POSIX.
const Plot = lazy(async () => {
  const { Plot: Drawn } = await import('./plot.tsx').catch(() => ({ Plot: PlotInWords }));
  return { default: Drawn };
});

function PlotInWords({ title, summary }: { readonly title: string; readonly summary: string }) {
  return <p className="hint">{`${title}: ${summary} This browser cannot draw the plot.`}</p>;
}

const INTERVAL_MS = 5000;

function MinutesPlot({ minutes }: { readonly minutes: readonly ActivityMinute[] }) {
  const valuesOf = (name: 'retrievals' | 'uses' | 'denials'): number[] => minutes.map((minute) => minute[name]);
  const sum = (name: 'retrievals' | 'uses' | 'denials'): number =>
    valuesOf(name).reduce((total, value) => total + value, 0);
  const summary = `${countText(sum('retrievals'), 'retrieval')}, ${countText(sum('uses'), 'use')} and ${countText(sum('denials'), 'denial')}.`;
  return (
    <>
      <p className="hint">{`In the last hour on this node: ${summary}`}</p>
      <Plot
        title="Decisions of the last hour"
        summary={summary}
        times={minutes.map(({ at }) => Date.parse(at) / 1000)}
        series={[
          { title: 'Retrievals', tone: 'first', values: valuesOf('retrievals') },
          { title: 'Uses', tone: 'second', values: valuesOf('uses') },
          { title: 'Denials', tone: 'third', isDashed: true, values: valuesOf('denials') },
        ]}
      />
    </>
  );
}

export function Plots() {
  const activity = useQuery({
    queryKey: ['now-activity'],
    queryFn: ({ signal }) => client.overview.activity({ signal }),
    refetchInterval: intervalOf(INTERVAL_MS),
  });
  return (
    <Section title="Decisions" query={activity}>
      <Suspense fallback={<Loading what="the plot" />}>
        {activity.data !== undefined && <MinutesPlot minutes={activity.data} />}
      </Suspense>
    </Section>
  );
}
