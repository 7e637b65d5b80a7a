/** Reads all secrets of a KV v2 mount: each field under PATH/FIELD, or PATH when the only field is `value`. */
import { UsageError } from '../../platform/errors.ts';
import { inParallel } from '../../platform/parallel.ts';
import { RemoteError } from '../errors.ts';
import { type ImportSource, Reader } from './item.ts';
import { addJson, isObject, type JsonObject } from './json.ts';
import { type Kv2, MOUNT_HINT } from './kv2.ts';

const MAX_CONCURRENT = 8;
/** The limit of a path of the vault; it also ends a listing that a hostile server makes endless. */
const MAX_DEPTH = 32;
const MAX_KEYS = 100_000;

export interface WalkOptions {
  readonly mount: string;
  /** The directory to start from; empty for the whole mount. */
  readonly below: readonly string[];
  readonly signal: AbortSignal;
  /** The number of secrets read, of those found so far. */
  progress(done: number, of: number): void;
}

/**
 * @throws RemoteError when the mount cannot be listed or its response is invalid; UsageError when it has too many
 * secrets
 */
export async function readKv2(kv2: Kv2, options: WalkOptions): Promise<ImportSource> {
  const reader = new Reader();
  const secrets = await listAll(kv2, reader, options);
  const read = new Map<readonly string[], JsonObject>();
  let done = 0;
  const readOne = async (path: readonly string[]): Promise<void> => {
    const version = await kv2.read(path, options.signal);
    if ('data' in version) read.set(path, version.data);
    else reader.skip(locationOf(options, path), version.missing, version.isRejected ? 'rejected' : 'empty');
    options.progress(++done, secrets.length);
  };
  await inParallel(secrets, MAX_CONCURRENT, readOne, options.signal);
  // In order of paths, not of responses.
  for (const path of secrets) addSecret(reader, path, read.get(path), locationOf(options, path));
  return reader;
}

const locationOf = ({ mount }: WalkOptions, path: readonly string[]): string => `${mount}/${path.join('/')}`;

async function listAll(kv2: Kv2, reader: Reader, options: WalkOptions): Promise<readonly (readonly string[])[]> {
  const secrets: (readonly string[])[] = [];
  let keys = 0;
  let deeper: (readonly string[])[] = [];
  const listOne = async (directory: readonly string[]): Promise<void> => {
    const names = await kv2.list(directory, options.signal);
    if (directory === options.below && !names?.length)
      throw nothingToList(names === null, locationOf(options, directory));
    if (names === null) reader.skip(`${locationOf(options, directory)}/`, 'the token is not allowed to list it');
    for (const name of new Set(names)) {
      keys += 1;
      if (keys > MAX_KEYS)
        throw new UsageError(
          `the mount has more than ${MAX_KEYS} secrets; import one directory at a time with --below`,
        );
      const isDirectory = name.endsWith('/');
      const path = [...directory, isDirectory ? name.slice(0, -1) : name];
      if (/^\.{0,2}\/?$/.test(name) || !name.isWellFormed())
        reader.skip(locationOf(options, path), 'its name cannot be requested');
      else if (path.length > MAX_DEPTH) reader.skip(locationOf(options, path), `it is deeper than ${MAX_DEPTH} levels`);
      else (isDirectory ? deeper : secrets).push(path);
    }
  };
  for (let level: readonly (readonly string[])[] = [options.below]; level.length > 0; level = deeper) {
    deeper = [];
    await inParallel(level, MAX_CONCURRENT, listOne, options.signal);
  }
  return secrets.sort((one, other) => (one.join('/') < other.join('/') ? -1 : 1));
}

function nothingToList(isForbidden: boolean, location: string): RemoteError {
  if (!isForbidden) return new RemoteError(`nothing was found at ${location}`, `${MOUNT_HINT} Check VAULT_NAMESPACE.`);
  const hint = 'It may have expired; its policy needs list on metadata/.';
  return new RemoteError(`the token is not allowed to list ${location} (403)`, hint);
}

function addSecret(reader: Reader, path: readonly string[], data: JsonObject | undefined, location: string): void {
  if (data === undefined) return;
  const { value, ...others } = data;
  const isValueOnly = value !== undefined && !isObject(value) && Object.keys(others).length === 0;
  addJson(reader, path, isValueOnly ? value : data, location);
}
