/** The files of a folder that are worth a look, in order of their names. Links are not followed, so that no tree is without an end. */

import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { UsageError } from '../../platform/errors.ts';
import { readRegularFile } from '../given-file.ts';
import { isEnvFile } from './env-file.ts';
import { brokenPatternsRule, isIgnored, parsePatterns } from './ignore.ts';
import { type ActiveIgnores, IgnoreFiles } from './ignore-files.ts';

const NEVER_ENTERED: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', '.jj', 'node_modules']);
const LARGEST_BYTES = 1024 * 1024;
const BINARY_WITHIN_BYTES = 8192;
const MOST_FILES = 100_000;
const DEEPEST = 64;

export interface ScannedFile {
  /** From the folder, with forward slashes. */
  readonly file: string;
  /** On this machine. */
  readonly path: string;
  readonly isEnv: boolean;
  readonly bytes: Buffer;
}

/** What was not looked at, and so may hold anything. */
export interface Skipped {
  large: number;
  binary: number;
  /** Names, from the folder. */
  readonly unreadable: string[];
  /** Files of patterns, with the reason: what they name was looked at. */
  readonly notFollowed: string[];
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
  readonly ignoring: ActiveIgnores;
}

/** @throws UsageError where the folder can't be read or holds more than 100,000 files, and for patterns out of bounds */
export async function* walk(options: TreeOptions, passed: Skipped): AsyncGenerator<ScannedFile> {
  const status = await stat(options.root).catch(() => null);
  if (status === null) throw new UsageError(`${options.root}: is not there`);
  if (!status.isDirectory()) {
    const looked = await look(dirname(options.root), [basename(options.root)], passed);
    if (looked !== null) yield looked;
    return;
  }
  const excludes = excluder(options.excluded);
  const ignoreFiles = new IgnoreFiles(passed.notFollowed);
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
    const ignoring = options.usesIgnoreFiles ? await ignoreFiles.enter(level.ignoring, options.root, path) : [];
    const folders: Level[] = [];
    for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      const below = [...path, entry.name];
      const isFolder = entry.isDirectory();
      if ((!isFolder && !entry.isFile()) || excludes(below, isFolder)) continue;
      const isIgnored = ignoreFiles.ignores(ignoring, below, isFolder);
      if (isFolder) {
        if (isIgnored || NEVER_ENTERED.has(entry.name)) continue;
        if (below.length > DEEPEST) passed.unreadable.push(`${below.join('/')}/`);
        else folders.push({ path: below, ignoring });
        // An env file is ignored by git for the very reason that it holds secrets.
      } else if (!isIgnored || isEnvFile(entry.name)) {
        files += 1;
        if (files > MOST_FILES) throw new UsageError(`more than ${MOST_FILES} files: scan a smaller folder`);
        const looked = await look(options.root, below, passed);
        if (looked !== null) yield looked;
      }
    }
    levels.push(...folders.reverse());
  }
}

/** What whoever asks has typed may take as long as it takes. @throws UsageError */
function excluder(lines: readonly string[]): (path: readonly string[], isFolder: boolean) => boolean {
  const text = lines.join('\n');
  const rule = brokenPatternsRule(text);
  if (rule !== null) throw new UsageError(`--exclude: ${rule}`);
  const patterns = parsePatterns(text);
  const steps = { left: Number.POSITIVE_INFINITY };
  return (path, isFolder) => isIgnored(patterns, path, isFolder, steps) === true;
}

/** Null where it was passed over. */
async function look(root: string, segments: readonly string[], passed: Skipped): Promise<ScannedFile | null> {
  const file = segments.join('/');
  const path = join(root, ...segments);
  try {
    const bytes = await readRegularFile(path, LARGEST_BYTES);
    if (bytes === 'other') return null;
    if (bytes === 'large') {
      passed.large += 1;
      return null;
    }
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
