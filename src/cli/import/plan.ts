/** What an import would do, before it does anything: a row for each draft that can be stored, and what can't be, with the reason. */
import { parseValue } from '../../core/credential.ts';
import { ApiError } from '../../core/errors.ts';
import { type Draft, type ImportSource, Reader, type Skipped } from './item.ts';
import { toPath } from './path-names.ts';

/**
 * `new?`: an agent does not see what it may not list. `unchanged`: it was compared, and is there already. `there`: it exists, and only
 * what is new is wanted.
 */
type State = 'new' | 'new?' | 'new version' | 'unchanged' | 'there';

export interface Row {
  readonly path: string;
  readonly state: State;
  readonly draft: Draft;
  /** The places that gave this value; of many the first. */
  readonly from: string;
}

export interface Plan {
  /** In order of the source. */
  readonly rows: readonly Row[];
  readonly leftOut: readonly Skipped[];
}

export interface PlanOptions {
  readonly prefix: readonly string[];
  /** Paths that the caller sees. */
  readonly existing: ReadonlySet<string>;
  /** Whether the caller sees all that there are. */
  readonly seesAll: boolean;
  readonly onlyNew: boolean;
}

/** Of places that are named in one line; the others are counted. */
const MOST_PLACES = 8;

export function makePlan(reading: ImportSource, options: PlanOptions): Plan {
  const out = new Reader();
  for (const each of reading.leftOut) out.leftOut.push(each);
  const byPath = new Map<string, Draft[]>();
  for (const draft of reading.drafts) {
    const rule = brokenValueRule(draft);
    const named = toPath(options.prefix, draft.names);
    if (rule === 'empty') out.leaveOut(draft.where, 'it is empty', 'empty');
    else if (rule !== null) out.leaveOut(draft.where, rule);
    else if ('refused' in named) out.leaveOut(draft.where, named.refused);
    else appendTo(byPath, named.path, draft);
  }
  const rows: Row[] = [];
  for (const [path, drafts] of byPath) {
    const [draft] = drafts;
    if (draft === undefined) continue;
    // What says the same twice is no question; everything else is one that only a person can answer.
    if (drafts.every((other) => isSame(draft, other))) {
      rows.push({ path, state: stateOf(path, options), draft, from: placesOf(drafts, null) });
      continue;
    }
    for (const each of drafts) {
      const others = placesOf(drafts, each);
      out.leaveOut(each.where, `it becomes ${path}, and so does another value (${others}); rename one of them`);
    }
  }
  return { rows, leftOut: out.leftOut };
}

function appendTo(byPath: Map<string, Draft[]>, path: string, draft: Draft): void {
  const drafts = byPath.get(path);
  if (drafts === undefined) byPath.set(path, [draft]);
  else drafts.push(draft);
}

/** WHY not all of them: each of thousands that get one path would name all the others. */
function placesOf(drafts: readonly Draft[], butFor: Draft | null): string {
  const count = drafts.length - (butFor === null ? 0 : 1);
  const first = drafts
    .slice(0, MOST_PLACES + 1)
    .filter((draft) => draft !== butFor)
    .slice(0, MOST_PLACES);
  const named = first.map(({ where }) => where).join(', ');
  return count > first.length ? `${named} and ${count - first.length} more` : named;
}

/** Null where the value can be stored. */
function brokenValueRule({ value }: Draft): string | null {
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
  if (existing.has(path)) return onlyNew ? 'there' : 'new version';
  return seesAll ? 'new' : 'new?';
}

/** Whether storing it is what is planned. */
export function isToStore({ state }: Row): boolean {
  return state !== 'unchanged' && state !== 'there';
}
