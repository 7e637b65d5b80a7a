/**
 * A plot of counts over time. The canvas is an image to a screen reader, and the same numbers are a table. The library
 * loads with this file, which the page loads after everything else. Times are written as everywhere in the console.
 */
import { useEffect, useId, useRef } from 'react';
import UPlot from 'uplot';
import { formatTime } from '../../components/time.tsx';
import { usePreferences, type Zone } from '../../shell/preferences.ts';

export interface Series {
  readonly title: string;
  /** The class that gives it its colour. */
  readonly tone: 'first' | 'second' | 'third';
  /** Drawn with dashes, so that colours are not needed to tell lines apart. */
  readonly isDashed?: boolean;
  /** One for each time. */
  readonly values: readonly number[];
}

interface Props {
  readonly title: string;
  /** What the picture says in one sentence. */
  readonly summary: string;
  /** Seconds since 1970, ascending. The plot begins with the first and ends with the last one. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
}

const HEIGHT_PX = 170;
const DASH = [5, 4];
/** The width of a time and its margin. */
const TIME_SPACE_PX = 84;
const VALUE_AXIS_PX = 52;

export function Plot({ title, summary, times, series }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const { zone, theme } = usePreferences();
  const titleId = useId();
  const shape = series.map(({ title: name, tone, isDashed }) => `${name} ${tone} ${isDashed ?? false}`).join();
  // The plot is made for these series; new values only change its data.
  const latest = useRef({ times, series });
  latest.current = { times, series };
  useEffect(() => {
    const element = holder.current;
    if (element === null || shape === '') return;
    const colourOf = (name: string): string =>
      getComputedStyle(element.parentElement?.querySelector(`.plot-${name}`) ?? element).color;
    const made = new UPlot(
      {
        width: element.clientWidth,
        height: HEIGHT_PX,
        cursor: { show: false },
        legend: { show: false },
        ...(zone === 'UTC' ? { tzDate: (at: number) => UPlot.tzDate(new Date(at * 1000), 'Etc/UTC') } : {}),
        scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
        axes: plotAxes(colourOf, zone),
        series: [
          {},
          ...latest.current.series.map(({ title: label, tone, isDashed }) => ({
            label,
            width: 2,
            stroke: () => colourOf(tone),
            ...(isDashed ? { dash: DASH } : {}),
            points: { show: false },
          })),
        ],
      },
      toData(latest.current),
      element,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resized.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const draw = (): void => made.redraw(false);
    scheme.addEventListener('change', draw);
    return () => {
      scheme.removeEventListener('change', draw);
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, zone]);
  useEffect(() => plot.current?.setData(toData({ times, series })), [times, series]);
  useEffect(() => {
    // WHY not its scales too: those of new data are set later, and drawing them again here would empty them.
    if (theme !== null) plot.current?.redraw(false);
  }, [theme]);
  return (
    <figure className="plot" aria-labelledby={titleId}>
      <figcaption>
        <span id={titleId}>{title}</span>
        <span className="plot-legend">
          {series.map(({ title: name, tone, isDashed }) => (
            <span key={name} className={`plot-${tone}${isDashed ? ' dashed' : ''}`}>
              {name}
            </span>
          ))}
        </span>
      </figcaption>
      <span className="plot-muted" hidden />
      <span className="plot-line" hidden />
      <div ref={holder} className="plot-canvas" role="img" aria-label={`${title}: ${summary}`} />
      <details>
        <summary>As a table</summary>
        <NumberTable title={title} times={times} series={series} zone={zone} />
      </details>
    </figure>
  );
}

function toData({ times, series }: Pick<Props, 'times' | 'series'>): UPlot.AlignedData {
  return [[...times], ...series.map(({ values }) => [...values])];
}

function plotAxes(colourOf: (name: string) => string, zone: Zone): UPlot.Axis[] {
  const axis: UPlot.Axis = {
    stroke: () => colourOf('muted'),
    grid: { stroke: () => colourOf('line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  };
  return [
    { ...axis, space: TIME_SPACE_PX, values: (_, splits) => splits.map((at) => timeText(at, zone)) },
    { ...axis, size: VALUE_AXIS_PX },
  ];
}

/** The hour and minute, with the date below midnight. */
function timeText(at: number, zone: Zone): string {
  const [day = '', time = ''] = formatTime(new Date(at * 1000), zone, false).split(' ');
  const clock = time.slice(0, 5);
  return clock === '00:00' ? `${clock}\n${day}` : clock;
}

/** Only times at which something was counted. */
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
