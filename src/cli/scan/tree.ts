/** The files of a folder that are worth a look, in order of their names. Links are not followed, so that no tree is without an end. */
import { constants } from 'node:fs';
import { open, readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Mistake } from '../mistake.ts';
import { isEnvFile } from './envfile.ts';
import { type Patterns, parsePatterns, saysIgnored } from './ignore.ts';

const NEVER_ENTERED: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', '.jj', 'node_modules']);
const LARGEST_BYTES = 1024 * 1024;
const BINARY_WITHIN_BYTES = 8192;
const MOST_FILES = 100_000;
const DEEPEST = 64;

export interface Looked {
  /** From the folder, with forward slashes. */
  readonly file: string;
  /** On this machine. */
  readonly path: string;
  readonly isEnv: boolean;
  readonly bytes: Buffer;
}

/** What was not looked at, and so may hold anything. */
export interface Passed {
  large: number;
  binary: number;
  /** Names, from the folder. */
  readonly unreadable: string[];
}

export interface TreeOptions {
  readonly root: string;
  readonly usesIgnoreFiles: boolean;
  /** Patterns as in .gitignore, for env files too. */
  readonly excluded: readonly string[];
  readonly signal: AbortSignal;
}

interface Level {
  readonly path: readonly string[];
  readonly ignoring: readonly { readonly from: number; readonly patterns: Patterns }[];
}

/** @throws Mistake where the folder can't be read, or holds more than 100,000 files */
export async function* walk(options: TreeOptions, passed: Passed): AsyncGenerator<Looked> {
  const status = await stat(options.root).catch(() => null);
  if (status === null) throw new Mistake(`${options.root}: is not there`);
  if (!status.isDirectory()) {
    const looked = await look(dirname(options.root), [basename(options.root)], passed);
    if (looked !== null) yield looked;
    return;
  }
  const excluded = parsePatterns(options.excluded.join('\n'));
  let files = 0;
  const levels: Level[] = [{ path: [], ignoring: [] }];
  for (let level = levels.pop(); level !== undefined; level = levels.pop()) {
    options.signal.throwIfAborted();
    const { path } = level;
    const folder = join(options.root, ...path);
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => null);
    if (entries === null) {
      passed.unreadable.push(`${path.join('/')}/`);
      continue;
    }
    const own = options.usesIgnoreFiles ? await patternsIn(folder) : [];
    const ignoring = own.length === 0 ? level.ignoring : [...level.ignoring, { from: path.length, patterns: own }];
    const folders: Level[] = [];
    for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      const below = [...path, entry.name];
      const isFolder = entry.isDirectory();
      if ((!isFolder && !entry.isFile()) || saysIgnored(excluded, below, isFolder) === true) continue;
      const isIgnored = ignores(ignoring, below, isFolder);
      if (isFolder) {
        if (isIgnored || NEVER_ENTERED.has(entry.name)) continue;
        if (below.length > DEEPEST) passed.unreadable.push(`${below.join('/')}/`);
        else folders.push({ path: below, ignoring });
        // An env file is ignored by git for the very reason that it holds secrets.
      } else if (!isIgnored || isEnvFile(entry.name)) {
        files += 1;
        if (files > MOST_FILES) throw new Mistake(`more than ${MOST_FILES} files: scan a smaller folder`);
        const looked = await look(options.root, below, passed);
        if (looked !== null) yield looked;
      }
    }
    levels.push(...folders.reverse());
  }
}

async function patternsIn(folder: string): Promise<Patterns> {
  const text = await readFile(join(folder, '.gitignore'), 'utf8').catch(() => '');
  return text.length > LARGEST_BYTES ? [] : parsePatterns(text);
}

/** The deepest file that says something has the word. */
function ignores(ignoring: Level['ignoring'], path: readonly string[], isFolder: boolean): boolean {
  for (const { from, patterns } of ignoring.toReversed()) {
    const said = saysIgnored(patterns, path.slice(from), isFolder);
    if (said !== null) return said;
  }
  return false;
}

/** Null where it was passed over. */
async function look(root: string, segments: readonly string[], passed: Passed): Promise<Looked | null> {
  const file = segments.join('/');
  const path = join(root, ...segments);
  try {
    // What has become a link or a pipe meanwhile is not opened.
    await using handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const status = await handle.stat();
    if (!status.isFile()) return null;
    if (status.size > LARGEST_BYTES) {
      passed.large += 1;
      return null;
    }
    // One more, to see that it has not grown.
    const buffer = Buffer.alloc(status.size + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = (await handle.read(buffer, length, buffer.length - length, null)).bytesRead;
    }
    const bytes = buffer.subarray(0, length);
    if (bytes.subarray(0, BINARY_WITHIN_BYTES).includes(0)) {
      passed.binary += 1;
      return null;
    }
    return { file, path, isEnv: isEnvFile(file), bytes };
  } catch {
    passed.unreadable.push(file);
    return null;
  }
}
