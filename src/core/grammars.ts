/** The grammars of names, ids and other texts, for fields and schemas. SOURCE: docs/decisions.md, "Names and paths". */
import { invalidRequest } from '../engine/errors.ts';
import type { Grammar, PatternGrammar } from '../engine/field.ts';
import { toTimestamp } from '../engine/timestamp.ts';
import {
  type ActorName,
  ADMIN_ID,
  AGENT_NAME,
  type AgentId,
  type AgentName,
  BASE64_OF_32_BYTES,
  type Brand,
  type CredentialType,
  MAX_DESCRIPTION_LENGTH,
  OPERATOR_PREFIX,
  type OperatorName,
  type PolicyName,
  PRINCIPAL_NAME,
  type PrincipalName,
  type PublicKey,
  parseAgentName,
  parseDescription,
  parseOperatorName,
  parsePrincipalName,
  parsePublicKeyText,
  UUID,
} from './names.ts';
import { type CredentialPath, MAX_PATH_LENGTH, PATH_PART, parsePath } from './path.ts';

export const agentName: Grammar<AgentName> = {
  pattern: AGENT_NAME,
  minLength: 1,
  maxLength: 63,
  description: 'Not `admin`, `service` or `anonymous`.',
  parse: parseAgentName,
};

export const operatorName: Grammar<OperatorName> = {
  pattern: AGENT_NAME,
  minLength: 1,
  maxLength: 63,
  description: 'Without the prefix `operator:`, which the audit log and logins add.',
  parse: parseOperatorName,
  format: (name) => name.slice(OPERATOR_PREFIX.length),
};

/** An agent or operator that logs in. */
export const principalName: Grammar<PrincipalName> = {
  pattern: PRINCIPAL_NAME,
  minLength: 1,
  maxLength: 72,
  description: 'An agent’s name, or `operator:<name>`.',
  parse: parsePrincipalName,
};

/** An agent's name, an operator's with the prefix `operator:`, or a reserved one. */
export const actorName = matching<ActorName>(
  /^(?:operator:)?[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
  [1, 72],
  'must be 1 to 63 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit; an operator has the prefix operator:',
);

export const policyName = matching<PolicyName>(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/,
  [1, 128],
  'must be 1 to 128 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit',
);

export const credentialType = matching<CredentialType>(
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
  [1, 64],
  'must be 1 to 64 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit',
);

export const path: PatternGrammar<CredentialPath> = {
  pattern: new RegExp(`^${PATH_PART}$`),
  minLength: 1,
  maxLength: MAX_PATH_LENGTH,
  description:
    '1 to 32 segments separated by single slashes, each 1 to 128 of `A-Z a-z 0-9 . _ - @ : + = ~`, never `.` or `..`.',
  parse: parsePath,
};

/** PostgreSQL cannot store U+0000 in a text. */
const WITHOUT_NUL = String.raw`^[^\u0000]*$`;

export const description: Grammar<string> = {
  pattern: new RegExp(WITHOUT_NUL),
  minLength: 0,
  maxLength: MAX_DESCRIPTION_LENGTH,
  parse: parseDescription,
};

export const publicKey: Grammar<PublicKey> = {
  pattern: BASE64_OF_32_BYTES,
  minLength: 44,
  maxLength: 44,
  annotations: { contentEncoding: 'base64' },
  description: 'Base64 of the 32 raw bytes of an Ed25519 key.',
  parse: parsePublicKeyText,
};

/** The grammar of a text that one rule describes. */
export function matching<T extends string>(
  pattern: RegExp,
  [minLength, maxLength]: readonly [number, number],
  rule: string,
): PatternGrammar<T> {
  return {
    pattern,
    minLength,
    maxLength,
    parse(text, field) {
      if (text.length >= minLength && text.length <= maxLength && pattern.test(text)) return text as T;
      throw invalidRequest(field, rule);
    },
  };
}

/** The grammar of a text of any characters, which is not stored. */
export function ofLength([minLength, maxLength]: readonly [number, number], rule: string): Grammar<string> {
  return {
    pattern: null,
    minLength,
    maxLength,
    parse(text, field) {
      if (text.length >= minLength && text.length <= maxLength) return text;
      throw invalidRequest(field, rule);
    },
  };
}

export function id<T extends Brand<string, string>>(): PatternGrammar<T> {
  return { ...matching<T>(UUID, [36, 36], 'must be a UUID in lower case'), annotations: { format: 'uuid' } };
}

/** The id of an agent or operator, or that of the administrator. */
export const holderId = matching<AgentId>(
  new RegExp(`^${ADMIN_ID}$|${UUID.source}`),
  [5, 36],
  'must be admin, or a UUID in lower case',
);

/** A hash or a MAC. */
export function hash<T extends string>(): PatternGrammar<T> {
  return matching(BASE64_OF_32_BYTES, [44, 44], 'must be the base64 of 32 bytes');
}

/** Texts of the grammar, and the word, which contains only letters or is empty. */
export function or<const W extends string, T extends string>(word: W, of: PatternGrammar<T>): Grammar<T | W> {
  return {
    ...of,
    pattern: new RegExp(`^${word}$|${of.pattern.source}`),
    minLength: Math.min(word.length, of.minLength),
    maxLength: Math.max(word.length, of.maxLength),
    parse: (given, field) => (given === word ? word : of.parse(given, field)),
  };
}

/** ISO 8601 in UTC with milliseconds and `Z`. */
export const timestamp: PatternGrammar<string> = {
  pattern: /^\d{4}-.*Z$/,
  minLength: 24,
  maxLength: 24,
  parse(given, field) {
    const at = timestamp.pattern.test(given) ? Date.parse(given) : Number.NaN;
    if (!Number.isNaN(at) && toTimestamp(at) === given) return given;
    throw invalidRequest(field, 'must be a time in ISO 8601, in UTC with milliseconds');
  },
};
