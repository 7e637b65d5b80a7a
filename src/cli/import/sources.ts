/** Chooses the reader of a file by --from, or by its name and its first bytes; reads .env files. */
import { parseEnvFile } from '../../run/env-file.ts';
import { isReference } from '../../run/references.ts';
import { decodeUtf8 } from '../input.ts';
import { type ImportSource, Reader, type SourceFormat, typeByName } from './item.ts';
import { isArchive } from './onepassword.ts';

/** `name` is the name of the file. */
export function formatOf(bytes: Uint8Array, name: string, wanted: SourceFormat | null): SourceFormat | 'csv' {
  const isZip = isArchive(bytes);
  const isPasswordManager = wanted === '1password' || wanted === 'bitwarden';
  if (!isZip && (/\.csv$/i.test(name) || (isPasswordManager && !isObject(bytes)))) return 'csv';
  return wanted ?? guess(bytes, name, isZip);
}

/** `name` is the name of the file, for messages. @throws UsageError when the file is not of the format */
export async function readSource(bytes: Uint8Array, name: string, format: SourceFormat | 'csv'): Promise<ImportSource> {
  switch (format) {
    case 'csv':
      return (await import('./csv.ts')).readCsv(decodeUtf8(bytes, name), name);
    case '1password':
      return (await import('./onepassword.ts')).readOnePassword(bytes, name);
    case 'bitwarden':
      return (await import('./bitwarden.ts')).readBitwarden(decodeUtf8(bytes, name), name);
    case 'json':
      return (await import('./json.ts')).readJsonFile(decodeUtf8(bytes, name), name);
    case 'env':
      return readEnv(bytes, name);
  }
}

const SNIFFED_BYTES = 4096;
const firstBytes = (bytes: Uint8Array): string => Buffer.from(bytes.subarray(0, SNIFFED_BYTES)).toString('latin1');

/** Whether the text begins with `{`, after an optional byte order mark and white space. */
function isObject(bytes: Uint8Array): boolean {
  return /^(?:\u00ef\u00bb\u00bf)?\s*\{/.test(firstBytes(bytes));
}

/** A Bitwarden export begins with its member `encrypted`. */
function guess(bytes: Uint8Array, name: string, isZip: boolean): SourceFormat {
  if (isZip || /\.1pux$/i.test(name)) return '1password';
  if (!isObject(bytes) && !/\.json$/i.test(name)) return 'env';
  return /^(?:\u00ef\u00bb\u00bf)?\s*\{\s*"encrypted"\s*:\s*(?:true|false)\s*,/.test(firstBytes(bytes))
    ? 'bitwarden'
    : 'json';
}

/** @throws UsageError when it is not a .env file */
function readEnv(bytes: Uint8Array, name: string): ImportSource {
  const reader = new Reader();
  for (const { name: variable, value, line } of parseEnvFile(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    name,
  )) {
    const where = `${name}:${line}`;
    if (isReference(value.reveal())) reader.skip(where, 'it is already a reference to a credential', 'empty');
    else reader.add({ names: [variable], value, type: typeByName(variable), description: '', where });
  }
  return reader;
}
