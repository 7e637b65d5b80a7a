/**
 * The plan of an import: a row for each credential to store, and the values that are skipped, with the reason. Maps
 * names of other programs to paths: letters lose their accents, each run of characters that a path cannot contain
 * becomes one `-`, and such runs at the ends of a name are removed. Names are never truncated; a name without any valid
 * character is rejected. Compares the rows with the vault and stores them. A failure stops the rest only if every
 * request would fail.
 */

import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { mayHaveSucceeded } from '../../client/retries.ts';
import { pathViolation } from '../../core/path.ts';
import { ApiError } from '../../engine/errors.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteWord } from '../../platform/installation.ts';
import { inParallel } from '../../platform/waiting.ts';
import { findService, recogniseKey } from '../../vault/catalogue/catalogue.ts';
import type { ServiceDefinition } from '../../vault/catalogue/definition.ts';
import { parseValue } from '../../vault/credentials/credential.ts';
import { nullIfMissing } from '../errors.ts';
import { type Draft, type ImportSource, Reader, type SkippedItem } from './source.ts';

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

const MAX_CONCURRENT = 8;

export type ImportTarget = Pick<Leasehold, 'credentials' | 'targets'>;

interface Progressing {
  readonly signal: AbortSignal;
  progress(done: number, of: number): void;
}

/** Returns the plan with the results. Rejects neither on an error response nor on the signal. */
export async function storeAll(
  vault: ImportTarget,
  plan: ImportPlan,
  { onlyNew, signal, progress }: Progressing & { readonly onlyNew: boolean },
): Promise<ImportPlan> {
  const wanted = plan.rows.filter((row) => isToStore(row) || (row.state === 'unchanged' && row.service !== null));
  const results = new Map<ImportRow, ImportRow>();
  const stopped = new AbortController();
  const storeOne = async (row: ImportRow): Promise<void> => {
    try {
      const state = row.state === 'unchanged' ? row.state : await store(vault, row, onlyNew);
      results.set(row, { ...row, state, ...(state === 'exists' ? { service: null } : await setService(vault, row)) });
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      if (isFatal(error)) stopped.abort();
      results.set(row, { ...row, state: 'failed', service: null, reason: reasonOf(error) });
    }
    progress(results.size, wanted.length);
  };
  // WHY the signal aborts no request: those in flight are completed, so that their result is known.
  await inParallel(wanted, MAX_CONCURRENT, storeOne, AbortSignal.any([signal, stopped.signal])).catch((error) => {
    if (!signal.aborted && !stopped.signal.aborted) throw error;
  });
  const notTried = { state: 'not tried', service: null } as const;
  return {
    ...plan,
    rows: plan.rows.map((row) => results.get(row) ?? (isToStore(row) ? { ...row, ...notTried } : row)),
  };
}

async function store(
  { credentials }: ImportTarget,
  { path, draft: { value, type, description } }: ImportRow,
  onlyIfNew: boolean,
): Promise<'stored' | 'exists'> {
  const request = { path, value, ...(type && { type }), ...(description && { description }) };
  try {
    await credentials.store(request, { onlyIfNew });
    return 'stored';
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === 'ALREADY_EXISTS' && onlyIfNew) return 'exists';
    throw error;
  }
}

/** Sets the targets of a stored credential, unless it already has targets, which an administrator chose. */
async function setService({ targets }: ImportTarget, row: ImportRow): Promise<Pick<ImportRow, 'service' | 'reason'>> {
  const { path, service, state } = row;
  if (service === null) return { service, reason: null };
  try {
    if (state !== 'new') {
      const present = await nullIfMissing(targets.read(path));
      if (present !== null) return { service: findService(present.service ?? ''), reason: null };
    }
    await targets.put(path, { service: service.name });
    return { service, reason: null };
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    const later = `leasehold target put ${quoteWord(path)} --service ${service.name}`;
    return {
      service: null,
      reason: `its service was not set: ${reasonOf(error)}; a caller with store and list on the path can set it: ${later}`,
    };
  }
}

/** Whether every further request would fail too. This is not so for an error response about one credential. */
function isFatal({ requestId, status }: LeaseholdError): boolean {
  return requestId === null || status === 401 || status === 503;
}

function reasonOf(error: LeaseholdError): string {
  const named = error.requestId === null ? '' : `, request ${error.requestId}`;
  return `${error.message} (${error.code}${named})${mayHaveSucceeded(error) ? '; it may have been stored' : ''}`;
}

const LEASE_SECONDS = 1;

/**
 * Marks the rows whose value is already in the vault. Each comparison is a retrieval, with an audit entry and a lease
 * of one second. A row that the caller may not retrieve keeps its planned state. @throws LeaseholdError
 */
export async function compare(
  { credentials }: ImportTarget,
  plan: ImportPlan,
  { signal, progress }: Progressing,
): Promise<ImportPlan> {
  const existing = plan.rows.filter(({ state }) => state === 'new version');
  const unchanged = new Set<ImportRow>();
  let done = 0;
  const compareOne = async (row: ImportRow): Promise<void> => {
    try {
      const { value } = await credentials.retrieve(row.path, { ttlSeconds: LEASE_SECONDS, useCache: false, signal });
      if (value.reveal() === row.draft.value.reveal()) unchanged.add(row);
    } catch (error) {
      const isSkipped = error instanceof LeaseholdError && /^(?:ACCESS_DENIED|NOT_FOUND)$/.test(error.code);
      if (!isSkipped) throw error;
    }
    progress(++done, existing.length);
  };
  await inParallel(existing, MAX_CONCURRENT, compareOne, signal);
  return { ...plan, rows: plan.rows.map((row) => (unchanged.has(row) ? { ...row, state: 'unchanged' } : row)) };
}
