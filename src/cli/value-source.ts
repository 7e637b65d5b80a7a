/** Reads a value from a hidden prompt, standard input or a file. Never from an argument, which other users can see. */

import { resolve } from 'node:path';
import { Secret } from '../core/secret.ts';
import { UsageError } from '../platform/errors.ts';
import { valueInArguments } from './errors.ts';
import { readGivenFile, readStandardInput } from './input.ts';
import { askHidden, type Question } from './prompt.ts';
import { isInteractive } from './terminal.ts';

/** Above the limit of the service, which reports values that are too long. */
const MAX_BYTES = 1024 * 1024;
const TOO_MUCH = 'is larger than a value can be: 256 KiB';

type ValueSource =
  | { readonly kind: 'prompt' }
  | { readonly kind: 'stdin' }
  | { readonly kind: 'file'; readonly file: string };

/** Null selects the prompt. @throws UsageError for anything but `-` and `@FILE` */
export function parseValueSource(from: string | null): ValueSource {
  if (from === null) return { kind: 'prompt' };
  if (from === '-') return { kind: 'stdin' };
  if (from.startsWith('@')) return { kind: 'file', file: from.slice(1) };
  throw valueInArguments();
}

/** Input other than the prompt is read byte for byte. @throws UsageError, the signal's reason */
export async function readValue(question: Question, from: ValueSource): Promise<Secret> {
  const { terminal } = question;
  if (from.kind === 'prompt') {
    if (!isInteractive(terminal)) {
      throw new UsageError('the value is missing', 'Use - for standard input, or @FILE for a file.');
    }
    const value = await askHidden(question, 'Value');
    if (value.reveal() !== (await askHidden(question, 'Repeat the value')).reveal())
      throw new UsageError('the values differ');
    if (value.reveal() === '') throw new UsageError('the value is empty');
    return value;
  }
  if (from.kind === 'stdin')
    return toSecret(await readStandardInput(question, MAX_BYTES, `standard input ${TOO_MUCH}`), 'standard input');
  const bounds = { maxBytes: MAX_BYTES, tooMuch: `the file ${TOO_MUCH}`, signal: question.signal };
  const path = resolve(terminal.workingDirectory, from.file);
  return toSecret(await readGivenFile(path, 'the file of the value', bounds), 'the file');
}

/** Whether the value is one line with a newline, as `echo` and editors write it, which is rarely intended. */
export function isSingleLineWithNewline(value: Secret): boolean {
  return /^[^\r\n]*\r?\n$/.test(value.reveal());
}

function toSecret(bytes: Buffer, what: string): Secret {
  if (bytes.length === 0) throw new UsageError(`${what} is empty`);
  try {
    return new Secret(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    throw new UsageError(`${what} is not valid UTF-8; encode it first, for example with base64`);
  }
}
