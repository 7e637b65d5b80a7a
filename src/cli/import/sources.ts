/** Chooses the reader of a file by --from, or by its name and its first bytes; reads .env files. */
import { parseEnvFile } from '../../run/env-file.ts';
import { isReference } from '../../run/references.ts';
import { decodeUtf8 } from '../input.ts';
import { type ImportSource, Reader, type SourceFormat, typeByName } from './item.ts';
import { isArchive } from './onepassword.ts';

/** `name` is the name of the file. */
export function formatOf(bytes: Uint8Array, name: string, wanted: SourceFormat | null): SourceFormat | 'csv' {
  const isPasswordManager = wanted === '1password' || wanted === 'bitwarden';
  const mayBeCsv = /\.csv$/i.test(name) || (isPasswordManager && !beginningOf(bytes).startsWith('{'));
  return mayBeCsv && !isArchive(bytes) ? 'csv' : (wanted ?? guess(bytes, name));
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

/** The first characters after an optional byte order mark and white space. */
function beginningOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes.subarray(0, SNIFFED_BYTES)).trimStart();
}

/** A Bitwarden export begins with its member `encrypted`. */
function guess(bytes: Uint8Array, name: string): SourceFormat {
  if (isArchive(bytes) || /\.1pux$/i.test(name)) return '1password';
  const beginning = beginningOf(bytes);
  if (!beginning.startsWith('{') && !/\.json$/i.test(name)) return 'env';
  return /^\{\s*"encrypted"\s*:\s*(?:true|false)\s*,/.test(beginning) ? 'bitwarden' : 'json';
}

/** @throws UsageError when it is not a .env file */
function readEnv(bytes: Uint8Array, name: string): ImportSource {
  const reader = new Reader();
  for (const { name: variable, value, line } of parseEnvFile(Buffer.from(bytes), name)) {
    const where = `${name}:${line}`;
    if (isReference(value.reveal())) reader.skip(where, 'it is already a reference to a credential', 'empty');
    else reader.add({ names: [variable], value, type: typeByName(variable), description: '', where });
  }
  return reader;
}
