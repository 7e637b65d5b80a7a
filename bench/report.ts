// Reports of runs: docs/performance.json, the table of docs/performance.md, and the comparison that a terminal shows.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { describeThreshold, PAGE_ROWS } from './thresholds.ts';
import type { Figure } from './types.ts';

export interface Run {
  readonly plan: string;
  readonly date: string;
  readonly commit: string | null;
  readonly machine: string;
  readonly generator: string;
  readonly figures: readonly Figure[];
}

/** The last run on each store. */
export interface Report {
  readonly sqlite?: Run;
  readonly postgres?: Run;
}

const TABLE_START = '<!-- written by npm run bench -- --page -->';
const TABLE_END = '<!-- end of the table -->';

export function describeMachine(): string {
  const { version, platform, arch } = process;
  return `${availableParallelism()} × ${cpus()[0]?.model.trim()}, ${platform} ${arch}, Node ${version.slice(1)}`;
}

/** Ends in `-dirty` where files differ; null without git. */
export function describeCommit(root: string): string | null {
  try {
    const args = ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'];
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return null;
  }
}

export function readReport(file: string): Report {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}

export function toJson(report: Report): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}

/** Three significant digits, and all digits of a large number. */
export function formatNumber(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

function formatMeasure({ value, unit, low, high }: Figure): string {
  const range = low === high ? '' : ` (${formatNumber(low)} to ${formatNumber(high)})`;
  return `${formatNumber(value)}${unit === '' || unit.startsWith('/') ? unit : ` ${unit}`}${range}`;
}

function describeRun({ plan, date, commit, machine, generator }: Run, separator = ' '): string {
  return `${plan} run of ${date} at ${commit ?? 'an unknown commit'}; load from ${generator};${separator}${machine}`;
}

/** The figures of a run in columns, next to the committed ones. */
export function toText(run: Run, committed?: Run): string {
  const known = new Map(committed?.figures.map((figure) => [figure.name, figure]));
  const rows = run.figures.map((figure) => {
    const before = known.get(figure.name);
    return [
      figure.name,
      formatMeasure(figure),
      before === undefined ? '' : formatNumber(before.value),
      describeThreshold(figure),
    ];
  });
  const table = [['figure', 'now', `committed ${committed?.date ?? ''}`.trim(), 'threshold'], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const lines = table.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  return [describeRun(run), '', ...lines.map((line) => line.trimEnd())].join('\n');
}

/** The figures of the page and the runs that they are from. @throws Error where the report lacks one */
export function toTable({ sqlite, postgres }: Report): string {
  const known = new Map(
    [sqlite, postgres].flatMap((run) => run?.figures.map((each) => [each.name, each] as const) ?? []),
  );
  const rows = PAGE_ROWS.map(([label, ...measures]) => {
    const names = measures.length === 0 ? [label] : measures.map((measure) => `${label}, ${measure}`);
    const figures = names.map((name) => {
      const figure = known.get(name);
      if (figure === undefined) throw new Error(`the report lacks the figure "${name}"`);
      return figure;
    });
    const cells = figures.map((figure, index) => {
      const measure = measures[index] ?? 'rate';
      return measure === 'rate' ? formatMeasure(figure) : `${measure} ${formatMeasure(figure)}`;
    });
    return [label, cells.join('; '), figures.map(describeThreshold).filter(Boolean).join('; ')];
  });
  const table = [['figure', 'median (smallest to largest)', 'threshold'], ['---', '---', '---'], ...rows];
  const lines = table.map((row) => `| ${row.join(' | ')} |`.replaceAll('|  |', '| |'));
  const runs = Object.entries({ SQLite: sqlite, PostgreSQL: postgres });
  const origins = runs.map(([store, run]) => (run === undefined ? '' : `- ${store}: ${describeRun(run, '\n  ')}`));
  return [...lines, '', ...origins].join('\n');
}

/** @throws Error where the page lacks the markers */
export function replaceTable(file: string, table: string): void {
  const page = readFileSync(file, 'utf8');
  const [start, end] = [page.indexOf(TABLE_START), page.indexOf(TABLE_END)];
  if (start === -1 || end < start) throw new Error(`${file} needs the lines ${TABLE_START} and ${TABLE_END}`);
  writeFileSync(file, `${page.slice(0, start + TABLE_START.length)}\n\n${table}\n\n${page.slice(end)}`);
}
