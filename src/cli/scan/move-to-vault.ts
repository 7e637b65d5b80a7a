/**
 * Moves findings of env files into the vault. ORDER: rewrite the file only after the service has acknowledged the
 * value. An interrupted move leaves the value in the file, the vault or both, and running it again completes it.
 */
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import type { CredentialPath } from '../../core/path.ts';
import { parseEnvFile } from '../../run/env-file.ts';
import { writeReference } from '../../run/references.ts';
import { typeByName } from '../import/item.ts';
import { toPath } from '../import/path-names.ts';
import { RewriteError, replaceSpans, rewrite } from './rewrite.ts';
import type { MovableFinding } from './text.ts';

/** For a retrieval that only compares the value. */
const LEASE_SECONDS = 1;

export interface Move {
  readonly finding: MovableFinding;
  readonly path: CredentialPath;
}

/**
 * The target path: PREFIX, the directories of the file, the part of its name other than `.env`, and the name; or why it
 * has none.
 */
export function pathFor(prefix: readonly string[], { file, name }: MovableFinding): ReturnType<typeof toPath> {
  const directories = file.split('/');
  const kind = (directories.pop() ?? '').replace(/^\.env\.?|\.env$/, '');
  return toPath(prefix, [...directories, ...(kind === '' ? [] : [kind]), name]);
}

export interface Moved {
  readonly move: Move;
  /** Null when it was moved. */
  readonly failure: string | null;
}

/**
 * Moves the findings of one file, given the bytes that were scanned. Rejects neither on an error of the service nor of
 * the file system.
 */
export async function moveFile(
  vault: Pick<Leasehold, 'credentials'>,
  moves: readonly Move[],
  { path, bytes }: { readonly path: string; readonly bytes: Buffer },
): Promise<readonly Moved[]> {
  const assignments = parseEnvFile(bytes, path);
  const done: Moved[] = [];
  for (const move of moves) done.push({ move, failure: await store(vault, move) });
  const replacements = done.flatMap(({ move: { finding, path: target }, failure }) => {
    const span = assignments.find(({ name, line }) => name === finding.name && line === finding.line)?.valueSpan;
    if (span === undefined) throw new Error('the finding belongs to another file');
    return failure === null ? [{ span, text: writeReference({ path: target, version: null }) }] : [];
  });
  try {
    if (replacements.length > 0) await rewrite(path, bytes, replaceSpans(bytes, replacements));
    return done;
  } catch (error) {
    if (!(error instanceof RewriteError)) throw error;
    const failure = `it is stored, but the file was not changed: ${error.message}`;
    return done.map((each) => (each.failure === null ? { ...each, failure } : each));
  }
}

/** Null when the service has confirmed that the vault has the value. */
async function store({ credentials }: Pick<Leasehold, 'credentials'>, { path, finding }: Move): Promise<string | null> {
  const type = typeByName(finding.name);
  const request = { path, value: finding.value, ...(type === null ? {} : { type }) };
  try {
    const stored = await credentials.store(request, { onlyIfNew: true });
    return stored.path === path ? null : 'the service acknowledged another path';
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    if (error.code !== 'ALREADY_EXISTS') return `${error.message} (${error.code})`;
  }
  // An earlier run may have been interrupted before it rewrote the file.
  try {
    const { value } = await credentials.retrieve(path, { ttlSeconds: LEASE_SECONDS, useCache: false });
    if (value.reveal() === finding.value.reveal()) return null;
    return 'the path already has another value; use another --prefix';
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    return `the path already has a credential that cannot be compared (${error.code}); use another --prefix`;
  }
}
