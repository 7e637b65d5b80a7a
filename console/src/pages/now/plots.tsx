/** The retrievals, brokered requests and denials of the last hour, by minute, as counted by the node that responds. */
import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import type { ActivityMinute } from '../../../../src/client/types.ts';
import { countText } from '../../components/count-text.ts';
import { formatTime } from '../../components/time.tsx';
import { client } from '../../session/console-client.ts';
import { usePreferences, type Zone } from '../../shell/preferences.ts';
import { intervalOf } from './live-interval.ts';
import { Section } from './section.tsx';

const INTERVAL_MS = 5000;

type Counted = 'retrievals' | 'uses' | 'denials';

function MinutesPlot({ minutes }: { readonly minutes: readonly ActivityMinute[] }) {
  const valuesOf = (name: Counted): number[] => minutes.map((minute) => minute[name]);
  const sum = (name: Counted): number => valuesOf(name).reduce((total, value) => total + value, 0);
  const summary = `${countText(sum('retrievals'), 'retrieval')}, ${countText(sum('uses'), 'brokered request')} and ${countText(sum('denials'), 'denial')}.`;
  return (
    <>
      <p className="hint">{`In the last hour on this node: ${summary}`}</p>
      <Plot
        title="Decisions of the last hour"
        summary={summary}
        times={minutes.map(({ at }) => Date.parse(at) / 1000)}
        series={[
          { title: 'Retrievals', tone: 'first', values: valuesOf('retrievals') },
          { title: 'Brokered requests', tone: 'second', values: valuesOf('uses') },
          { title: 'Denials', tone: 'third', values: valuesOf('denials') },
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
      {activity.data !== undefined && <MinutesPlot minutes={activity.data} />}
    </Section>
  );
}

interface Series {
  readonly title: string;
  /** The class that sets the colour. */
  readonly tone: 'first' | 'second' | 'third';
  /** The values, one for each time. */
  readonly values: readonly number[];
}

interface Props {
  readonly title: string;
  /** The content of the plot in one sentence. */
  readonly summary: string;
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
}

const [WIDTH, HEIGHT] = [600, 120];
const TIMES_SHOWN = 4;

function Plot({ title, summary, times, series }: Props) {
  const { zone } = usePreferences();
  const titleId = useId();
  const most = Math.max(1, ...series.flatMap(({ values }) => values));
  const x = (index: number): number => (index / Math.max(1, times.length - 1)) * WIDTH;
  const y = (value: number): number => HEIGHT - (value / most) * HEIGHT;
  const shown = times.filter((_, index) => index % Math.ceil(times.length / TIMES_SHOWN) === 0);
  return (
    <figure className="plot" aria-labelledby={titleId}>
      <figcaption>
        <span id={titleId}>{title}</span>
        <span className="plot-legend">
          {series.map(({ title: name, tone }) => (
            <span key={name} className={`plot-${tone}`}>
              {name}
            </span>
          ))}
        </span>
      </figcaption>
      <div className="plot-scale" aria-hidden>
        {most.toLocaleString('en')}
      </div>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title}: ${summary}`}>
        {series.map(({ title: name, tone, values }) => (
          <polyline
            key={name}
            className={`plot-${tone}`}
            points={values.map((value, index) => `${x(index)},${y(value)}`).join(' ')}
          />
        ))}
      </svg>
      <div className="plot-scale" aria-hidden>
        {shown.map((at) => (
          <span key={at}>{formatTime(new Date(at * 1000), zone, false).slice(11, 16)}</span>
        ))}
      </div>
      <details>
        <summary>As a table</summary>
        <NumberTable title={title} times={times} series={series} zone={zone} />
      </details>
    </figure>
  );
}

/** The values as a table, with only the times at which something was counted. */
function NumberTable({ title, times, series, zone }: Omit<Props, 'summary'> & { readonly zone: Zone }) {
  const rows = times.flatMap((at, index) => {
    const values = series.map((each) => each.values[index] ?? 0);
    return values.some((value) => value > 0) ? [{ at, values }] : [];
  });
  if (rows.length === 0) return <p className="hint">All values are 0.</p>;
  return (
    <table aria-label={title}>
      <thead>
        <tr>
          <th scope="col">Time</th>
          {series.map(({ title: name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ at, values }) => (
          <tr key={at}>
            <th scope="row">{formatTime(new Date(at * 1000), zone, false)}</th>
            {values.map((value, index) => (
              <td key={series[index]?.title}>{value.toLocaleString('en')}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
