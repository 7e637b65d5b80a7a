/**
 * Reads .env files, with the byte positions of each assignment, so that a file can be rewritten without changing the
 * rest. docs/run.md documents the grammar. Nothing is expanded. Messages contain file and line, never the content.
 */

import { createReadStream } from 'node:fs';
import { UsageError } from '../platform/errors.ts';
import { Secret } from '../vault/credentials/credential.ts';

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
/** Decodes one character per byte, so that positions in the text are positions in the file. */
const AS_BYTES = 'latin1';

const BLANK = /[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|\r|$)/y;
const START = /[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*/y;
const QUOTED = /"[^"\\]*(?:\\.[^"\\]*)*"|'[^']*'|`[^`]*`/sy;
const BARE = /[^\r\n]*/y;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\', $: '$' };

export interface Assignment {
  readonly name: string;
  readonly value: Secret;
  /** The line number, from 1. */
  readonly line: number;
  /** Bytes from the start of the file: the value with its quotes; the end is not part of it. */
  readonly valueSpan: readonly [from: number, to: number];
  /** Bytes from the start of the file: the whole lines of the assignment, with their end. */
  readonly lineSpan: readonly [from: number, to: number];
}

/** @throws UsageError for a file that cannot be read or is not a valid .env file */
export async function readEnvFile(file: string): Promise<Assignment[]> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    // WHY streamed: a file may be a pipe, like a shell's <( ), or endless.
    for await (const chunk of createReadStream(file)) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_FILE_BYTES) throw new UsageError(`${file}: has more than ${MAX_FILE_BYTES >> 20} MiB`);
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file}: cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  }
  return parseEnvFile(Buffer.concat(chunks), file);
}

/** Returns assignments in the order of the file; names may repeat. `file` is used in messages. @throws UsageError */
export function parseEnvFile(bytes: Buffer, file: string): Assignment[] {
  const text = bytes.toString(AS_BYTES);
  const assignments: Assignment[] = [];
  let line = 1;
  let at = bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
  while (at < text.length) {
    let end = at + match(BLANK, text, at).length;
    if (end === at) {
      const fail = (rule: string): UsageError => new UsageError(`${file}, line ${line}: ${rule}`);
      const found = readAssignment(text, at, fail);
      end = found.lineSpan[1];
      assignments.push({ ...found, line });
    }
    line += text.slice(at, end).match(/\r\n|\n|\r/g)?.length ?? 0;
    at = end;
  }
  return assignments;
}

function readAssignment(text: string, at: number, fail: (rule: string) => UsageError): Omit<Assignment, 'line'> {
  START.lastIndex = at;
  const [start = '', name = ''] = START.exec(text) ?? [];
  if (name === '') throw fail('must be NAME=value or a comment');
  const from = at + start.length;
  const isQuoted = /["'`]/.test(text.charAt(from));
  const written = match(isQuoted ? QUOTED : BARE, text, from);
  if (isQuoted && written === '') throw fail('a quote is opened and never closed');
  const bare = isQuoted ? written : uncommented(written);
  const to = from + bare.length;
  const rest = match(BLANK, text, to);
  if (rest === '' && to < text.length) throw fail('something follows the closing quote');
  return {
    name,
    value: new Secret(isQuoted ? unquoted(decode(bare, fail)) : decode(bare, fail)),
    valueSpan: [from, to],
    lineSpan: [at, to + rest.length],
  };
}

/**
 * The value without a comment. A # begins a comment where it is first or follows a blank; inside a word, such as a
 * password, it is literal.
 */
function uncommented(written: string): string {
  return written.replace(/(?:^|[ \t])#.*$/, '').replace(/[ \t]+$/, '');
}

/** The value without its quotes, with `\n` as the only line end. */
function unquoted(written: string): string {
  const inside = written.slice(1, -1).replaceAll(/\r\n?/g, '\n');
  if (!written.startsWith('"')) return inside;
  return inside.replaceAll(/\\(.)/gs, (whole, letter: string) => ESCAPES[letter] ?? whole);
}

function decode(asBytes: string, fail: (rule: string) => UsageError): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(asBytes, AS_BYTES));
  } catch {
    throw fail('is not UTF-8');
  }
}

function match(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}
