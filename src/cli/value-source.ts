/** Where a value comes from: typed and not shown, standard input or a file; never an argument, which everybody on the machine sees. */

import { resolve } from 'node:path';
import { Secret } from '../core/secret.ts';
import { UsageError } from '../platform/errors.ts';
import { valueInArguments } from './errors.ts';
import { readGivenFile } from './given-file.ts';
import { askHidden, type Question } from './prompt.ts';
import { readStandardInput } from './standard-input.ts';
import { canAsk } from './terminal.ts';

/** Somewhat above what the service takes, so that it is the service that says what is too long. */
const MOST_BYTES = 1024 * 1024;
const TOO_MUCH = 'holds more than a value may have: 256 KiB';

/** Where a value is to come from. */
type Origin =
  | { readonly kind: 'typed' }
  | { readonly kind: 'piped' }
  | { readonly kind: 'file'; readonly file: string };

/** `from` is null where nothing was given. @throws UsageError for anything but `-` and `@FILE`, before anybody is asked */
export function parseValueSource(from: string | null): Origin {
  if (from === null) return { kind: 'typed' };
  if (from === '-') return { kind: 'piped' };
  if (from.startsWith('@')) return { kind: 'file', file: from.slice(1) };
  throw valueInArguments();
}

/** Byte for byte, but for what was typed. @throws UsageError, the signal's reason */
export async function readValue(question: Question, from: Origin): Promise<Secret> {
  const { terminal } = question;
  if (from.kind === 'typed') {
    if (!canAsk(terminal)) {
      throw new UsageError('the value is missing', 'Give - for standard input, or @FILE for a file.');
    }
    const value = await askHidden(question, 'Value');
    if (value.reveal() !== (await askHidden(question, 'Once more')).reveal()) throw new UsageError('the two differ');
    if (value.reveal() === '') throw new UsageError('the value is empty');
    return value;
  }
  if (from.kind === 'piped')
    return toSecret(await readStandardInput(question, MOST_BYTES, `standard input ${TOO_MUCH}`), 'standard input');
  const bounds = { mostBytes: MOST_BYTES, tooMuch: `the file ${TOO_MUCH}`, signal: question.signal };
  const path = resolve(terminal.folder, from.file);
  return toSecret(await readGivenFile(path, 'the file of the value', bounds), 'the file');
}

/** Whether it is a single line with its end, as `echo` and editors write it: mostly not meant. */
export function endsLine(value: Secret): boolean {
  return /^[^\r\n]*\r?\n$/.test(value.reveal());
}

function toSecret(bytes: Buffer, what: string): Secret {
  if (bytes.length === 0) throw new UsageError(`${what} is empty`);
  try {
    return new Secret(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    throw new UsageError(`${what} is no UTF-8; encode it first, for example with base64`);
  }
}
