/**
 * Operators: the people who run a vault. Their roles decide what they may do, and policies for `operator:<name>` which
 * credentials an editor may touch. SOURCE: docs/operators.md.
 */

import type { AgentId, Brand, OperatorName, PublicKey } from '../../core/names.ts';
import { invalidRequest } from '../../engine/errors.ts';

export const ROLES = ['viewer', 'approver', 'editor', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export interface Operator {
  /** Immutable, and of the same kind as agents' ids: sessions and leases are bound to either. */
  readonly id: AgentId;
  readonly name: OperatorName;
  readonly description: string;
  /** At least one, in the order of `ROLES`. */
  readonly roles: readonly Role[];
  readonly publicKey: PublicKey | null;
  readonly passkeys: readonly Passkey[] | null;
  readonly identity: ProviderIdentity | null;
  readonly addedAt: number;
  /** Sessions that began at this time or earlier have ended; null if none was ended this way. */
  readonly sessionsEndedAt: number | null;
}

/** @throws INVALID_REQUEST */
export function parseRoles(texts: readonly string[]): readonly Role[] {
  for (const [index, text] of texts.entries()) {
    if (!(ROLES as readonly string[]).includes(text)) {
      throw invalidRequest(`roles[${index}]`, `must be one of ${ROLES.join(', ')}`);
    }
  }
  if (texts.length === 0) throw invalidRequest('roles', 'must be an array of 1 or more roles');
  return ROLES.filter((role) => texts.includes(role));
}

/** Every operator may view, and an admin may do everything. */
export function hasRole({ roles }: Pick<Operator, 'roles'>, role: Role): boolean {
  return role === 'viewer' || roles.includes(role) || roles.includes('admin');
}

/** Whether it has any of the ways to sign in. An e-mail address is one before the first sign-in binds it. */
export function canSignIn({ publicKey, passkeys, identity }: Operator): boolean {
  return publicKey !== null || identity !== null || (passkeys ?? []).length > 0;
}

/** The subject, or an e-mail address that the first sign-in binds to the subject that the provider vouches for. */
export interface ProviderIdentity {
  readonly issuer: string;
  readonly subject: string | null;
  readonly email: string | null;
}

export interface IdentityClaims {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | null;
  readonly isEmailVerified: boolean;
}

/** WHY ASCII only: other letters, such as the Kelvin sign, would fold to the address of another person. */
export function isSameEmail(one: string, other: string): boolean {
  const fold = (text: string): string => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  return fold(one) === fold(other);
}

const SUBJECT = /^[\x21-\x7e]{1,255}$/;
const EMAIL = /^[^\s@\p{C}]{1,64}@[^\s@\p{C}]{1,255}$/u;

export function isBoundTo(identity: ProviderIdentity | null, { issuer, subject }: IdentityClaims): boolean {
  return identity !== null && identity.issuer === issuer && identity.subject === subject;
}

/**
 * Whether the identity has the e-mail address and is bound to no subject yet. WHY not afterwards: providers give an
 * address to another person when its owner leaves, and never a subject.
 */
export function isNamedBy(identity: ProviderIdentity | null, { issuer, email }: IdentityClaims): boolean {
  if (identity === null || identity.issuer !== issuer || identity.subject !== null) return false;
  return email !== null && identity.email !== null && isSameEmail(identity.email, email);
}

/** SOURCE: OpenID Connect Core 1.0, section 2. @throws INVALID_REQUEST */
export function parseSubject(text: string): string {
  if (SUBJECT.test(text)) return text;
  throw invalidRequest('identity.subject', 'must be 1 to 255 visible ASCII characters');
}

/** @throws INVALID_REQUEST */
export function parseEmail(text: string): string {
  if (EMAIL.test(text)) return text;
  throw invalidRequest('identity.email', 'must be an e-mail address');
}

// Passkeys: the public halves of the keys with which operators sign in to the console. SOURCE: WebAuthn, level 3.

/** The id that the authenticator gave to the credential, in base64url. */
export type PasskeyId = Brand<string, 'PasskeyId'>;

export interface Passkey {
  readonly id: PasskeyId;
  /** COSE, in base64url. */
  readonly publicKey: string;
  /** The authenticator's count of signatures; 0 from one that does not count. */
  readonly counter: number;
  readonly transports: readonly string[];
  readonly label: string;
  readonly isSynced: boolean;
  readonly addedAt: number;
}

export const MAX_PASSKEYS = 16;
export const MAX_LABEL_LENGTH = 64;
/** SOURCE: WebAuthn, level 3, section 5.8.3: at most 1023 bytes. */
export const PASSKEY_ID = /^[A-Za-z0-9_-]{1,1364}$/;
/** No control characters, marks that change the direction of text, or lone surrogates. */
export const LABEL = String.raw`^[^\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]*$`;
const LABEL_GRAMMAR = new RegExp(LABEL, 'u');

/** @throws INVALID_REQUEST naming `field` and the rule */
export function parsePasskeyId(text: string, field = 'id'): PasskeyId {
  if (!PASSKEY_ID.test(text)) throw invalidRequest(field, 'must be the id of a passkey, in base64url');
  return text as PasskeyId;
}

/** @throws INVALID_REQUEST */
export function parseLabel(text: string): string {
  const { length } = [...text];
  if (length >= 1 && length <= MAX_LABEL_LENGTH && LABEL_GRAMMAR.test(text)) return text;
  throw invalidRequest('label', `must be 1 to ${MAX_LABEL_LENGTH} characters without control characters`);
}
