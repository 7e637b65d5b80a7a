/**
 * Lists the files of a directory tree to scan, in the order of names. Links are not followed, so the tree is finite.
 */

import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { UsageError } from '../../platform/errors.ts';
import { readRegularFile } from '../input.ts';
import { isEnvFile } from './env-file.ts';
import { type ActiveIgnores, IgnoreFiles, isIgnored, parsePatterns } from './ignore.ts';

const EXCLUDED_DIRECTORIES: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', '.jj', 'node_modules']);
const MAX_FILE_BYTES = 1024 * 1024;
const BINARY_CHECK_BYTES = 8192;
const MAX_FILES = 100_000;
const MAX_DEPTH = 64;

export interface ScannedFile {
  /** Relative to the scanned directory, with forward slashes. */
  readonly file: string;
  /** In the file system. */
  readonly path: string;
  readonly isEnv: boolean;
  readonly bytes: Buffer;
}

/** What was not scanned, and may contain secrets. */
export interface Skipped {
  large: number;
  binary: number;
  /** Relative to the scanned directory. */
  readonly unreadable: string[];
  /** Ignore files that were not followed, with the reason. */
  readonly notFollowed: string[];
}

export interface TreeOptions {
  readonly root: string;
  readonly usesIgnoreFiles: boolean;
  /** Patterns as in .gitignore; they apply to env files too. */
  readonly excluded: readonly string[];
  readonly signal: AbortSignal;
}

interface Level {
  readonly path: readonly string[];
  readonly ignoring: ActiveIgnores;
}

/** @throws UsageError when the root does not exist, or the tree has more than 100,000 files */
export async function* walk(options: TreeOptions, skipped: Skipped): AsyncGenerator<ScannedFile> {
  const status = await stat(options.root).catch(() => null);
  if (status === null) throw new UsageError(`${options.root}: does not exist`);
  if (!status.isDirectory()) {
    const scanned = await readFile(dirname(options.root), [basename(options.root)], skipped);
    if (scanned !== null) yield scanned;
    return;
  }
  const excluded = parsePatterns(options.excluded.join('\n'));
  // Without a budget, because the user trusts their own patterns.
  const steps = { left: Number.POSITIVE_INFINITY };
  const ignoreFiles = new IgnoreFiles(skipped.notFollowed);
  let files = 0;
  const levels: Level[] = [{ path: [], ignoring: [] }];
  for (let level = levels.pop(); level !== undefined; level = levels.pop()) {
    options.signal.throwIfAborted();
    const { path } = level;
    const directory = join(options.root, ...path);
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => null);
    if (entries === null) {
      skipped.unreadable.push(`${path.join('/')}/`);
      continue;
    }
    const ignoring = options.usesIgnoreFiles ? await ignoreFiles.enter(level.ignoring, options.root, path) : [];
    const subdirectories: Level[] = [];
    for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      const below = [...path, entry.name];
      const isDirectory = entry.isDirectory();
      if ((!isDirectory && !entry.isFile()) || isIgnored(excluded, below, isDirectory, steps) === true) continue;
      const isLeft = ignoreFiles.ignores(ignoring, below, isDirectory);
      if (isDirectory) {
        if (isLeft || EXCLUDED_DIRECTORIES.has(entry.name)) continue;
        if (below.length > MAX_DEPTH) skipped.unreadable.push(`${below.join('/')}/`);
        else subdirectories.push({ path: below, ignoring });
        // Env files are scanned although git ignores them, because they hold secrets.
      } else if (!isLeft || isEnvFile(entry.name)) {
        files += 1;
        if (files > MAX_FILES) throw new UsageError(`more than ${MAX_FILES} files; scan a smaller directory`);
        const scanned = await readFile(options.root, below, skipped);
        if (scanned !== null) yield scanned;
      }
    }
    levels.push(...subdirectories.reverse());
  }
}

/** Null when the file was skipped. */
async function readFile(root: string, segments: readonly string[], skipped: Skipped): Promise<ScannedFile | null> {
  const file = segments.join('/');
  const path = join(root, ...segments);
  const bytes = await readRegularFile(path, MAX_FILE_BYTES).catch(() => null);
  if (bytes === null) skipped.unreadable.push(file);
  else if (bytes === 'large') skipped.large += 1;
  else if (bytes !== 'other' && bytes.subarray(0, BINARY_CHECK_BYTES).includes(0)) skipped.binary += 1;
  else if (bytes !== 'other') return { file, path, isEnv: isEnvFile(file), bytes };
  return null;
}
