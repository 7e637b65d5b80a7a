/** A file that is named on the command line, or standard input where it is `-`. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Question } from '../asking.ts';
import { Mistake } from '../mistake.ts';
import { readStandardInput } from '../standardinput.ts';

const MOST_BYTES = 16 * 1024 * 1024;

/** @throws Mistake, the signal's reason */
export async function readInput(question: Question, from: string): Promise<string> {
  const isPiped = from === '-';
  const piped = isPiped ? await readStandardInput(question, MOST_BYTES, 'standard input holds more than 16 MiB') : null;
  try {
    const bytes = piped ?? (await readFile(resolve(question.terminal.folder, from)));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    throw new Mistake(`${isPiped ? 'standard input' : from}: cannot be read as text in UTF-8${code}`);
  }
}
