/** The axes of a plot. Times are written as everywhere in the console: 24 hours, ISO dates, in the chosen zone. */
import type UPlot from 'uplot';
import { formatTime } from '../../components/time.tsx';
import type { Zone } from '../../shell/preferences.ts';

const DAY_SECONDS = 86_400;
/** The width of a date and its margin. */
const TIME_SPACE_PX = 84;
const VALUE_AXIS_PX = 52;

type ColourOf = (name: string) => string;

function axisOf(colourOf: ColourOf): UPlot.Axis {
  return {
    stroke: () => colourOf('muted'),
    grid: { stroke: () => colourOf('line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  };
}

/** The time of each split, with the date below the first one and below each midnight. */
function timeTexts(splits: readonly number[], stepSeconds: number, zone: Zone): string[] {
  return splits.map((at, index) => {
    const [day = '', time = ''] = formatTime(new Date(at * 1000), zone, false).split(' ');
    if (stepSeconds >= DAY_SECONDS) return day;
    const clock = time.slice(0, 5);
    return index === 0 || clock === '00:00' ? `${clock}\n${day}` : clock;
  });
}

/** Of times and of values. */
export function plotAxes(colourOf: ColourOf, zone: Zone): UPlot.Axis[] {
  return [
    {
      ...axisOf(colourOf),
      space: TIME_SPACE_PX,
      values: (_, splits, __, ___, stepSeconds) => timeTexts(splits, stepSeconds, zone),
    },
    { ...axisOf(colourOf), size: VALUE_AXIS_PX },
  ];
}

/** The points that no line reaches, because nothing was measured right before and after them. */
export function isolatedPoints(values: readonly (number | null | undefined)[]): number[] {
  return values.flatMap((value, index) =>
    value == null || values[index - 1] != null || values[index + 1] != null ? [] : [index],
  );
}
