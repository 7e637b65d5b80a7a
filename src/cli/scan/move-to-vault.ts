/**
 * Moves findings of env files into the vault. ORDER: store, have it acknowledged, then rewrite: whatever breaks off in between, the
 * value is in one of the two places, and the same again goes on.
 */
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import type { CredentialPath } from '../../core/path.ts';
import { type Assignment, parseEnvFile } from '../../run/env-file.ts';
import { writeReference } from '../../run/references.ts';
import { typeByName } from '../import/item.ts';
import { toPath } from '../import/path-names.ts';
import { type Replacement, RewriteError, replaceSpans, rewrite } from './rewrite.ts';
import type { MovableFinding } from './text.ts';

/** Of a retrieval that only compares. */
const LEASE_SECONDS = 1;

export interface Move {
  readonly finding: MovableFinding;
  readonly path: CredentialPath;
}

/** Where it goes: PREFIX, the folders of the file, what its name has beyond `.env`, and the name; or why it can't. */
export function pathFor(prefix: readonly string[], { file, name }: MovableFinding): ReturnType<typeof toPath> {
  const folders = file.split('/');
  const kind = (folders.pop() ?? '').replace(/^\.env\.?|\.env$/, '');
  return toPath(prefix, [...folders, ...(kind === '' ? [] : [kind]), name]);
}

export interface Moved {
  readonly move: Move;
  /** Null where it was moved. */
  readonly failure: string | null;
}

/** The moves of one file, as it was when they were found. Never rejects for what the service or the disk says. */
export async function moveFile(
  vault: Pick<Leasehold, 'credentials'>,
  moves: readonly Move[],
  { path, bytes }: { readonly path: string; readonly bytes: Buffer },
): Promise<readonly Moved[]> {
  const assignments = parseEnvFile(bytes, path);
  const done: { readonly move: Move; readonly failure: string | null; readonly replacement: Replacement | null }[] = [];
  for (const move of moves) {
    const assignment = assignments.find((each) => isOf(each, move.finding));
    if (assignment === undefined) throw new Error('a finding is of another file');
    const failure = await store(vault, move);
    const text = writeReference({ path: move.path, version: null });
    done.push({ move, failure, replacement: failure === null ? { span: assignment.valueSpan, text } : null });
  }
  const replacements = done.flatMap(({ replacement }) => (replacement === null ? [] : [replacement]));
  try {
    if (replacements.length > 0) await rewrite(path, bytes, replaceSpans(bytes, replacements));
    return done;
  } catch (error) {
    if (!(error instanceof RewriteError)) throw error;
    const failure = `it is stored, but the file was left as it is: ${error.message}`;
    return done.map((each) => (each.failure === null ? { ...each, failure } : each));
  }
}

function isOf({ name, line }: Assignment, finding: MovableFinding): boolean {
  return name === finding.name && line === finding.line;
}

/** Null where the value is in the vault, by its own word. */
async function store({ credentials }: Pick<Leasehold, 'credentials'>, { path, finding }: Move): Promise<string | null> {
  const type = typeByName(finding.name);
  const request = { path, value: finding.value, ...(type === null ? {} : { type }) };
  try {
    const stored = await credentials.store(request, { onlyIfNew: true });
    return stored.path === path ? null : 'what was acknowledged is another path';
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    if (error.code !== 'ALREADY_EXISTS') return `${error.message} (${error.code})`;
  }
  // It may be from a run that was broken off before it could rewrite the file.
  try {
    const { value } = await credentials.retrieve(path, { ttlSeconds: LEASE_SECONDS, useCache: false });
    if (value.reveal() === finding.value.reveal()) return null;
    return 'there is another value at this path: give another --prefix';
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    return `there is a credential at this path, and it cannot be compared (${error.code}): give another --prefix`;
  }
}
