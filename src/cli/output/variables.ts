/**
 * Records as lines that a shell reads: NAME='value'. A prefix keeps fields from taking the place of what a shell needs, as PATH, or of
 * what steers this command.
 */
import { isLoaderVariable } from '../../masking/loader-variables.ts';
import { Mistake } from '../mistake.ts';
import { type Printable, toText } from './cells.ts';

/** A list gives each record's variables after the other, numbered from 1. */
export function toVariables(value: Printable | readonly Printable[]): string {
  if (!Array.isArray(value)) return linesOf(value as Printable, '');
  return (value as readonly Printable[]).map((record, at) => linesOf(record, `_${at + 1}`)).join('');
}

function linesOf(record: Printable, suffix: string): string {
  return Object.entries(record)
    .map(([field, value]) => `OUT_${toVariableName(field)}${suffix}=${quote(toText(value))}\n`)
    .join('');
}

/** In capitals, with `_` for all that a name can't have. */
export function toVariableName(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9]/g, '_')
    .toUpperCase()
    .replace(/^(?=\d)/, '_');
}

/** As every shell takes it, whatever it holds. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** In quotes only where a shell would take it for more than itself. */
export function quoteWord(text: string): string {
  // zsh takes a word that begins with = for the path of a program.
  return /^(?!=)[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : quote(text);
}

/** @throws Mistake for the name of a variable that would steer whatever is run next */
export function assertHarmless(name: string): string {
  if (!isLoaderVariable(name)) return name;
  throw new Mistake(
    `the variable would be ${name}, which steers other programs`,
    `Choose a name of your own: export NAME="$(leasehold get PATH)"`,
  );
}
