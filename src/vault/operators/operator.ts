/**
 * Operators run a vault. Their roles decide what they may do, and policies for `operator:<name>` which
 * credentials an editor may touch. SOURCE: docs/operators.md.
 */

import * as grammar from '../../core/grammars.ts';
import type { AgentId, Brand } from '../../core/names.ts';
import { list, record } from '../../engine/compounds.ts';
import { invalidRequest, ruleBroken } from '../../engine/errors.ts';
import {
  byDefault,
  type Grammar,
  type InputOf,
  internal,
  nullable,
  nullIfEmpty,
  optional,
  parseField,
  setByServer,
  type ValueOf,
} from '../../engine/field.ts';
import { boolean, count, field, oneOf, text, time } from '../../engine/kinds.ts';
import { type DraftOf, resource, shape } from '../../engine/resource.ts';

export const ROLES = ['viewer', 'approver', 'editor', 'admin'] as const;
export type Role = (typeof ROLES)[number];

// Passkeys: the public halves of the keys with which operators sign in to the console. SOURCE: WebAuthn, level 3.

/** The id that the authenticator gave to the credential, in base64url. */
export type PasskeyId = Brand<string, 'PasskeyId'>;

export const MAX_PASSKEYS = 16;
const MAX_LABEL_LENGTH = 64;
/** SOURCE: WebAuthn, level 3, section 5.8.3: at most 1023 bytes. */
export const PASSKEY_ID = {
  ...grammar.matching<PasskeyId>(/^[A-Za-z0-9_-]{1,1364}$/, [1, 1364], 'must be the id of a passkey, in base64url'),
  description: 'Base64url, as the authenticator made it.',
};
/** No control characters, marks that change the direction of text, or lone surrogates. */
const LABEL_CHARACTERS = String.raw`^[^\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]*$`;
export const LABEL = {
  pattern: new RegExp(LABEL_CHARACTERS, 'u'),
  minLength: 1,
  maxLength: MAX_LABEL_LENGTH,
  description: 'Without control characters.',
  parse(given: string, field: string): string {
    const { length } = [...given];
    if (length >= 1 && length <= MAX_LABEL_LENGTH && LABEL.pattern.test(given)) return given;
    throw invalidRequest(field, `must be 1 to ${MAX_LABEL_LENGTH} characters without control characters`);
  },
};
const COSE_KEY = grammar.matching(/^[A-Za-z0-9_-]{1,8192}$/, [1, 8192], 'must be base64url of at most 8192 characters');
const TRANSPORT = grammar.matching(/^[a-z0-9-]{1,64}$/, [1, 64], 'must be the name of a transport');

export const Passkey = shape('Passkey', {
  id: text(PASSKEY_ID),
  /** The COSE key, in base64url. */
  publicKey: internal(text(COSE_KEY)),
  /** The authenticator's count of signatures; 0 from one that does not count. */
  counter: internal(count()),
  transports: internal(list(text(TRANSPORT), { min: 0, max: 32 })),
  label: text(LABEL),
  isSynced: boolean({ wire: 'synced', description: 'Whether the authenticator copies it to other devices.' }),
  addedAt: time({ wire: 'added_at' }),
});
export type Passkey = ValueOf<typeof Passkey.fields>;

const ISSUER = grammar.matching(/^https?:\/\/[\x21-\x7e]{1,2048}$/, [8, 2056], 'must be the URL of a provider');
/** SOURCE: OpenID Connect Core 1.0, section 2: at most 255 ASCII characters, so a space is one of them. */
const SUBJECT = grammar.matching(
  /^[\x20-\x7e]{1,255}$/,
  [1, 255],
  'must be 1 to 255 visible ASCII characters or spaces',
);
const EMAIL = grammar.matching(/^[^\s@\p{C}]{1,64}@[^\s@\p{C}]{1,255}$/u, [3, 320], 'must be an e-mail address');

/** The subject, or an e-mail address that the first sign-in binds to the subject that the provider vouches for. */
const IDENTITY = { issuer: text(ISSUER), subject: nullable(text(SUBJECT)), email: nullable(text(EMAIL)) };
export type ProviderIdentity = ValueOf<typeof IDENTITY>;

