/**
 * Credentials, their versions and the grammar of values. SOURCE: docs/api.md, "Credentials"; docs/decisions.md,
 * "Credentials".
 */

import * as grammar from '../../core/grammars.ts';
import type { CredentialId, CredentialType, LeaseId } from '../../core/names.ts';
import { PAGE } from '../../core/page.ts';
import type { CredentialPath } from '../../core/path.ts';
import { list, record } from '../../engine/compounds.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { internal, optional, type ValueOf } from '../../engine/field.ts';
import { anyText, bytes, count, integer, MAX_EXACT, oneOf, positive, text, time } from '../../engine/kinds.ts';
import { shape, stored } from '../../engine/resource.ts';
import { givenTtlSeconds } from '../policies/policy.ts';

const MAX_VALUE_BYTES = 262_144;

/** The number of a version. The first one is 1. */
const version = positive();

/** The only list of the columns of a credential. */
const FIELDS = {
  /**
   * Immutable: a credential created again at the same path receives a new id, under which previous ciphertexts do not
   * decrypt.
   */
  id: internal(text(grammar.id<CredentialId>())),
  path: text(grammar.path),
  type: text(grammar.credentialType),
  description: text(grammar.description),
  createdAt: time({ wire: 'created_at' }),
  updatedAt: time({ wire: 'updated_at' }),
  version: internal(version),
};
export const CREDENTIAL_ROWS = stored({
  table: 'credentials',
  key: 'path',
  subject: { fields: ['path'] },
  maxRows: 10_000_000,
  fields: FIELDS,
});
export type Credential = ValueOf<typeof FIELDS>;

const { path, type, createdAt } = FIELDS;
const listed = { ...FIELDS, accessCount: count({ wire: 'access_count' }) };

export const StoredCredential = shape('StoredCredential', { path, type, createdAt });
export const ListedCredential = shape('ListedCredential', listed);
export interface CountedCredential extends Credential {
  readonly accessCount: number;
}
/** The fields that the entity tag covers. A new version or a deletion changes them, and a retrieval does not. */
export const CredentialState = shape('CredentialState', { ...FIELDS, version });
export const CredentialMetadata = shape('CredentialMetadata', {
  ...listed,
  versions: list(record({ version, createdAt }, { title: 'CredentialVersion' }), { min: 0 }),
});

const valueText = anyText(
  { description: `1 to ${MAX_VALUE_BYTES} bytes of UTF-8.` },
  { minLength: 1, maxLength: MAX_VALUE_BYTES },
);

export const StoreRequest = shape('StoreRequest', {
  path,
  /** For `parseValue`. */
  value: valueText,
  type: optional(type),
  description: optional(FIELDS.description),
});
export const CredentialsQuery = shape('CredentialsQuery', { type: optional(type), ...PAGE });
export const RetrieveQuery = shape(
  'RetrieveQuery',
  {
    version: optional(integer({ min: 1, max: MAX_EXACT }, { description: 'The version; the newest by default.' })),
    ttlSeconds: givenTtlSeconds,
    view: optional(
      oneOf(['metadata'], { description: 'No value and no lease; needs `list`. Not with `version` or `ttl`.' }),
    ),
  },
  ({ version, ttlSeconds, view }) => {
    const excluded = version === null ? (ttlSeconds === null ? null : 'ttl') : 'version';
    return view === null || excluded === null ? null : `${excluded}: must not be given with view=metadata`;
  },
);
export const RetrievedCredential = shape('RetrieveResponse', {
  path,
  value: valueText,
  leaseId: text(grammar.id<LeaseId>(), { wire: 'lease_id' }),
  expiresAt: time({ wire: 'expires_at' }),
});

const credentialId = text(grammar.id<CredentialId>());

/** Encrypted values that are not in `credentials`. */
export const VERSION_ROWS = stored({
  table: 'credential_versions',
  key: ['credentialId', 'version'],
  fields: { credentialId, version, type, createdAt, sealed: bytes({ min: 1, max: MAX_VALUE_BYTES + 1024 }) },
});

/** The count includes all retrievals. */
export const ACCESS_COUNT_ROWS = stored({
  table: 'access_counts',
  key: ['credentialId'],
  fields: { credentialId, count: count() },
});

/** A value as it is stored; `crypto/value-encryption.ts` defines the bytes. */
export type EncryptedValue = Uint8Array;

export interface CredentialVersion {
  readonly version: number;
  /** The credential's type when this version was stored. */
  readonly type: CredentialType;
  readonly createdAt: number;
  /** A `Secret` if the version was stored earlier in the same batch. */
  readonly content: EncryptedValue | Secret;
}

/** The associated data of a value: a ciphertext decrypts only under the same four fields. */
export interface AssociatedData {
  readonly credentialId: CredentialId;
  readonly path: CredentialPath;
  readonly type: CredentialType;
  readonly version: number;
}

/** Whether the version is one of the newest `versionsKept`. Older ones count as deleted even while their rows exist. */
export function isKept(version: number, credential: Credential, versionsKept: number): boolean {
  return version >= 1 && version <= credential.version && version > credential.version - versionsKept;
}

/** Larger values are retrieved only. WHY: redacting one in a response must not delay the requests of others. */
export const MAX_USED_VALUE_BYTES = 4096;
/** An `EncryptedValue` is longer than its value by this: format version, key id, nonce and tag. */
const ENCRYPTION_OVERHEAD_BYTES = 33;

/** Length in UTF-8, without encoding it. */
function utf8Length(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    // Each half of a surrogate pair counts two of the pair's four bytes.
    bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
  }
  return bytes;
}

/** Whether a value, as it is stored, is too large for brokered requests. */
export function isTooLargeToUse(content: EncryptedValue | Secret): boolean {
  const bytes = content instanceof Secret ? utf8Length(content.reveal()) : content.length - ENCRYPTION_OVERHEAD_BYTES;
  return bytes > MAX_USED_VALUE_BYTES;
}

export const TOO_LARGE_TO_USE = `value: is over ${MAX_USED_VALUE_BYTES} bytes, too large to be used in brokered requests; it can be retrieved. Store a smaller value, or delete the credential's targets.`;

export function parseValue(text: string): Secret {
  if (!text.isWellFormed()) throw invalidRequest('value', 'must be well-formed Unicode, without unpaired surrogates');
  const bytes = text.length > MAX_VALUE_BYTES ? text.length : utf8Length(text);
  if (bytes < 1 || bytes > MAX_VALUE_BYTES)
    throw invalidRequest('value', `must be 1 to ${MAX_VALUE_BYTES} bytes of UTF-8`);
  return new Secret(text);
}

/** A value that must not leak by accident: printing, JSON and inspection show `[secret]`. Only `reveal` returns it. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}
