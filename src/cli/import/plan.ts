/** The plan of an import: a row for each credential to store, and the values that are skipped, with the reason. */
import { parseValue } from '../../core/credential.ts';
import { ApiError } from '../../core/errors.ts';
import { type Draft, type ImportSource, Reader, type SkippedItem } from './item.ts';
import { toPath } from './path-names.ts';

/**
 * `new?`: the caller cannot list every path. `unchanged`: the vault has the same value. `exists`: skipped because of
 * --if-new.
 */
type State = 'new' | 'new?' | 'new version' | 'unchanged' | 'exists';

export interface PlannedRow {
  readonly path: string;
  readonly state: State;
  readonly draft: Draft;
  /** The locations of the value in the source, the first few of many. */
  readonly from: string;
}

export interface ImportPlan {
  /** In the order of the source. */
  readonly rows: readonly PlannedRow[];
  readonly skipped: readonly SkippedItem[];
}

export interface PlanOptions {
  readonly prefix: readonly string[];
  /** Paths that the caller can list. */
  readonly existing: ReadonlySet<string>;
  /** Whether the caller can list every path. */
  readonly seesAll: boolean;
  readonly onlyNew: boolean;
}

/** Further locations are only counted. */
const MAX_LOCATIONS = 8;

export function makePlan(source: ImportSource, options: PlanOptions): ImportPlan {
  const out = new Reader();
  for (const each of source.skipped) out.skipped.push(each);
  const byPath = new Map<string, Draft[]>();
  for (const draft of source.drafts) {
    const rule = valueViolation(draft);
    const named = toPath(options.prefix, draft.names);
    if (rule === 'empty') out.skip(draft.where, 'it is empty', 'empty');
    else if (rule !== null) out.skip(draft.where, rule);
    else if ('rejected' in named) out.skip(draft.where, named.rejected);
    else appendTo(byPath, named.path, draft);
  }
  const rows: PlannedRow[] = [];
  for (const [path, drafts] of byPath) {
    const [draft] = drafts;
    if (draft === undefined) continue;
    // The same value twice is one credential; only the user can choose between different values.
    if (drafts.every((other) => isSame(draft, other))) {
      rows.push({ path, state: stateOf(path, options), draft, from: locationsOf(drafts, null) });
      continue;
    }
    for (const each of drafts) {
      const others = locationsOf(drafts, each);
      out.skip(each.where, `its path ${path} is also the path of another value (${others}); rename one of them`);
    }
  }
  return { rows, skipped: out.skipped };
}

function appendTo(byPath: Map<string, Draft[]>, path: string, draft: Draft): void {
  const drafts = byPath.get(path);
  if (drafts === undefined) byPath.set(path, [draft]);
  else drafts.push(draft);
}

/** WHY bounded: with thousands of values for one path, each would name all the others. */
function locationsOf(drafts: readonly Draft[], butFor: Draft | null): string {
  const count = drafts.length - (butFor === null ? 0 : 1);
  const first = drafts
    .slice(0, MAX_LOCATIONS + 1)
    .filter((draft) => draft !== butFor)
    .slice(0, MAX_LOCATIONS);
  const named = first.map(({ where }) => where).join(', ');
  return count > first.length ? `${named} and ${count - first.length} more` : named;
}

/** The rule that the value breaks; null when it can be stored. */
function valueViolation({ value }: Draft): string | null {
  const text = value.reveal();
  if (text === '') return 'empty';
  try {
    parseValue(text);
    return null;
  } catch (error) {
    if (error instanceof ApiError) return `its ${error.message.replace(/^value: /, 'value ')}`;
    throw error;
  }
}

function isSame(one: Draft, other: Draft): boolean {
  return one.value.reveal() === other.value.reveal();
}

function stateOf(path: string, { existing, seesAll, onlyNew }: PlanOptions): State {
  if (existing.has(path)) return onlyNew ? 'exists' : 'new version';
  return seesAll ? 'new' : 'new?';
}

/** Whether the plan stores it. */
export function isToStore({ state }: PlannedRow): boolean {
  return state !== 'unchanged' && state !== 'exists';
}
