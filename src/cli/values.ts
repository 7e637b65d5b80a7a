/** Where a value comes from: typed and not shown, standard input or a file; never an argument, which everybody on the machine sees. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Secret } from '../core/secret.ts';
import { askHidden, type Question } from './asking.ts';
import { Mistake } from './mistake.ts';
import { readStandardInput } from './standardinput.ts';
import { canAsk } from './terminal.ts';

/** Somewhat above what the service takes, so that it is the service that says what is too long. */
const MOST_BYTES = 1024 * 1024;
const TOO_MUCH = 'standard input holds more than a value may have: 256 KiB';

/** From `-`, `@FILE`, or typed where `from` is null. Byte for byte, but for what was typed. @throws Mistake */
export async function readValue(question: Question, from: string | null): Promise<Secret> {
  const { terminal } = question;
  if (from === null) {
    if (!canAsk(terminal)) {
      throw new Mistake('the value is missing', 'Give - for standard input, or @FILE for a file.');
    }
    const value = await askHidden(question, 'Value');
    if (value.reveal() !== (await askHidden(question, 'Once more')).reveal()) throw new Mistake('the two differ');
    if (value.reveal() === '') throw new Mistake('the value is empty');
    return value;
  }
  if (from === '-') return toSecret(await readStandardInput(question, MOST_BYTES, TOO_MUCH), 'standard input');
  if (from.startsWith('@')) return toSecret(readFile(resolve(terminal.folder, from.slice(1))), 'the file');
  throw new Mistake(
    'a value is never an argument: the shell keeps it, and everybody on this machine sees it. If it was a real one, change it',
    'Leave it out to be asked for it, or give - for standard input, or @FILE for a file.',
  );
}

function readFile(path: string): Buffer {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > MOST_BYTES) throw new Mistake('the file holds more than a value may have: 256 KiB');
    return bytes;
  } catch (error) {
    if (error instanceof Mistake) throw error;
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    throw new Mistake(`the file of the value can't be read${code}`);
  }
}

function toSecret(bytes: Buffer, what: string): Secret {
  if (bytes.length === 0) throw new Mistake(`${what} is empty`);
  try {
    return new Secret(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    throw new Mistake(`${what} is no UTF-8; encode it first, for example with base64`);
  }
}
