// The report: as a table for a terminal, as the part of docs/performance.md that runs write, and as JSON with the plots beside it.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { plot } from './plot.ts';
import type { Earlier, Judged } from './thresholds.ts';
import { readEarlier } from './thresholds.ts';
import type { Bound, Curve } from './types.ts';

export interface Report {
  readonly plan: string;
  readonly date: string;
  readonly commit: string | null;
  readonly machine: string;
  readonly generator: string;
  readonly figures: readonly Judged[];
  readonly curves: readonly Curve[];
  readonly notes: readonly string[];
}

const MARKDOWN = 'performance.md';
const PLOTS = 'performance';

/** Where a report goes: its part of the page, and its own file of figures. */
export interface Place {
  readonly json: string;
  readonly beginning: string;
  readonly end: string;
}

export const ONE_NODE: Place = {
  json: 'performance.json',
  beginning: '<!-- figures: written by npm run bench -->',
  end: '<!-- end of figures -->',
};

export const ON_POSTGRES: Place = {
  json: 'performance-postgres.json',
  beginning: '<!-- figures: written by npm run bench -- --postgres -->',
  end: '<!-- end of figures on PostgreSQL -->',
};

export function describeMachine(): string {
  return `${availableParallelism()} × ${cpus()[0]?.model.trim()}, ${process.platform} ${process.arch}, Node ${process.versions.node}`;
}

/** With `-dirty` where files differ; null where there is no git. */
export function describeCommit(root: string): string | null {
  try {
    const args = ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'];
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return null;
  }
}

export function readLast(folder: string, place: Place): Earlier | null {
  const file = join(folder, place.json);
  return existsSync(file) ? readEarlier(readFileSync(file, 'utf8')) : null;
}

/** @throws where the folder has no page with the marks, before a run that could not be written down */
export function assertWritable(folder: string, place: Place): void {
  replaceFigures(readFileSync(join(folder, MARKDOWN), 'utf8'), '', place);
}

export function writeReport(folder: string, report: Report, place: Place): void {
  const file = join(folder, MARKDOWN);
  const page = replaceFigures(readFileSync(file, 'utf8'), toMarkdown(report, place), place);
  mkdirSync(join(folder, PLOTS), { recursive: true });
  for (const curve of report.curves) writeFileSync(join(folder, PLOTS, `${curve.name}.svg`), plot(curve));
  writeFileSync(join(folder, place.json), toJson(report));
  writeFileSync(file, page);
}

export function toJson(report: Report): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}

/** The page with the new figures between the marks. */
export function replaceFigures(page: string, figures: string, { beginning, end }: Place): string {
  const [from, to] = [page.indexOf(beginning), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${MARKDOWN} needs the lines ${beginning} and ${end}, in this order`);
  return `${page.slice(0, from + beginning.length)}\n\n${figures}\n\n${page.slice(to)}`;
}

const HEADINGS = ['figure', 'measured', 'rounds', 'required', 'verdict', 'last', 'change'];
const SIGNS: Readonly<Record<Bound['kind'], string>> = { 'at least': '≥', 'at most': '≤', below: '<' };

export function format(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

function cellsOf({ name, unit, value, low, high, rounds, required, isMet, last, changePercent }: Judged): string[] {
  const range = rounds > 1 ? ` (${format(low)} to ${format(high)})` : '';
  return [
    name,
    `${format(value)}${unit === '' ? '' : ` ${unit}`}${range}`,
    String(rounds),
    required === null ? '' : `${SIGNS[required.kind]} ${required.limit.toLocaleString('en-US')}`,
    isMet === null ? '' : isMet ? 'met' : 'MISSED',
    last === null ? '' : format(last),
    changePercent === null ? '' : `${changePercent > 0 ? '+' : ''}${changePercent.toFixed(1)} %`,
  ];
}

function origin({ plan, date, commit, machine, generator }: Report): string {
  return `${plan} run of ${date} at ${commit ?? 'no commit'}: ${machine}. Load: ${generator}.`;
}

/** For a terminal. */
export function toText(report: Report): string {
  const rows = [HEADINGS, ...report.figures.map(cellsOf)];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  return [origin(report), '', lines[0], rule, ...lines.slice(1), '', ...report.notes].join('\n');
}

/** Required figures first, and all of the others behind them. */
export function toMarkdown(report: Report, place: Place): string {
  const table = (figures: readonly Judged[]): string[] =>
    [HEADINGS, HEADINGS.map(() => '---'), ...figures.map(cellsOf)].map((row) => `| ${row.join(' | ')} |`);
  const required = report.figures.filter((figure) => figure.required !== null);
  const others = report.figures.filter((figure) => figure.required === null);
  const text = origin(report);
  return [
    `${text.charAt(0).toUpperCase()}${text.slice(1)} Medians of the rounds, with the smallest and the largest; \`last\` is what \`${place.json}\` held before.`,
    '',
    ...table(required),
    '',
    ...table(others),
    '',
    ...report.notes.map((note) => `- ${note}`),
    '',
    ...report.curves.map(({ name, title }) => `![${title}](${PLOTS}/${name}.svg)`),
  ].join('\n');
}
