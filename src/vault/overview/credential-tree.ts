/** One level of the tree of credential paths, in pages. */

import { authorize, type Context } from '../../core/operation.ts';
import { type CredentialPath, parsePath } from '../../core/path.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { type LevelQuery, type LevelStep, readLevel } from '../../store/credential-lists.ts';
import type { Store } from '../../store/port.ts';
import { yieldToEventLoop } from '../paging.ts';
import type { Vault } from '../vault.ts';

/** Credentials that are read for one response; more are not counted. */
const MAX_COUNTED = 100_000;

export interface TreeRequest {
  /** Empty for the first level. */
  readonly prefix: CredentialPath | '';
  readonly limit: number;
  /** The `next` of the previous page. */
  readonly after: string | null;
}

interface TreeEntry {
  readonly name: string;
  readonly path: string;
  /** Null for a credential. */
  readonly directory: { readonly credentials: number | null } | null;
  /** Null for a directory. */
  readonly credential: { readonly type: string; readonly updatedAt: number } | null;
}

export interface TreeLevel {
  readonly entries: readonly TreeEntry[];
  /** `after` of the next page; null at the end. */
  readonly next: string | null;
}

/** A directory and a credential may have the same name. @throws INVALID_REQUEST for an `after` of another level */
export async function readTree(
  vault: Vault,
  context: Context,
  request: TreeRequest,
  signal: AbortSignal,
  maxCounted = MAX_COUNTED,
): Promise<TreeLevel> {
  const { prefix, limit, after } = request;
  const base = prefix === '' ? '' : `${prefix}/`;
  const start = after === null ? base : startAfter(base, after);
  await vault.ledger.read(authorize(context, 'credential.tree'));
  // '0' follows '/', and DEL every character of a path.
  const query = { base, end: prefix === '' ? '\u007f' : `${prefix}0` };
  const readEntries = () => collectEntries(vault.store, { query, start, limit, maxCounted, signal });
  const entries = await vault.scanTurns.readerOf(context, signal).inTurn(readEntries);
  const shown = entries.slice(0, limit);
  const last = shown.at(-1);
  const isEnd = entries.length <= limit || last === undefined;
  return { entries: shown, next: isEnd ? null : last.path + (last.directory === null ? '' : '/') };
}

interface Collection {
  readonly query: LevelQuery;
  readonly start: string;
  readonly limit: number;
  readonly maxCounted: number;
  readonly signal: AbortSignal;
}

/** One entry more than `limit`, if the level has more. */
async function collectEntries(
  store: Store,
  { query, start, limit, maxCounted, signal }: Collection,
): Promise<TreeEntry[]> {
  const { base } = query;
  const entries: TreeEntry[] = [];
  let counted = 0;
  for (let from: string | null = start; from !== null && entries.length <= limit; ) {
    await yieldToEventLoop(signal);
    const step: LevelStep = await store.run(readLevel(store.dialect, query, from));
    for (const { name, count, credential } of step.entries) {
      counted += count;
      addEntry(entries, { name, path: base + name, credential, directory: credential ? null : { credentials: count } });
    }
    from = step.next;
    const last = entries.at(-1);
    if (from === null || counted < maxCounted || last?.directory == null) continue;
    entries[entries.length - 1] = { ...last, directory: { credentials: null } };
    from = `${last.path}0`;
  }
  return entries;
}

/** Adds the entry, or its count to that of the same directory in the previous step. */
function addEntry(entries: TreeEntry[], entry: TreeEntry): void {
  const last = entries.at(-1);
  if (entry.directory === null || last?.directory == null || last.path !== entry.path) {
    entries.push(entry);
    return;
  }
  const [before, more] = [last.directory.credentials, entry.directory.credentials];
  entries[entries.length - 1] = {
    ...last,
    directory: { credentials: before === null || more === null ? null : before + more },
  };
}

/** The first path after the entry: after a credential itself, or after all paths of a directory. */
function startAfter(base: string, after: string): string {
  const isDirectory = after.endsWith('/');
  const path = isDirectory ? after.slice(0, -1) : after;
  const isOfLevel = path.startsWith(base) && !path.slice(base.length).includes('/');
  if (!isOfLevel) throw invalidRequest('after', 'must be the next of a page of the same prefix');
  parsePath(path, 'after');
  return isDirectory ? `${path}0` : `${path}!`;
}
