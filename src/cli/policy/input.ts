/** A file that is named on the command line, or standard input where it is `-`. */

import { resolve } from 'node:path';
import { UsageError } from '../../platform/errors.ts';
import { readGivenFile } from '../given-file.ts';
import type { Question } from '../prompt.ts';
import { readStandardInput } from '../standard-input.ts';

const MOST_BYTES = 16 * 1024 * 1024;
const TOO_MUCH = 'holds more than 16 MiB';

/** @throws UsageError, the signal's reason */
export async function readInput(question: Question, from: string): Promise<string> {
  const bytes = await (from === '-'
    ? readStandardInput(question, MOST_BYTES, `standard input ${TOO_MUCH}`)
    : readGivenFile(resolve(question.terminal.workingDirectory, from), `${from}:`, {
        mostBytes: MOST_BYTES,
        tooMuch: `${from}: ${TOO_MUCH}`,
        signal: question.signal,
      }));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${from === '-' ? 'standard input' : from}: is no text in UTF-8`);
  }
}
