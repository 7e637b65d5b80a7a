/** The output of an import: plan, results and follow-up steps. It never contains a value. */
import { type Printable, toCell } from '../output/cells.ts';
import type { ImportPlan } from './plan.ts';

/** The terminal, for imports and scans. */
export interface ReportPorts {
  /** Prints a line for the user. */
  say(line: string): void;
  /** @throws UsageError without a terminal */
  confirm(question: string): Promise<boolean>;
  print(records: readonly Printable[], columns: readonly string[]): Promise<void>;
}

/** The name of the column with the states: before and after storing. */
type Column = 'plan' | 'result';

export const columnsOf = (column: Column): readonly string[] => ['path', column, 'type', 'from', 'reason'];

/** One record per row; skipped values have no path. */
export function toRecords({ rows, skipped }: ImportPlan, column: Column) {
  return [
    ...rows.map(({ path, state, draft, from, reason }) => ({ path, [column]: state, type: draft.type, from, reason })),
    ...skipped.map(({ where, reason }) => ({ path: null, [column]: 'left out', type: null, from: where, reason })),
  ];
}

/** `12 new, 3 new version, 2 left out`. */
export function summary({ rows, skipped }: ImportPlan): string {
  const counts = [...Map.groupBy(rows, ({ state }) => state)].map(([state, group]) => `${group.length} ${state}`);
  if (skipped.length > 0) counts.push(`${skipped.length} left out`);
  return counts.join(', ') || 'nothing';
}

/** What to do after an import, because the source still holds every value. `file` is null for standard input. */
export function followUpSteps(source: {
  readonly file: string | null;
  readonly isEnv: boolean;
  readonly vault: string | null;
}) {
  if (source.vault !== null) {
    return [
      `${toCell(source.vault)} still holds these secrets. Rotate them, or delete them there after you have checked the import.`,
    ];
  }
  if (source.file === null) return [];
  const file = toCell(source.file);
  return [
    `${file} still holds every value in plain text. Nothing was deleted.`,
    source.isEnv
      ? `  leasehold scan --move replaces the values in .env files with references; or delete the file: rm ${file}`
      : `  Delete it after you have checked the import: rm ${file}`,
    '  If it was ever committed, sent or backed up, those copies contain the values too: rotate them.',
  ];
}
