/**
 * The content of an import source: drafts of credentials, and the skipped values with the reason. Reads
 * .env files.
 */

import { isSecretField } from '../../masking/secret-names.ts';
import { holdsSecret } from '../../masking/secret-patterns.ts';
import { parseEnvFile } from '../../run/env-file.ts';
import { isReference } from '../../run/references.ts';
import { Secret } from '../../vault/credentials/credential.ts';

export const SOURCE_FORMATS = ['env', 'json', 'csv', 'bitwarden'] as const;
export type SourceFormat = (typeof SOURCE_FORMATS)[number];

export interface Draft {
  /** The names in the source, outermost first; `plan.ts` maps them to a path. */
  readonly names: readonly string[];
  readonly value: Secret;
  /** Null leaves the type to the server: `generic`, or the type of the existing credential. */
  readonly type: string | null;
  readonly description: string;
  /** The location in the source: `.env:7`, the title of an item. Untrusted text: escape it before printing. */
  readonly where: string;
}

export interface SkippedItem {
  readonly where: string;
  readonly reason: string;
  /** `empty`: there was no value to store. `rejected`: there was one, and it was not stored. */
  readonly kind: 'empty' | 'rejected';
}

export interface ImportSource {
  readonly drafts: readonly Draft[];
  readonly skipped: readonly SkippedItem[];
}

/** The `type` follows from the name of the field by default. */
export type AddField = (
  field: string | readonly string[],
  text: string | null | undefined,
  type?: string | null,
) => void;

export class Reader {
  readonly drafts: Draft[] = [];
  readonly skipped: SkippedItem[] = [];

  add(draft: Draft): void {
    this.drafts.push(draft);
  }

  skip(where: string, reason: string, kind: SkippedItem['kind'] = 'rejected'): void {
    this.skipped.push({ where, reason, kind });
  }

  item(above: readonly string[], address: string | null | undefined, where: string): AddField {
    const description = siteOf(address);
    return (field, text, type = null) => {
      if (!text) return;
      const names = typeof field === 'string' ? [field] : field;
      this.add({
        names: [...above, ...names],
        value: new Secret(text),
        type: type ?? typeByName(names.at(-1) ?? ''),
        description,
        where: [where, ...names].join(' › '),
      });
    };
  }
}

const TYPES: readonly [pattern: RegExp, type: string][] = [
  [/(?:^|[^a-z])(?:pass(?:word|wd|phrase)?|pwd)$/i, 'password'],
  [/api[_-]?key$/i, 'api_key'],
  [/private[_-]?key$/i, 'ssh_key'],
  [/(?:^|[^a-z])(?:cert|certificate)$/i, 'certificate'],
  [/token$/i, 'token'],
];

/** The well-known type that a name ends with; null if there is none. */
export function typeByName(name: string): string | null {
  return TYPES.find(([pattern]) => pattern.test(name))?.[1] ?? null;
}

/** The host of a URL, as a description. WHY not the whole URL: it may contain a key, and descriptions are listed. */
function siteOf(address: string | null | undefined): string {
  if (!address) return '';
  const url = URL.parse(address) ?? URL.parse(`https://${address}`);
  return url !== null && /^https?:$/.test(url.protocol) ? url.hostname : '';
}

/** @throws UsageError when it is not a .env file */
export function readEnv(bytes: Uint8Array, name: string, readsAll: boolean): ImportSource {
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
