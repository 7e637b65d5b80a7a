/** The output of an import: plan, results and follow-up steps. It never contains a value. */
import { toCell } from '../output/cells.ts';
import type { ImportPlan } from './plan.ts';
import { isToStore } from './plan.ts';
import type { ImportOutcome } from './store.ts';

export const PLAN_COLUMNS = ['path', 'plan', 'type', 'from', 'reason'];
export const OUTCOME_COLUMNS = ['path', 'result', 'type', 'from', 'reason'];

/** One record per row; skipped values have no path. */
export function planRecords({ rows, skipped }: ImportPlan) {
  return [
    ...rows.map(({ path, state, draft, from }) => ({
      path,
      plan: state as string,
      type: draft.type,
      from,
      reason: null,
    })),
    ...skipped.map(({ where, reason }) => ({ path: null, plan: 'left out', type: null, from: where, reason })),
  ];
}

export function outcomeRecords(plan: ImportPlan, outcomes: readonly ImportOutcome[]) {
  const byRow = new Map(outcomes.map((outcome) => [outcome.row, outcome]));
  return [
    ...plan.rows.map((row) => {
      const { result, reason } = byRow.get(row) ?? { result: row.state as string, reason: null };
      return { path: row.path, result: result as string, type: row.draft.type, from: row.from, reason };
    }),
    ...plan.skipped.map(({ where, reason }) => ({ path: null, result: 'left out', type: null, from: where, reason })),
  ];
}

/** `12 new, 3 new versions; 2 left out`. */
export function planSentence({ rows, skipped }: ImportPlan): string {
  const count = (state: string): number => rows.filter((row) => row.state === state).length;
  const parts = [
    counted(count('new') + count('new?'), 'new credential', 'new credentials'),
    counted(count('new version'), 'new version', 'new versions'),
    counted(count('unchanged'), 'unchanged', 'unchanged'),
    counted(count('exists'), 'existing', 'existing'),
    counted(skipped.length, 'left out', 'left out'),
  ];
  return parts.filter((part) => part !== null).join(', ') || 'nothing';
}

export function outcomeSentence(plan: ImportPlan, outcomes: readonly ImportOutcome[]): string {
  const count = (result: string): number => outcomes.filter((outcome) => outcome.result === result).length;
  const skipped = plan.rows.filter((row) => !isToStore(row)).length + count('exists');
  const parts = [
    counted(count('stored'), 'stored', 'stored') ?? '0 stored',
    counted(skipped, 'skipped', 'skipped'),
    counted(plan.skipped.length, 'left out', 'left out'),
    counted(count('failed'), 'failed', 'failed'),
    counted(count('not tried'), 'not tried', 'not tried'),
  ];
  return parts.filter((part) => part !== null).join(', ');
}

function counted(count: number, one: string, many: string): string | null {
  return count === 0 ? null : `${count} ${count === 1 ? one : many}`;
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