/** The only list of an operator's fields. */
export const Operator = resource('operator', {
  table: 'operators',
  id: 'id',
  key: 'name',
  isHeld: true,
  subject: { fields: ['name'], isCaseless: true, isPrefixed: true },
  fields: {
    /** Immutable, and of the same kind as agents' ids: sessions and leases are bound to either. */
    id: internal(text(grammar.id<AgentId>())),
    name: text(grammar.operatorName),
    description: byDefault('', text(grammar.description)),
    roles: list(oneOf(ROLES, { noun: 'role' }), { min: 1, max: ROLES.length, isSorted: true }),
    publicKey: setByServer(nullable(text(grammar.publicKey, { wire: 'public_key' }))),
    passkeys: setByServer(
      nullIfEmpty(list(record(Passkey.fields, { title: 'Passkey' }), { min: 0, max: MAX_PASSKEYS })),
    ),
    identity: setByServer(nullable(record(IDENTITY, { title: 'OperatorIdentity' }))),
    addedAt: setByServer(time({ wire: 'added_at' })),
    /** Sessions that began at this time or earlier have ended; null if none was ended this way. */
    sessionsEndedAt: internal(nullable(time())),
  },
});
export type Operator = ValueOf<typeof Operator.fields>;

const { name, description, roles } = Operator.fields;

/** The identity in a request. `toIdentity` requires exactly one of the two fields. */
const GIVEN_IDENTITY = {
  subject: optional(text(SUBJECT, { description: 'The subject at the provider.' })),
  email: optional(
    text(EMAIL, { description: 'A verified e-mail address, which the first sign-in binds to its subject.' }),
  ),
};
export const GivenIdentity = record(
  GIVEN_IDENTITY,
  { title: 'Identity' },
  { description: 'Either `subject` or `email`.' },
);
export type GivenIdentity = ValueOf<typeof GIVEN_IDENTITY>;

const publicKey = text<string, 'public_key'>(grammar.publicKey, {
  wire: 'public_key',
  description: 'Left out for an operator that logs in otherwise.',
});

export const NewOperator = shape('OperatorRequest', {
  name,
  publicKey: optional(publicKey),
  identity: optional(GivenIdentity),
  roles,
  description,
});
export type NewOperator = DraftOf<typeof NewOperator.fields>;

/**
 * The identity in a replacement. Null in a request removes it, which is `removed` in memory, because null means missing
 * there.
 */
const replacedIdentity = {
  ...field<GivenIdentity | 'removed', InputOf<typeof GIVEN_IDENTITY> | null, null, undefined>(
    record(GIVEN_IDENTITY, { title: 'ReplacedIdentity' }).form,
    { description: 'If it is missing, the identity is kept. Null removes it.' },
    {
      read(given, where, problems) {
        const identity = nullable(GivenIdentity).read(given, where, problems);
        return identity === null ? 'removed' : identity;
      },
      write: () => null,
      restore: () => 'removed' as const,
      covers: Object.is,
    },
  ),
  nulls: 'everywhere' as const,
};
export const OperatorReplacement = shape('OperatorReplacement', {
  roles,
  description,
  identity: optional(replacedIdentity),
});

export const KeyReplacement = shape('OperatorRotation', {
  publicKey: text<string, 'public_key'>(grammar.publicKey, { wire: 'public_key' }),
});

export function parseRoles(texts: readonly string[]): readonly Role[] {
  return parseField(roles, texts, 'roles');
}

/** Every operator may view, and an admin may do everything. */
export function hasRole({ roles }: Pick<Operator, 'roles'>, role: Role): boolean {
  return role === 'viewer' || roles.includes(role) || roles.includes('admin');
}

/** Whether it has any of the ways to sign in. An e-mail address is one before the first sign-in binds it. */
export function canSignIn({ publicKey, passkeys, identity }: Operator): boolean {
  return publicKey !== null || identity !== null || (passkeys ?? []).length > 0;
}

export interface IdentityClaims {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | null;
  readonly isEmailVerified: boolean;
}

const matches = (rule: Grammar<string>, given: string): boolean => ruleBroken(() => rule.parse(given, '')) === null;

export const isIssuer = (given: string): boolean => matches(ISSUER, given);

/**
 * Null for claims whose issuer or subject breaks the rule of the stored field: the first sign-in stores the subject.
 * An e-mail address that breaks its rule is dropped, because no operator can have it.
 */
export function checkedClaims(claims: IdentityClaims): IdentityClaims | null {
  const { issuer, subject, email } = claims;
  if (!isIssuer(issuer) || !matches(SUBJECT, subject)) return null;
  return { ...claims, email: email !== null && matches(EMAIL, email) ? email : null };
}

/** WHY ASCII only: other letters, such as the Kelvin sign, would fold to the address of another person. */
export function isSameEmail(one: string, other: string): boolean {
  const fold = (text: string): string => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  return fold(one) === fold(other);
}

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
