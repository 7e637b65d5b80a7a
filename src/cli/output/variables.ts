/**
 * Formats records as shell assignments, NAME='value'. The prefix prevents a field from replacing a variable such as
 * PATH or one that configures this command.
 */

import { isLoaderVariable } from '../../masking/loader-variables.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteForShell } from '../../platform/shell-quoting.ts';
import { escapeControls, type Printable, toText } from './cells.ts';

/** Variables of a list are numbered from 1. Control characters are escaped on a terminal. */
export function toVariables(value: Printable | readonly Printable[], isOnTerminal = false): string {
  const linesOf = (record: Printable, suffix: string): string =>
    Object.entries(record)
      .map(([field, each]) => variableLine(`OUT_${toVariableName(field)}${suffix}`, toText(each), isOnTerminal))
      .join('');
  if (!Array.isArray(value)) return linesOf(value as Printable, '');
  return (value as readonly Printable[]).map((record, at) => linesOf(record, `_${at + 1}`)).join('');
}

export function variableLine(name: string, value: string, isOnTerminal: boolean): string {
  return `${name}=${isOnTerminal ? escapeControls(quoteForShell(value)) : quoteForShell(value)}\n`;
}

/** Upper case, with `_` for other characters. */
export function toVariableName(text: string): string {
  return text
    .replaceAll(/[^A-Za-z0-9]/g, '_')
    .toUpperCase()
    .replace(/^(?=\d)/, '_');
}

/** @throws UsageError for a variable that changes how programs load code */
export function assertNotLoaderVariable(name: string): string {
  if (!isLoaderVariable(name)) return name;
  throw new UsageError(
    `the variable would be ${name}, which changes how programs load code`,
    `Choose another name: export NAME="$(leasehold get PATH)"`,
  );
}
