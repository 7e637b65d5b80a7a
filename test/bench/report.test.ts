// The bench's own arithmetic and writing, without any load: what its figures mean hangs on it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { median, percentile, sumUp } from '../../bench/measure.ts';
import { plot } from '../../bench/plot.ts';
import { format, ONE_NODE, type Report, replaceFigures, toJson, toMarkdown, toText } from '../../bench/report.ts';
import { isMet, judge, readEarlier, warnOfChange } from '../../bench/thresholds.ts';
import type { Curve, Figure } from '../../bench/types.ts';

const MARKS = ['<!-- figures: written by npm run bench -->', '<!-- end of figures -->'] as const;

const figure = (name: string, value: number, required: Figure['required'] = null): Figure => ({
  name,
  unit: 'ms',
  value,
  low: value - 1,
  high: value + 1,
  rounds: 5,
  required,
});

const CURVE: Curve = {
  name: 'latency',
  title: 'Time & <place>',
  xLabel: 'connections',
  yLabel: 'milliseconds',
  isLogarithmic: true,
  series: ['p50', 'p99'].map((name, index) => ({
    name,
    points: [1, 16, 256].map((x) => ({ x, value: x * (index + 1), low: x * (index + 0.5), high: x * (index + 2) })),
  })),
};

test('a median is the middle, or the mean of the two in the middle', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([7]), 7);
});

test('a percentile is the value that has that share below it', () => {
  const thousand = Array.from({ length: 1000 }, (_, index) => index);
  assert.deepEqual(
    [0.5, 0.99, 0.999, 1].map((share) => percentile(thousand, share)),
    [500, 990, 999, 999],
  );
  assert.equal(percentile([], 0.5), 0);
});

test('rounds are summed up as their median, with the smallest and the largest', () => {
  assert.deepEqual(sumUp([5, 1, 3]), { value: 3, low: 1, high: 5 });
});

test('a bound holds at its limit, unless it says below', () => {
  const limit = 2;
  assert.deepEqual(
    [1.9, 2, 2.1].map((value) =>
      (['at least', 'at most', 'below'] as const).map((kind) => isMet(value, { kind, limit })),
    ),
    [
      [false, true, true],
      [true, true, false],
      [true, false, false],
    ],
  );
});

test('figures are compared by name with those of the last report, where it had them', () => {
  const earlier = readEarlier(JSON.stringify({ figures: [figure('a', 10), figure('zero', 0)], more: 1 }));
  const judged = judge([figure('a', 12, { kind: 'at most', limit: 11 }), figure('zero', 1), figure('new', 1)], earlier);
  assert.deepEqual(
    judged.map(({ name, isMet: met, last, changePercent }) => [name, met, last, changePercent?.toFixed(3)]),
    [
      ['a', false, 10, '20.000'],
      ['zero', null, 0, undefined],
      ['new', null, null, undefined],
    ],
  );
});

test('what is no report is none, and strange figures in one are left out', () => {
  for (const text of ['', 'null', '[]', '{}', '{"figures":{}}', '{"figures":']) assert.equal(readEarlier(text), null);
  const strange = readEarlier('{"figures":[null,1,{"name":"a"},{"value":1},{"name":"b","value":2}]}');
  assert.deepEqual(
    strange?.figures.map(({ name }) => name),
    ['b'],
  );
});

const REPORT: Report = {
  plan: 'full',
  date: '2026-01-31',
  commit: '0123456789ab',
  machine: '2 × something',
  generator: 'autocannon',
  figures: judge(
    [figure('Missed', 1250, { kind: 'below', limit: 1000 }), figure('Free', 0.5)],
    readEarlier(JSON.stringify({ figures: [figure('Missed', 1000)] })),
  ),
  curves: [CURVE],
  notes: ['A note.'],
};

test('the page says of each figure what was measured, required, found and before', () => {
  const lines = toMarkdown(REPORT, ONE_NODE).split('\n');
  assert.ok(
    lines.includes('| Missed | 1,250 ms (1,249 to 1,251) | 5 | < 1,000 | MISSED | 1,000 | +25.0 % |'),
    lines.join('\n'),
  );
  assert.ok(lines.includes('| Free | 0.500 ms (-0.500 to 1.50) | 5 |  |  |  |  |'));
  assert.ok(lines.includes('- A note.'));
  assert.ok(lines.includes('![Time & <place>](performance/latency.svg)'));
});

test('a terminal gets the same figures in columns', () => {
  const text = toText(REPORT);
  assert.match(text, /^full run of 2026-01-31 at 0123456789ab: 2 × something\. Load: autocannon\.$/m);
  assert.match(text, /^Missed {2}1,250 ms \(1,249 to 1,251\) {2}5 {7}< 1,000 {3}MISSED {3}1,000 {2}\+25\.0 %$/m);
});

