/**
 * This installation: its version, the command that runs it, and the quoting of printed commands. A printed command
 * works from any directory. It is the plain name if PATH leads to this installation, otherwise the path.
 */
import { readFileSync, realpathSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));
  return String(version);
}

const FILE = resolve(import.meta.dirname, '../../scripts/leasehold');

export function ownCommand(environment: Readonly<Record<string, string | undefined>>): string {
  // WHY not the directories that npm and npx prepend to PATH: they are absent in the next shell.
  const isLasting = (directory: string): boolean => isAbsolute(directory) && !directory.endsWith('node_modules/.bin');
  const first = (environment['PATH'] ?? '')
    .split(delimiter)
    .filter(isLasting)
    .map((directory) => realPathOrNull(join(directory, 'leasehold')))
    .find((found) => found !== null);
  return first === realPathOrNull(FILE) ? 'leasehold' : ownCommandFile();
}

/** The path of the CLI. MCP clients are started elsewhere, with another PATH. */
export function ownCommandFile(): string {
  // The container image of a node contains no CLI: operators run it elsewhere.
  return realPathOrNull(FILE) === null ? 'leasehold' : FILE;
}

function realPathOrNull(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

export function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Quotes a word only if needed. */
export function quoteWord(text: string): string {
  // zsh expands a word that starts with = to the path of a program.
  return /^(?!=)[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : quoteForShell(text);
}
