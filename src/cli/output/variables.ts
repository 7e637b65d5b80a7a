/**
 * Records as lines that a shell reads: NAME='value'. A prefix keeps fields from taking the place of what a shell needs, as PATH, or of
 * what steers this command.
 */

import { isLoaderVariable } from '../../masking/loader-variables.ts';
import { UsageError } from '../../platform/errors.ts';
import { escapeControls, type Printable, toText } from './cells.ts';

/** A list gives each record's variables after the other, numbered from 1. On a terminal nothing steers it. */
export function toVariables(value: Printable | readonly Printable[], isOnTerminal = false): string {
  const linesOf = (record: Printable, suffix: string): string =>
    Object.entries(record)
      .map(([field, each]) => variableLine(`OUT_${toVariableName(field)}${suffix}`, toText(each), isOnTerminal))
      .join('');
  if (!Array.isArray(value)) return linesOf(value as Printable, '');
  return (value as readonly Printable[]).map((record, at) => linesOf(record, `_${at + 1}`)).join('');
}

export function variableLine(name: string, value: string, isOnTerminal: boolean): string {
  return `${name}=${isOnTerminal ? escapeControls(quote(value)) : quote(value)}\n`;
}

/** In capitals, with `_` for all that a name can't have. */
export function toVariableName(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9]/g, '_')
    .toUpperCase()
    .replace(/^(?=\d)/, '_');
}

/** As every shell takes it, whatever it holds. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** In quotes only where a shell would take it for more than itself. */
export function quoteWord(text: string): string {
  // zsh takes a word that begins with = for the path of a program.
  return /^(?!=)[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : quote(text);
}

/** @throws UsageError for the name of a variable that would steer whatever is run next */
export function assertHarmless(name: string): string {
  if (!isLoaderVariable(name)) return name;
  throw new UsageError(
    `the variable would be ${name}, which steers other programs`,
    `Choose a name of your own: export NAME="$(leasehold get PATH)"`,
  );
}
