/** Retrievals, uses and denials over the last hour, day or week, and how long requests took in the last hour. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { useSearchParams } from 'wouter';
import type { AuditCounts, Latency } from '../../../../src/client/types.ts';
import { countText } from '../../components/count-text.ts';
import { useSetParameters } from '../../components/filter-bar.tsx';
import { Loading } from '../../components/loading.tsx';
import { client } from '../../session/console-client.ts';
import { serverNow } from '../../session/server-clock.ts';
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

/** Steps of a length in which a line of about a hundred points has the range. */
const RANGES = {
  hour: { stepSeconds: 60, steps: 60, intervalMs: 5_000 },
  day: { stepSeconds: 900, steps: 96, intervalMs: 30_000 },
  week: { stepSeconds: 7200, steps: 84, intervalMs: 60_000 },
} as const;
type Range = keyof typeof RANGES;
const NAMES = Object.keys(RANGES) as Range[];
const LATENCY_INTERVAL_MS = 10_000;
/** The time for which the service keeps latencies. */
const MINUTES = 60;

const toSeconds = (at: string): number => Date.parse(at) / 1000;

function CountsPlot({ counts: { buckets }, range }: { readonly counts: AuditCounts; readonly range: Range }) {
  const sum = (name: 'retrievals' | 'uses' | 'denials'): number =>
    buckets.reduce((total, bucket) => total + bucket[name], 0);
  const summary = `in the last ${range} ${countText(sum('retrievals'), 'retrieval')}, ${countText(sum('uses'), 'use')} and ${countText(sum('denials'), 'denial')}.`;
  return (
    <>
      <p className="hint">{`In${summary.slice(2)}`}</p>
      <Plot
        title={`Decisions of the last ${range}`}
        summary={summary}
        unit=""
        times={buckets.map(({ at }) => toSeconds(at))}
        series={[
          { title: 'Retrievals', tone: 'first', values: buckets.map(({ retrievals }) => retrievals) },
          { title: 'Uses', tone: 'second', values: buckets.map(({ uses }) => uses) },
          { title: 'Denials', tone: 'third', isDashed: true, values: buckets.map(({ denials }) => denials) },
        ]}
      />
    </>
  );
}

/** Every minute of the last hour, in seconds. The minutes that have a sample are always among them. */
function lastHour(sampled: readonly number[]): number[] {
  const [oldest, newest] = [Math.min(...sampled), Math.max(...sampled)];
  const now = Math.floor(serverNow() / 60_000) * 60;
  const end = Math.max(newest, Math.min(now, oldest + (MINUTES - 1) * 60));
  return Array.from({ length: MINUTES }, (_, index) => end - (MINUTES - 1 - index) * 60);
}

function LatencyPlot({ latency: { retrieve, use } }: { readonly latency: Latency }) {
  const all = [...retrieve, ...use];
  if (all.length === 0) return <p className="hint">No retrieval and no use in the last hour on this node.</p>;
  const times = lastHour(all.map(({ at }) => toSeconds(at)));
  const valuesOf = (minutes: Latency['use']): (number | null)[] => {
    const known = new Map(minutes.map(({ at, p99_ms }) => [toSeconds(at), p99_ms]));
    return times.map((at) => known.get(at) ?? null);
  };
  const worst = Math.max(...all.map(({ p99_ms }) => p99_ms));
  return (
    <Plot
      title="99th percentile of the last hour, this node"
      summary={`the slowest minute had ${worst.toFixed(1)} milliseconds.`}
      unit="ms"
      times={times}
      series={[
        { title: 'Retrievals', tone: 'first', values: valuesOf(retrieve) },
        { title: 'Uses', tone: 'second', isDashed: true, values: valuesOf(use) },
      ]}
    />
  );
}

export function Plots() {
  const [parameters] = useSearchParams();
  const setParameters = useSetParameters();
  const range = NAMES.find((name) => name === parameters.get('range')) ?? 'hour';
  const { stepSeconds, steps, intervalMs } = RANGES[range];
  const counts = useQuery({
    queryKey: ['now-counts', range],
    queryFn: ({ signal }) => {
      const stepMs = stepSeconds * 1000;
      const end = (Math.floor(serverNow() / stepMs) + 1) * stepMs;
      const since = new Date(end - steps * stepMs).toISOString();
      const until = new Date(end - 1).toISOString();
      return client.audit.counts({ since, until, step: stepSeconds }, { signal });
    },
    refetchInterval: intervalOf(intervalMs),
  });
  const latency = useQuery({
    queryKey: ['now-latency'],
    queryFn: ({ signal }) => client.overview.latency({ signal }),
    refetchInterval: intervalOf(LATENCY_INTERVAL_MS),
  });
  return (
    <>
      <Section title="Decisions" query={counts}>
        <fieldset className="ranges">
          <legend className="visually-hidden">Time that the plot covers</legend>
          {NAMES.map((name) => (
            <label key={name} className="toggle">
              <input
                type="radio"
                name="range"
                checked={name === range}
                onChange={() => setParameters({ range: name === 'hour' ? null : name })}
              />
              {`Last ${name}`}
            </label>
          ))}
        </fieldset>
        <Suspense fallback={<Loading what="the plot" />}>
          {counts.data !== undefined && <CountsPlot counts={counts.data} range={range} />}
        </Suspense>
        {counts.data?.complete === false && <p className="hint">The service still counts older entries.</p>}
      </Section>
      <Section title="Latency" query={latency}>
        <Suspense fallback={<Loading what="the plot" />}>
          {latency.data !== undefined && <LatencyPlot latency={latency.data} />}
        </Suspense>
      </Section>
    </>
  );
}