test('a written report is read again as the one before the next', () => {
  assert.deepEqual(
    readEarlier(toJson(REPORT))?.figures.map(({ value }) => value),
    [1250, 0.5],
  );
});

test('figures stand between the marks, and nothing else of the page is touched, however often', () => {
  const page = `# Performance\n\nProse.\n\n${MARKS[0]}\nold\n${MARKS[1]}\n\nMore.\n`;
  const once = replaceFigures(page, 'new $& $1', ONE_NODE);
  assert.equal(once, `# Performance\n\nProse.\n\n${MARKS[0]}\n\nnew $& $1\n\n${MARKS[1]}\n\nMore.\n`);
  assert.equal(replaceFigures(once, 'new $& $1', ONE_NODE), once);
});

test('a page without the marks, or with them in another order, is refused', () => {
  for (const page of ['', MARKS[0], MARKS[1], `${MARKS[1]}\n${MARKS[0]}`]) {
    assert.throws(() => replaceFigures(page, 'new', ONE_NODE), /performance\.md needs the lines/);
  }
});

test('numbers keep three digits that say something', () => {
  assert.deepEqual([0.0123, 0.5, 4.567, 45.67, 456.7, 1234567].map(format), [
    '0.012',
    '0.500',
    '4.57',
    '45.7',
    '457',
    '1,234,567',
  ]);
});

/** The elements, in order; fails where one is not closed in its place. */
function readElements(svg: string): { name: string; attributes: Map<string, string> }[] {
  const elements: { name: string; attributes: Map<string, string> }[] = [];
  const open: string[] = [];
  const rest = svg.replace(/<style>[^<]*<\/style>/, '').replace(/<(\/?)([a-z]+)([^<>]*?)(\/?)>/g, (...match) => {
    const [, closing, name = '', attributes = '', alone] = match;
    if (closing === '/') assert.equal(open.pop(), name);
    else {
      const pairs = [...attributes.matchAll(/ ([A-Za-z0-9-]+)="([^"<&]*)"/g)];
      assert.equal(pairs.map(([pair]) => pair).join(''), attributes);
      elements.push({ name, attributes: new Map(pairs.map(([, key = '', value = '']) => [key, value])) });
      if (alone !== '/') open.push(name);
    }
    return '';
  });
  assert.deepEqual(open, []);
  assert.doesNotMatch(rest, /[<>]|&(?!amp;|lt;|gt;)/);
  return elements;
}

for (const isLogarithmic of [true, false]) {
  test(`a plot is well-formed, within its borders, and has every point: ${isLogarithmic ? 'logarithmic' : 'linear'}`, () => {
    const svg = plot({ ...CURVE, isLogarithmic });
    const elements = readElements(svg);
    assert.equal(elements[0]?.attributes.get('viewBox'), '0 0 720 420');
    assert.equal(elements.filter(({ name }) => name === 'polyline').length, 2);
    // Of each series three points, and one of the legend.
    assert.equal(elements.filter(({ name }) => name === 'circle').length, 8);
    for (const { attributes } of elements) {
      for (const [key, most] of [...['x', 'x1', 'x2', 'cx'].map((k) => [k, 720] as const), ['y1', 420] as const]) {
        const value = attributes.get(key);
        if (value !== undefined) assert.ok(Number(value) >= 0 && Number(value) <= most, `${key}=${value}`);
      }
    }
    for (const label of ['Time &amp; &lt;place&gt;', 'connections', 'milliseconds', 'p99', '>256<']) {
      assert.ok(svg.includes(label), label);
    }
  });
}

test('a higher value stands higher, and a place further right is of a larger x', () => {
  const [curve] = CURVE.series;
  assert.ok(curve);
  const line = /points="([^"]*)"/.exec(plot({ ...CURVE, series: [curve] }))?.[1] ?? '';
  const places = line.split(' ').map((place) => place.split(',').map(Number));
  assert.equal(places.length, 3);
  for (const [index, [x = 0, y = 0]] of places.slice(1).entries()) {
    const [beforeX = 0, beforeY = 0] = places[index] ?? [];
    assert.ok(x > beforeX && y < beforeY, line);
  }
});

test('changes are warned of where the load came from another generator', () => {
  const earlier = readEarlier('{"generator":"wrk","figures":[]}');
  assert.equal(warnOfChange('wrk', earlier), null);
  assert.equal(warnOfChange('wrk', null), null);
  assert.match(warnOfChange('autocannon', earlier) ?? '', /another generator \(wrk\)/);
  assert.match(warnOfChange('wrk', readEarlier('{"figures":[]}')) ?? '', /another generator \(unknown\)/);
});
