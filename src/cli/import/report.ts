/** What is said of an import: its plan, what became of each item, and what is left to do by hand. Never a value. */
import { toCell } from '../output/cells.ts';
import type { Plan } from './plan.ts';
import { isToStore } from './plan.ts';
import type { Outcome } from './store.ts';

export const PLAN_COLUMNS = ['path', 'plan', 'type', 'from', 'reason'];
export const OUTCOME_COLUMNS = ['path', 'result', 'type', 'from', 'reason'];

/** A record a draft; what was left out has no path. */
export function planRecords({ rows, leftOut }: Plan) {
  return [
    ...rows.map(({ path, state, draft, from }) => ({
      path,
      plan: state as string,
      type: draft.type,
      from,
      reason: null,
    })),
    ...leftOut.map(({ where, reason }) => ({ path: null, plan: 'left out', type: null, from: where, reason })),
  ];
}

export function outcomeRecords(plan: Plan, outcomes: readonly Outcome[]) {
  const byRow = new Map(outcomes.map((outcome) => [outcome.row, outcome]));
  return [
    ...plan.rows.map((row) => {
      const { result, reason } = byRow.get(row) ?? { result: row.state as string, reason: null };
      return { path: row.path, result: result as string, type: row.draft.type, from: row.from, reason };
    }),
    ...plan.leftOut.map(({ where, reason }) => ({ path: null, result: 'left out', type: null, from: where, reason })),
  ];
}

/** `12 new, 3 new versions; 2 left out`. */
export function planSentence({ rows, leftOut }: Plan): string {
  const count = (state: string): number => rows.filter((row) => row.state === state).length;
  const parts = [
    counted(count('new') + count('new?'), 'new credential', 'new credentials'),
    counted(count('new version'), 'new version', 'new versions'),
    counted(count('unchanged'), 'unchanged', 'unchanged'),
    counted(count('there'), 'there already', 'there already'),
    counted(leftOut.length, 'left out', 'left out'),
  ];
  return parts.filter((part) => part !== null).join(', ') || 'nothing';
}

export function outcomeSentence(plan: Plan, outcomes: readonly Outcome[]): string {
  const count = (result: string): number => outcomes.filter((outcome) => outcome.result === result).length;
  const skipped = plan.rows.filter((row) => !isToStore(row)).length + count('there');
  const parts = [
    counted(count('stored'), 'stored', 'stored') ?? '0 stored',
    counted(skipped, 'skipped', 'skipped'),
    counted(plan.leftOut.length, 'left out', 'left out'),
    counted(count('failed'), 'failed', 'failed'),
    counted(count('not tried'), 'not tried', 'not tried'),
  ];
  return parts.filter((part) => part !== null).join(', ');
}

function counted(count: number, one: string, many: string): string | null {
  return count === 0 ? null : `${count} ${count === 1 ? one : many}`;
}

/** How to mend what an import leaves: the source holds every value still. `file` is null for standard input. */
export function followUpSteps(source: {
  readonly file: string | null;
  readonly isEnv: boolean;
  readonly vault: string | null;
}) {
  if (source.vault !== null) {
    return [
      `${toCell(source.vault)} still holds these secrets: exchange them, or take them out there once all is well.`,
    ];
  }
  if (source.file === null) return [];
  const file = toCell(source.file);
  return [
    `${file} still holds every value in the clear. Nothing was deleted.`,
    source.isEnv
      ? `  leasehold scan --move leaves references in .env files; or remove it: rm ${file}`
      : `  Remove it once all is well: rm ${file}`,
    '  If it was ever committed, sent or backed up, the values are there too: exchange them.',
  ];
}
