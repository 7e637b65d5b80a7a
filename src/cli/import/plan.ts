/**
 * The plan of an import: a row for each credential to store, and the values that are skipped, with the reason. Maps
 * names of other programs to paths: letters lose their accents, each run of characters that a path cannot contain
 * becomes one `-`, and such runs at the ends of a name are removed. Names are never truncated; a name without any valid
 * character is rejected.
 */

import { pathViolation } from '../../core/path.ts';
import { ApiError } from '../../engine/errors.ts';
import { UsageError } from '../../platform/errors.ts';
import { recogniseKey } from '../../vault/catalogue/catalogue.ts';
import type { ServiceDefinition } from '../../vault/catalogue/definition.ts';
import { parseValue } from '../../vault/credentials/credential.ts';
import { type Draft, type ImportSource, Reader, type SkippedItem } from './item.ts';

/**
 * The planned state, then the result. `new?`: the caller cannot list every path. `unchanged`: the vault stores the same
 * value. `exists`: skipped because of --if-new. `not tried`: after an interrupt, or after a failure that every request
 * would repeat.
 */
type State = 'new' | 'new?' | 'new version' | 'unchanged' | 'exists' | 'stored' | 'failed' | 'not tried';

export interface ImportRow {
  readonly path: string;
  readonly state: State;
  readonly draft: Draft;
  /** The service of the key, whose targets are set for it; null if it is unknown, or if it could not be set. */
  readonly service: ServiceDefinition | null;
  readonly from: string;
  readonly reason: string | null;
}

export interface ImportPlan {
  readonly rows: readonly ImportRow[];
  readonly skipped: readonly SkippedItem[];
}

export interface PlanOptions {
  readonly prefix: readonly string[];
  readonly existing: ReadonlySet<string>;
  readonly seesAll: boolean;
  readonly onlyNew: boolean;
}

export function makePlan(source: ImportSource, options: PlanOptions): ImportPlan {
  const out = new Reader();
  for (const each of source.skipped) out.skipped.push(each);
  const named: { readonly draft: Draft; readonly path: string }[] = [];
  for (const draft of source.drafts) {
    const rule = valueViolation(draft);
    const target = toPath(options.prefix, draft.names);
    if (draft.value.reveal() === '') out.skip(draft.where, 'it is empty', 'empty');
    else if (rule !== null) out.skip(draft.where, rule);
    else if ('rejected' in target) out.skip(draft.where, target.rejected);
    else named.push({ draft, path: target.path });
  }
  const rows: ImportRow[] = [];
  for (const [path, group] of Map.groupBy(named, (each) => each.path)) {
    const [first, ...others] = group.map(({ draft }) => draft);
    if (first === undefined) continue;
    const other = others.find(({ value }) => value.reveal() !== first.value.reveal());
    // The same value twice is one credential; only the user can choose between different values.
    if (other === undefined) {
      const from = others.length === 0 ? first.where : `${first.where} and ${others.length} more`;
      const service = recogniseKey(first.names.join('_'), first.value.reveal());
      rows.push({ path, state: stateOf(path, options), draft: first, service, from, reason: null });
      continue;
    }
    for (const draft of [first, ...others]) {
      const { where } = draft === first ? other : first;
      out.skip(draft.where, `its path ${path} is also the path of another value (${where}); rename one of them`);
    }
  }
  return { rows, skipped: out.skipped };
}

function valueViolation({ value }: Draft): string | null {
  try {
    parseValue(value.reveal());
    return null;
  } catch (error) {
    if (error instanceof ApiError) return `its ${error.message.replace(/^value: /, 'value ')}`;
    throw error;
  }
}

function stateOf(path: string, { existing, seesAll, onlyNew }: PlanOptions): State {
  if (existing.has(path)) return onlyNew ? 'exists' : 'new version';
  return seesAll ? 'new' : 'new?';
}

export function isToStore({ state }: ImportRow): boolean {
  return state === 'new' || state === 'new?' || state === 'new version';
}

const INVALID_RUN = /[^A-Za-z0-9._\-@:+=~]+/g;
const COMBINING_MARKS = /\p{M}+/gu;
/** Longer than any valid segment; bounds the cost of normalization. */
const MAX_NAME_LENGTH = 1024;

type Named = { readonly path: string } | { readonly rejected: string };

/** A name as a segment of a path; empty when no character of it is valid. */
function toSegment(name: string): string {
  const plain = name.slice(0, MAX_NAME_LENGTH).normalize('NFKD').replaceAll(COMBINING_MARKS, '');
  const segment = plain.replaceAll(INVALID_RUN, ' ').trim().replaceAll(' ', '-');
  return /^\.{1,2}$/.test(segment) ? '' : segment;
}

export function toPath(prefix: readonly string[], names: readonly string[]): Named {
  const segments = names.map(toSegment);
  if (names.length === 0 || segments.includes('')) {
    return { rejected: 'its name has no character that a path can contain; rename it, or store it with leasehold put' };
  }
  const path = [...prefix, ...segments].join('/');
  const rule = pathViolation(path);
  return rule === null ? { path } : { rejected: `its path ${rule}` };
}

/** The segments of --prefix; empty when it is not given. @throws UsageError */
export function parsePrefix(text: string | null): readonly string[] {
  if (text === null || text === '') return [];
  const prefix = text.endsWith('/') ? text.slice(0, -1) : text;
  const rule = pathViolation(prefix);
  if (rule !== null) throw new UsageError(`--prefix: ${rule}`);
  return prefix.split('/');
}
