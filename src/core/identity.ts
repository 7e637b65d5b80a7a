/** Identities at a provider of OpenID Connect. SOURCE: docs/operators.md, "Signing in". */
import { invalidRequest } from './errors.ts';

/** The subject, or an e-mail address that the first sign-in binds to the subject that the provider vouches for. */
export interface ProviderIdentity {
  readonly issuer: string;
  readonly subject: string | null;
  readonly email: string | null;
}

/** What a provider says about a person who signed in. */
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

/** Whether the identity has the subject. */
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
