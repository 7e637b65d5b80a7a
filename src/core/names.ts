/**
 * The grammar of names and ids. Each parser throws INVALID_REQUEST, which names `field` and the rule. SOURCE:
 * docs/decisions.md, "Names and paths".
 */
import { invalidRequest } from '../engine/errors.ts';

/** A nominal type: `Brand<string, 'AgentName'>` is a string that the parser of agent names has checked. */
declare const brand: unique symbol;
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

export type AgentName = Brand<string, 'AgentName'>;
/** `operator:` and a name with the grammar of agents' names, so that no operator is taken for an agent. */
export type OperatorName = Brand<string, 'OperatorName'>;
export type PolicyName = Brand<string, 'PolicyName'>;
export type CredentialType = Brand<string, 'CredentialType'>;
/** The names to which policies apply. */
export type PrincipalName = AgentName | OperatorName;
/** The name of a caller in an audit entry or a lease: an agent's, an operator's, or one of the reserved names. */
export type ActorName = Brand<string, 'ActorName'> | PrincipalName;

export type AgentId = Brand<string, 'AgentId'>;
export type CredentialId = Brand<string, 'CredentialId'>;
export type LeaseId = Brand<string, 'LeaseId'>;
export type EntryId = Brand<string, 'EntryId'>;
export type ChallengeId = Brand<string, 'ChallengeId'>;
/** Base64 of the 32 raw bytes of an Ed25519 public key. */
export type PublicKey = Brand<string, 'PublicKey'>;
/** Base64 of the SHA-256 of a session token. Tokens are never stored. */
export type TokenHash = Brand<string, 'TokenHash'>;

/** The grammar of agent names as a part for other expressions. It excludes the reserved names. */
export const AGENT_NAME_PART =
  '(?!(?:[Aa][Dd][Mm][Ii][Nn]|[Ss][Ee][Rr][Vv][Ii][Cc][Ee]|[Aa][Nn][Oo][Nn][Yy][Mm][Oo][Uu][Ss])$)[A-Za-z0-9][A-Za-z0-9._-]{0,62}';
export const AGENT_NAME = new RegExp(`^${AGENT_NAME_PART}$`);
export const OPERATOR_PREFIX = 'operator:';
export const NAME_PREFIX = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
export const PRINCIPAL_NAME = new RegExp(`^(?:operator:)?${AGENT_NAME_PART}$`);
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Canonical base64: the unused bits of the last character are zero. */
export const BASE64_OF_32_BYTES = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

export const ADMIN = 'admin' as ActorName;
export const SERVICE = 'service' as ActorName;
/** The administrator's leases are bound to this id. Agent ids are UUIDs, so no agent can have it. */
export const ADMIN_ID = 'admin' as AgentId;
export const DEFAULT_TYPE = 'generic' as CredentialType;

const AGENT_NAME_RULE =
  'must be 1 to 63 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit; admin, service and anonymous are reserved';

export function parseAgentName(text: string, field = 'name'): AgentName {
  if (!AGENT_NAME.test(text)) throw invalidRequest(field, AGENT_NAME_RULE);
  return text as AgentName;
}

/** Adds the prefix to a name as requests contain it. @throws INVALID_REQUEST naming `field` and the rule. */
export function parseOperatorName(text: string, field = 'name'): OperatorName {
  if (!AGENT_NAME.test(text)) throw invalidRequest(field, AGENT_NAME_RULE);
  return `${OPERATOR_PREFIX}${text}` as OperatorName;
}

/** The name of a caller that logs in: an agent's, or an operator's with its prefix. @throws INVALID_REQUEST */
export function parsePrincipalName(text: string, field: string): PrincipalName {
  if (!text.startsWith(OPERATOR_PREFIX)) return parseAgentName(text, field);
  return parseOperatorName(text.slice(OPERATOR_PREFIX.length), field);
}

export function isOperatorName(name: ActorName): name is OperatorName {
  return name.startsWith(OPERATOR_PREFIX);
}

/** The resource of an entry about the caller: `agent:<name>`, even for a reserved name, or `operator:<name>`. */
export function actorResource(name: ActorName): string {
  return isOperatorName(name) ? name : `agent:${name}`;
}

/** Checks the form only; `parsePublicKey` also checks the key. @throws INVALID_REQUEST */
export function parsePublicKeyText(text: string, field = 'public_key'): PublicKey {
  if (BASE64_OF_32_BYTES.test(text)) return text as PublicKey;
  const remedy = text.includes('-----BEGIN')
    ? '; of a PEM, send its last 32 bytes: openssl pkey -pubin -in FILE -outform DER | tail -c 32 | base64'
    : '';
  throw invalidRequest(field, `must be base64 of the 32 raw bytes of an Ed25519 key${remedy}`);
}

/** The length in code points, not in UTF-16 code units. */
export const MAX_DESCRIPTION_LENGTH = 1024;

export function parseDescription(text: string, field = 'description'): string {
  // A code point outside the Basic Multilingual Plane takes two UTF-16 code units.
  const isTooLong = text.length > 2 * MAX_DESCRIPTION_LENGTH || [...text].length > MAX_DESCRIPTION_LENGTH;
  // WHY U+0000 is rejected: PostgreSQL cannot store it as text.
  if (isTooLong || !text.isWellFormed() || text.includes('\u0000')) {
    throw invalidRequest(
      field,
      `must be at most ${MAX_DESCRIPTION_LENGTH} characters of well-formed Unicode without U+0000`,
    );
  }
  return text;
}
