/** A file that is named on the command line, or standard input where it is `-`. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { Mistake } from '../mistake.ts';
import type { Terminal } from '../terminal.ts';

/** @throws Mistake */
export async function readInput({ stdin, folder }: Terminal, from: string): Promise<string> {
  if (from === '-') return text(stdin);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(resolve(folder, from)));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    throw new Mistake(`${from}: can’t be read as text in UTF-8${code}`);
  }
}
