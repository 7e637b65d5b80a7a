/** What an import would do, before it does anything: a row for each draft that can be stored, and what can't be, with the reason. */
import { parseValue } from '../../core/credential.ts';
import { Fault } from '../../core/fault.ts';
import { type Draft, type LeftOut, Reader, type Reading } from './draft.ts';
import { toPath } from './naming.ts';

/**
 * `new?`: an agent does not see what it may not list. `unchanged`: it was compared, and is there already. `there`: it exists, and only
 * what is new is wanted.
 */
type State = 'new' | 'new?' | 'new version' | 'unchanged' | 'there';

export interface Row {
  readonly path: string;
  readonly state: State;
  readonly draft: Draft;
  /** All places that gave this value. */
  readonly from: string;
}

export interface Plan {
  /** In order of the source. */
  readonly rows: readonly Row[];
  readonly leftOut: readonly LeftOut[];
}

export interface PlanOptions {
  readonly prefix: readonly string[];
  /** Paths that the caller sees. */
  readonly existing: ReadonlySet<string>;
  /** Whether the caller sees all that there are. */
  readonly seesAll: boolean;
  readonly onlyNew: boolean;
}

export function makePlan(reading: Reading, options: PlanOptions): Plan {
  const out = new Reader();
  out.leftOut.push(...reading.leftOut);
  const byPath = new Map<string, Draft[]>();
  for (const draft of reading.drafts) {
    const rule = brokenValueRule(draft);
    const named = toPath(options.prefix, draft.names);
    if (rule === 'empty') out.leaveOut(draft.where, 'it is empty', 'empty');
    else if (rule !== null) out.leaveOut(draft.where, rule);
    else if ('refused' in named) out.leaveOut(draft.where, named.refused);
    else byPath.set(named.path, [...(byPath.get(named.path) ?? []), draft]);
  }
  const rows: Row[] = [];
  for (const [path, drafts] of byPath) {
    const [draft] = drafts;
    if (draft === undefined) continue;
    const from = drafts.map(({ where }) => where).join(', ');
    // What says the same twice is no question; everything else is one that only a person can answer.
    if (drafts.every((other) => isSame(draft, other))) rows.push({ path, state: stateOf(path, options), draft, from });
    else {
      const others = (own: Draft): string =>
        drafts
          .filter((other) => other !== own)
          .map(({ where }) => where)
          .join(', ');
      for (const each of drafts) {
        out.leaveOut(each.where, `it becomes ${path}, and so does another value (${others(each)}); rename one of them`);
      }
    }
  }
  return { rows, leftOut: out.leftOut };
}

/** Null where the value can be stored. */
function brokenValueRule({ value }: Draft): string | null {
  const text = value.reveal();
  if (text === '') return 'empty';
  try {
    parseValue(text);
    return null;
  } catch (error) {
    if (error instanceof Fault) return `its ${error.message.replace(/^value: /, 'value ')}`;
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
