/** Which reader a file goes to: the one that was named, or the one that its beginning and its name tell of. */
import { UsageError } from '../../platform/errors.ts';
import { parseEnvFile } from '../../run/env-file.ts';
import { isReference } from '../../run/references.ts';
import { decodeUtf8 } from '../given-file.ts';
import { isArchive } from './archive.ts';
import { type ImportSource, Reader, typeByName } from './item.ts';

const FORMATS = ['env', 'json', '1password', 'bitwarden'] as const;
export type SourceFormat = (typeof FORMATS)[number];

/** Null where nothing was given. @throws UsageError */
export function parseFormat(text: string | null): SourceFormat | null {
  const format = FORMATS.find((each) => each === text);
  if (text !== null && format === undefined) throw new UsageError(`--from: must be one of ${FORMATS.join(', ')}`);
  return format ?? null;
}

/** `name` is the file's. */
export function formatOf(bytes: Uint8Array, name: string, wanted: SourceFormat | null): SourceFormat | 'csv' {
  const isZip = isArchive(bytes);
  const isOfManager = wanted === '1password' || wanted === 'bitwarden';
  if (!isZip && (/\.csv$/i.test(name) || (isOfManager && !isObject(bytes)))) return 'csv';
  return wanted ?? guess(bytes, name, isZip);
}

/** `name` is the file's, as a person knows it. @throws UsageError for what is not of the format */
export async function readSource(bytes: Uint8Array, name: string, format: SourceFormat | 'csv'): Promise<ImportSource> {
  switch (format) {
    case 'csv':
      return (await import('./csv.ts')).readSpreadsheet(decodeUtf8(bytes, name), name);
    case '1password':
      return (await import('./onepassword.ts')).readOnePassword(bytes, name);
    case 'bitwarden':
      return (await import('./bitwarden.ts')).readBitwarden(decodeUtf8(bytes, name), name);
    case 'json':
      return (await import('./json-source.ts')).readJsonFile(decodeUtf8(bytes, name), name);
    case 'env':
      return readEnv(bytes, name);
  }
}

const BEGINNING_BYTES = 4096;
const beginningOf = (bytes: Uint8Array): string => Buffer.from(bytes.subarray(0, BEGINNING_BYTES)).toString('latin1');

/** Behind a mark of byte order and blanks. */
function isObject(bytes: Uint8Array): boolean {
  return /^(?:\u00ef\u00bb\u00bf)?\s*\{/.test(beginningOf(bytes));
}

/** Bitwarden says whether it is encrypted before anything else. */
function guess(bytes: Uint8Array, name: string, isZip: boolean): SourceFormat {
  if (isZip || /\.1pux$/i.test(name)) return '1password';
  if (!isObject(bytes) && !/\.json$/i.test(name)) return 'env';
  return /^(?:\u00ef\u00bb\u00bf)?\s*\{\s*"encrypted"\s*:\s*(?:true|false)\s*,/.test(beginningOf(bytes))
    ? 'bitwarden'
    : 'json';
}

/** @throws UsageError for what is no .env file */
function readEnv(bytes: Uint8Array, name: string): ImportSource {
  const reader = new Reader();
  for (const { name: variable, value, line } of parseEnvFile(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    name,
  )) {
    const where = `${name}:${line}`;
    if (isReference(value.reveal())) reader.leaveOut(where, 'it is a reference to a credential already', 'empty');
    else reader.add({ names: [variable], value, type: typeByName(variable), description: '', where });
  }
  return reader;
}
