/**
 * A strict parser of the text format 0.0.4 of Prometheus, which rejects what some parsers tolerate: samples without a
 * type or apart from their family, repeated series, histograms that are not cumulative. SOURCE:
 * prometheus.io/docs/instrumenting/exposition_formats.
 */
interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly series: readonly Series[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/i;

/** @throws Error with the line */
export function parseMetrics(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const families = new Map<string, Family & { readonly series: Series[] }>();
  const seen = new Set<string>();
  let [help, family]: [string | null, (Family & { readonly series: Series[] }) | null] = [null, null];
  for (const [index, line] of text.slice(0, -1).split('\n').entries()) {
    const fail = (why: string): never => {
      throw new Error(`line ${index + 1}: ${why}: ${line}`);
    };
    if (line === '') continue;
    const [, keyword = '', name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      if (!NAME.test(name) || families.has(name) || help !== null) fail('an invalid, repeated or misplaced HELP');
      help = `${name} ${rest}`;
    } else if (keyword === 'TYPE') {
      if (help?.startsWith(`${name} `) !== true) fail('TYPE does not follow its HELP');
      if (!['counter', 'gauge', 'histogram', 'summary'].includes(rest)) fail('an unknown type');
      family = { name, type: rest, help: (help ?? '').slice(name.length + 1), series: [] };
      families.set(name, family);
      help = null;
    } else {
      const series = parseSample(line) ?? fail('neither a sample nor a comment');
      if (family === null || !belongs(series, family)) fail('a sample apart from its family');
      const key = JSON.stringify([series.name, Object.entries(series.labels).sort()]);
      if (seen.has(key)) fail('a repeated series');
      seen.add(key);
      family?.series.push(series);
    }
  }
  for (const each of families.values()) checkFamily(each);
  return families;
}

function parseSample(line: string): Series | null {
  const [, name, labelText = '', value = ''] = SAMPLE.exec(line) ?? [];
  if (name === undefined || !NUMBER.test(value)) return null;
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < labelText.length) {
    const [, label, text] = LABEL.exec(labelText) ?? [];
    if (label === undefined || label in labels) return null;
    labels[label] = (text ?? '').replaceAll(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped));
  }
  return { name, labels, value: Number(value.replace(/Inf$/, 'Infinity')) };
}

function belongs({ name, labels }: Series, family: Family): boolean {
  if (family.type === 'histogram') {
    return name === `${family.name}_bucket`
      ? 'le' in labels
      : [`${family.name}_sum`, `${family.name}_count`].includes(name);
  }
  return name === family.name || (family.type === 'summary' && name.startsWith(`${family.name}_`));
}

function checkFamily({ name, type, series }: Family): void {
  if (type === 'counter' && series.some(({ value }) => !(value >= 0))) throw new Error(`${name}: a negative counter`);
  if (type !== 'histogram') return;
  const groups = Map.groupBy(series, ({ labels: { le: _, ...others } }) =>
    JSON.stringify(Object.entries(others).sort()),
  );
  for (const group of groups.values()) {
    const buckets = group.filter((each) => each.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => Number(labels['le']?.replace('+Inf', 'Infinity')));
    const counts = buckets.map(({ value }) => value);
    const rises = (values: readonly number[], isStrict: boolean): boolean =>
      values.every((value, at) => at === 0 || value > (values[at - 1] ?? 0) || (!isStrict && value === values[at - 1]));
    const count = group.find((each) => each.name === `${name}_count`)?.value;
    if (!rises(bounds, true) || !rises(counts, false)) throw new Error(`${name}: buckets are not cumulative`);
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY || counts.at(-1) !== count)
      throw new Error(`${name}: the last bucket is not the count`);
    if (!group.some((each) => each.name === `${name}_sum`)) throw new Error(`${name}: no sum`);
  }
}

/** The value of the series with exactly these labels; 0 if it does not exist. */
export function seriesValue(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const wanted = JSON.stringify(Object.entries(labels).sort());
  const family = families.get(name) ?? families.get(name.replace(/_(?:count|sum|bucket)$/, ''));
  const found = family?.series.find(
    (each) => each.name === name && JSON.stringify(Object.entries(each.labels).sort()) === wanted,
  );
  return found?.value ?? 0;
}
