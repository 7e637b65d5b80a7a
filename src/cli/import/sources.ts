/** Chooses the reader of a file by --from, or by its name and its first bytes; reads the secrets of .env files. */
import { isSecretField } from '../../masking/secret-names.ts';
import { holdsSecret } from '../../masking/secret-patterns.ts';
import { UsageError } from '../../platform/errors.ts';
import { parseEnvFile } from '../../run/env-file.ts';
import { isReference } from '../../run/references.ts';
import { decodeUtf8 } from '../input.ts';
import { type ImportSource, Reader, type SourceFormat, typeByName } from './item.ts';

const SNIFFED_BYTES = 4096;

/** The signature of a zip file. SOURCE: PKWARE, APPNOTE.TXT, 4.3.7. */
const ZIP_SIGNATURE = Buffer.from('PK\u0003\u0004');

/**
 * `name` is the name of the file. A Bitwarden export begins with its member `encrypted`. @throws UsageError for a zip
 * file
 */
export function formatOf(bytes: Uint8Array, name: string): SourceFormat {
  if (/\.1pux$/i.test(name) || ZIP_SIGNATURE.equals(bytes.subarray(0, ZIP_SIGNATURE.length))) {
    throw new UsageError(
      `${name}: zip files, such as the .1pux of 1Password, are not read`,
      'In 1Password, export as CSV and use --from csv; or write a file with op item get --format json.',
    );
  }
  if (/\.csv$/i.test(name)) return 'csv';
  const beginning = new TextDecoder().decode(bytes.subarray(0, SNIFFED_BYTES)).trimStart();
  if (!beginning.startsWith('{') && !/\.json$/i.test(name)) return 'env';
  return /^\{\s*"encrypted"\s*:\s*(?:true|false)\s*,/.test(beginning) ? 'bitwarden' : 'json';
}

interface Source {
  readonly bytes: Uint8Array;
  readonly name: string;
  readonly format: SourceFormat;
  /** Whether non-secret values of a .env file are read too. */
  readonly readsAll: boolean;
}

/** @throws UsageError when the file is not of the format */
export async function readSource({ bytes, name, format, readsAll }: Source): Promise<ImportSource> {
  if (format === 'env') return readEnv(bytes, name, readsAll);
  const text = decodeUtf8(bytes, name);
  if (format === 'json') return (await import('./json.ts')).readJsonFile(text, name);
  const { readBitwarden, readCsv } = await import('./password-exports.ts');
  return format === 'csv' ? readCsv(text, name) : readBitwarden(text, name);
}

/** @throws UsageError when it is not a .env file */
function readEnv(bytes: Uint8Array, name: string, readsAll: boolean): ImportSource {
  const reader = new Reader();
  for (const { name: variable, value, line } of parseEnvFile(Buffer.from(bytes), name)) {
    const where = `${name}:${line}`;
    const text = value.reveal();
    if (isReference(text)) reader.skip(where, 'it is already a reference to a credential', 'empty');
    else if (text !== '' && !readsAll && !isSecret(variable, text))
      reader.skip(where, 'its name and its value look like a setting; --all imports it too', 'empty');
    else reader.add({ names: [variable], value, type: typeByName(variable), description: '', where });
  }
  return reader;
}

const SETTING = /^(?:true|false|yes|no|on|off|null|none|https?:\/\/.*|\.{0,2}\/.*|~\/.*)$/i;
const SHORT_NUMBER = /^\d{1,5}$/;

/**
 * Whether the value has the form of a secret. Under a secret's name, any value but a flag, URL, file or small number
 * counts.
 */
function isSecret(variable: string, text: string): boolean {
  if (holdsSecret(text)) return true;
  if (!isSecretField(variable)) return false;
  return typeByName(variable) === 'password' || !(SETTING.test(text) || SHORT_NUMBER.test(text));
}
