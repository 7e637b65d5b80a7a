/** The retrievals, brokered requests and denials of the last hour, by minute, as counted by the node that responds. */
import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import type { ActivityMinute } from '../../../../src/client/types.ts';
import { countText, formatTime } from '../../components/words.ts';
import { client } from '../../session/console-client.ts';
import { intervalOf } from '../../session/queries.ts';
import { usePreferences } from '../../shell/preferences.ts';
import { Section } from './section.tsx';

const INTERVAL_MS = 5000;

/** The lines of the plot, each with the class that sets its colour. */
const SERIES = [
  { name: 'retrievals', title: 'Retrievals', one: 'retrieval', tone: 'plot-first' },
  { name: 'uses', title: 'Brokered requests', one: 'brokered request', tone: 'plot-second' },
  { name: 'denials', title: 'Denials', one: 'denial', tone: 'plot-third' },
] as const;
const TITLE = 'Decisions of the last hour';
const [WIDTH, HEIGHT] = [600, 120];
const TIMES_SHOWN = 4;

export function Plots() {
  const activity = useQuery({
    queryKey: ['now-activity'],
    queryFn: ({ signal }) => client.overview.activity({ signal }),
    refetchInterval: intervalOf(INTERVAL_MS),
  });
  return (
    <Section title="Decisions" query={activity}>
      {activity.data !== undefined && <Plot minutes={activity.data} />}
    </Section>
  );
}

interface Props {
  /** The minutes, ascending. */
  readonly minutes: readonly ActivityMinute[];
}

function Plot({ minutes }: Props) {
  const { zone } = usePreferences();
  const titleId = useId();
  const most = Math.max(1, ...minutes.flatMap((minute) => SERIES.map(({ name }) => minute[name])));
  const x = (index: number): number => (index / Math.max(1, minutes.length - 1)) * WIDTH;
  const y = (value: number): number => HEIGHT - (value / most) * HEIGHT;
  const shown = minutes.filter((_, index) => index % Math.ceil(minutes.length / TIMES_SHOWN) === 0);
  const [retrievals, uses, denials] = SERIES.map(({ name, one }) =>
    countText(
      minutes.reduce((total, minute) => total + minute[name], 0),
      one,
    ),
  );
  const summary = `${retrievals}, ${uses} and ${denials}.`;
  return (
    <>
      <p className="hint">{`In the last hour on this node: ${summary}`}</p>
      <figure className="plot" aria-labelledby={titleId}>
        <figcaption>
          <span id={titleId}>{TITLE}</span>
          <span className="plot-legend">
            {SERIES.map(({ title, tone }) => (
              <span key={title} className={tone}>
                {title}
              </span>
            ))}
          </span>
        </figcaption>
        <div className="plot-scale" aria-hidden>
          {most.toLocaleString('en')}
        </div>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${TITLE}: ${summary}`}
        >
          {SERIES.map(({ name, tone }) => (
            <polyline
              key={name}
              className={tone}
              points={minutes.map((minute, index) => `${x(index)},${y(minute[name])}`).join(' ')}
            />
          ))}
        </svg>
        <div className="plot-scale" aria-hidden>
          {shown.map(({ at }) => (
            <span key={at}>{formatTime(new Date(at), zone, false).slice(11, 16)}</span>
          ))}
        </div>
        <details>
          <summary>As a table</summary>
          <MinutesTable minutes={minutes} />
        </details>
      </figure>
    </>
  );
}

/** The minutes in which something was counted. */
function MinutesTable({ minutes }: Props) {
  const { zone } = usePreferences();
  const rows = minutes.filter((minute) => SERIES.some(({ name }) => minute[name] > 0));
  if (rows.length === 0) return <p className="hint">All values are 0.</p>;
  return (
    <table aria-label={TITLE}>
      <thead>
        <tr>
          <th scope="col">Time</th>
          {SERIES.map(({ title }) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((minute) => (
          <tr key={minute.at}>
            <th scope="row">{formatTime(new Date(minute.at), zone, false)}</th>
            {SERIES.map(({ name }) => (
              <td key={name}>{minute[name].toLocaleString('en')}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
