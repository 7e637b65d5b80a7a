/** Credentials and their versions, as the rules see them. SOURCE: interface 2.1; decisions, "Credentials". */
import { invalidRequest } from './errors.ts';
import type { CredentialId, CredentialType } from './names.ts';
import type { CredentialPath } from './path.ts';
import { Secret } from './secret.ts';

export interface Credential {
  /** Immutable: a path that is created again gets another id, and never opens old ciphertexts. */
  readonly id: CredentialId;
  readonly path: CredentialPath;
  readonly type: CredentialType;
  readonly description: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The newest version: 1, 2, 3 … */
  readonly version: number;
}

export interface CountedCredential extends Credential {
  /** Successful retrievals so far, exactly. */
  readonly accessCount: number;
}

/** A value as it lies in the store; what the bytes are is the business of crypto. */
export type Sealed = Uint8Array;

export interface CredentialVersion {
  readonly version: number;
  /** The credential's type when this version was stored. */
  readonly type: CredentialType;
  readonly createdAt: number;
  /** Still plain where it was stored earlier in the same turn. */
  readonly content: Sealed | Secret;
}

/** What a value is bound to: a ciphertext opens only where all of it is the same. */
export interface AssociatedData {
  readonly credentialId: CredentialId;
  readonly path: CredentialPath;
  readonly type: CredentialType;
  readonly version: number;
}

/** Whether the version is of the newest `versionsKept`; older ones are as good as gone, even where a row is left. */
export function isKept(version: number, credential: Credential, versionsKept: number): boolean {
  return version >= 1 && version <= credential.version && version > credential.version - versionsKept;
}

export const MAX_VALUE_BYTES = 262_144;

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

/** @throws INVALID_REQUEST */
export function parseValue(text: string): Secret {
  if (!text.isWellFormed())
    throw invalidRequest('value', 'must be well-formed Unicode: half of a surrogate pair is none');
  const bytes = text.length > MAX_VALUE_BYTES ? text.length : utf8Length(text);
  if (bytes < 1 || bytes > MAX_VALUE_BYTES)
    throw invalidRequest('value', `must be 1 to ${MAX_VALUE_BYTES} bytes of UTF-8`);
  return new Secret(text);
}
