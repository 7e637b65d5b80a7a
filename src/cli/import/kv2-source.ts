/** All secrets of a KV v2 mount as drafts: each field under PATH/FIELD, or PATH where the only field is `value`. */
import { UsageError } from '../../platform/errors.ts';
import { RemoteError } from '../errors.ts';
import { inParallel } from '../parallel.ts';
import { type ImportSource, Reader } from './item.ts';
import type { JsonObject } from './json.ts';
import { addMembers, addValue } from './json-source.ts';
import type { Kv2 } from './kv2.ts';

const AT_ONCE = 8;
/** A path of the vault has no more; whoever lists deeper never ends. */
const DEEPEST = 32;
const MOST_KEYS = 100_000;

export interface WalkOptions {
  readonly mount: string;
  /** The folder where it begins; none for all of the mount. */
  readonly below: readonly string[];
  readonly signal: AbortSignal;
  /** How many secrets were read, of those found so far. */
  progress(done: number, of: number): void;
}

/** @throws Failure where the mount can't be listed, or does not answer as one; UsageError where it holds too much to be read at once */
export async function readKv2(kv2: Kv2, options: WalkOptions): Promise<ImportSource> {
  const reader = new Reader();
  const secrets = await listAll(kv2, reader, options);
  const read = new Map<string, JsonObject>();
  let done = 0;
  const readOne = async (path: readonly string[]): Promise<void> => {
    const version = await kv2.read(path, options.signal);
    if ('data' in version) read.set(path.join('/'), version.data);
    else reader.leaveOut(placeOf(options, path), version.none, version.isRefused ? 'refused' : 'empty');
    options.progress(++done, secrets.length);
  };
  await inParallel(secrets, AT_ONCE, readOne, options.signal);
  // In order of their paths, whichever answered first.
  for (const path of secrets) {
    const data = read.get(path.join('/'));
    if (data !== undefined) addSecret(reader, path, data, placeOf(options, path));
  }
  return reader;
}

const placeOf = ({ mount }: WalkOptions, path: readonly string[]): string => `${mount}/${path.join('/')}`;

async function listAll(kv2: Kv2, reader: Reader, options: WalkOptions): Promise<readonly (readonly string[])[]> {
  const secrets: (readonly string[])[] = [];
  let keys = 0;
  let deeper: (readonly string[])[] = [];
  const listOne = async (folder: readonly string[]): Promise<void> => {
    const names = await kv2.list(folder, options.signal);
    const isTop = folder === options.below;
    if (isTop && (names ?? []).length === 0) throw nothingToList(names === null, placeOf(options, folder));
    if (names === null) reader.leaveOut(`${placeOf(options, folder)}/`, 'the token may not list it');
    for (const name of new Set(names)) {
      keys += 1;
      if (keys > MOST_KEYS)
        throw new UsageError(`more than ${MOST_KEYS} secrets: import folder by folder, with --below`);
      const isFolder = name.endsWith('/');
      const path = [...folder, isFolder ? name.slice(0, -1) : name];
      if (!name.isWellFormed()) {
        throw new RemoteError(
          `${placeOf(options, path)}: the name is no well-formed Unicode, and cannot be asked for`,
          'Nothing was imported. Rename it there, or import the folders beside it, with --below.',
        );
      }
      if (/^\.{0,2}\/?$/.test(name)) reader.leaveOut(placeOf(options, path), 'its name cannot be asked for');
      else if (path.length > DEEPEST) reader.leaveOut(placeOf(options, path), `it is deeper than ${DEEPEST} levels`);
      else (isFolder ? deeper : secrets).push(path);
    }
  };
  for (let level: readonly (readonly string[])[] = [options.below]; level.length > 0; level = deeper) {
    deeper = [];
    await inParallel(level, AT_ONCE, listOne, options.signal);
  }
  return secrets.sort((one, other) => (one.join('/') < other.join('/') ? -1 : 1));
}

function nothingToList(isForbidden: boolean, place: string): RemoteError {
  const hint = 'Is it a KV engine of version 2, and is VAULT_NAMESPACE right?';
  return isForbidden
    ? new RemoteError(`the token may not list ${place} (403)`, 'It may have ended; its policy needs list on metadata/.')
    : new RemoteError(`there is nothing at ${place}`, hint);
}

function addSecret(reader: Reader, path: readonly string[], data: JsonObject, place: string): void {
  const source = {
    description: '',
    where: (names: readonly string[]) => `${place} › ${names.slice(path.length).join('.')}`,
  };
  const [only] = data.members.size === 1 ? [data.members.get('value')] : [];
  if (data.members.size === 0) reader.leaveOut(place, 'it has no fields', 'empty');
  else if (only !== undefined && only.kind !== 'object')
    addValue(reader, path, only, { ...source, where: () => place });
  else addMembers(reader, path, data, source);
}
