// Draws a curve as SVG: the x axis logarithmic, the y axis as the curve says, points with bars from the smallest to the largest
// round. Readable on light and dark pages: colours follow the reader's scheme.

import type { Curve, Point } from './types.ts';

const WIDTH = 720;
const HEIGHT = 420;
const BOX = { left: 84, right: 696, top: 64, bottom: 348 };
const CAP = 4;
const LEGEND_GAP = 32;
const LETTER = 6.6;

const STYLE = `
  svg { background: #ffffff; font: 13px system-ui, sans-serif; }
  text { fill: #1f2328; }
  .title { font-size: 16px; font-weight: 600; }
  .grid { stroke: #d1d9e0; }
  .axis { stroke: #59636e; }
  .s0 { color: #0969da; } .s1 { color: #bc4c00; } .s2 { color: #1a7f37; } .s3 { color: #8250df; } .s4 { color: #bf3989; }
  .line { stroke: currentColor; stroke-width: 2; fill: none; }
  .bar { stroke: currentColor; }
  .dot { fill: currentColor; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117; }
    text { fill: #f0f6fc; }
    .grid { stroke: #30363d; }
    .axis { stroke: #9198a1; }
    .s0 { color: #58a6ff; } .s1 { color: #f0883e; } .s2 { color: #3fb950; } .s3 { color: #bc8cff; } .s4 { color: #ff7bc4; }
  }
`;
const STYLES = 5;

/** From a value to a place, with the values that the axis names. */
interface Axis {
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

export function plot({ title, xLabel, yLabel, isLogarithmic, series }: Curve): string {
  const points = series.flatMap((each) => each.points);
  const xs = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b);
  const x: Axis = { at: logarithmic(xs[0] ?? 1, xs.at(-1) ?? 1, BOX.left + 24, BOX.right - 24), ticks: xs };
  const y = isLogarithmic ? logarithmicAxis(points) : linearAxis(points);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img">`,
    `<title>${inXml(title)}</title>`,
    `<style>${STYLE}</style>`,
    text(BOX.left, 26, 'start', title, 'title'),
    ...y.ticks.flatMap((tick) => [
      line('grid', BOX.left, y.at(tick), BOX.right, y.at(tick)),
      text(BOX.left - 8, y.at(tick) + 4, 'end', short(tick)),
    ]),
    line('axis', BOX.left, BOX.bottom, BOX.right, BOX.bottom),
    ...x.ticks.flatMap((tick) => [
      line('axis', x.at(tick), BOX.bottom, x.at(tick), BOX.bottom + 5),
      text(x.at(tick), BOX.bottom + 20, 'middle', short(tick)),
    ]),
    text((BOX.left + BOX.right) / 2, BOX.bottom + 44, 'middle', `${xLabel} (logarithmic)`),
    text(BOX.left, BOX.top - 12, 'start', `${yLabel}${isLogarithmic ? ' (logarithmic)' : ''}`),
    ...series.flatMap(({ points: own }, index) => drawSeries(own, x, y, `s${index % STYLES}`)),
    ...(series.length > 1 ? legend(series.map(({ name }) => name)) : []),
    '</svg>',
    '',
  ].join('\n');
}

function drawSeries(points: readonly Point[], x: Axis, y: Axis, style: string): string[] {
  const path = points.map((point) => `${place(x.at(point.x))},${place(y.at(point.value))}`).join(' ');
  return [
    `<g class="${style}">`,
    `<polyline class="line" points="${path}"/>`,
    ...points.flatMap((point) => {
      const [at, low, high] = [x.at(point.x), y.at(point.low), y.at(point.high)];
      return [
        line('bar', at, low, at, high),
        line('bar', at - CAP, low, at + CAP, low),
        line('bar', at - CAP, high, at + CAP, high),
        `<circle class="dot" cx="${place(at)}" cy="${place(y.at(point.value))}" r="4"/>`,
      ];
    }),
    '</g>',
  ];
}

/** One beside the other, by how wide their names will about be. */
function legend(names: readonly string[]): string[] {
  let left = BOX.left;
  return names.flatMap((name, index) => {
    const at = left;
    left += LEGEND_GAP + name.length * LETTER;
    return [
      `<g class="s${index % STYLES}"><circle class="dot" cx="${place(at + 5)}" cy="${HEIGHT - 14}" r="5"/></g>`,
      text(at + 15, HEIGHT - 10, 'start', name),
    ];
  });
}

function logarithmic(low: number, high: number, from: number, to: number): Axis['at'] {
  const span = Math.log(high / low) || 1;
  return (value) => from + (Math.log(value / low) / span) * (to - from);
}

/** From one power of ten to another. */
function logarithmicAxis(points: readonly Point[]): Axis {
  const low = Math.floor(Math.log10(Math.min(...points.map((point) => point.low))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...points.map((point) => point.high)))));
  const ticks = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  return { at: logarithmic(10 ** low, 10 ** high, BOX.bottom, BOX.top), ticks };
}

/** From zero, in steps of 1, 2 or 5 times a power of ten. */
function linearAxis(points: readonly Point[]): Axis {
  const most = Math.max(...points.map((point) => point.high), Number.MIN_VALUE);
  const rough = 10 ** Math.floor(Math.log10(most / 5));
  const step = [1, 2, 5, 10].map((factor) => factor * rough).find((each) => most / each <= 6) ?? rough;
  const count = Math.ceil(most / step);
  const ticks = Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
  return { at: (value) => BOX.bottom - (value / (count * step)) * (BOX.bottom - BOX.top), ticks };
}

function short(value: number): string {
  if (value >= 1e6) return `${value / 1e6} M`;
  return value >= 10_000 ? `${value / 1000} k` : value.toLocaleString('en-US', { maximumSignificantDigits: 4 });
}

const place = (value: number): string => value.toFixed(1);

const line = (style: string, x1: number, y1: number, x2: number, y2: number): string =>
  `<line class="${style}" x1="${place(x1)}" y1="${place(y1)}" x2="${place(x2)}" y2="${place(y2)}"/>`;

const text = (x: number, y: number, anchor: string, content: string, style = 'label'): string =>
  `<text class="${style}" x="${place(x)}" y="${place(y)}" text-anchor="${anchor}">${inXml(content)}</text>`;

const inXml = (content: string): string =>
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
