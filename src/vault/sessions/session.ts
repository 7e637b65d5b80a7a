/** Sessions of agents and operators. SOURCE: docs/api.md, "Logging in". */
import * as grammar from '../../core/grammars.ts';
import type { AgentId, ChallengeId, TokenHash } from '../../core/names.ts';
import { list, record } from '../../engine/compounds.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { type Grammar, nullable, optional, type ValueOf } from '../../engine/field.ts';
import { anyText, boolean, count, oneOf, text, time } from '../../engine/kinds.ts';
import { shape, stored } from '../../engine/resource.ts';
import { ROLES } from '../operators/operator.ts';

const expiresAt = time({ wire: 'expires_at' });

const FIELDS = {
  tokenHash: text(grammar.hash<TokenHash>()),
  /** Id of an agent or of an operator. */
  agentId: text(grammar.id<AgentId>()),
  issuedAt: time(),
  expiresAt,
  /** The time up to which renewals extend an operator's session; null for an agent's. */
  endsAt: nullable(time()),
};
export const SESSION_ROWS = stored({
  table: 'sessions',
  key: 'tokenHash',
  // WHY the time: subjects of logins are appended to the index, and the recent ones are a range of it.
  subject: { fields: ['issuedAt', 'tokenHash'] },
  fields: FIELDS,
});
export type Session = ValueOf<typeof FIELDS>;

/** Challenges that were answered, until they expire. */
export const SPENT_CHALLENGE_ROWS = stored({
  table: 'spent_challenges',
  key: ['id'],
  fields: { id: text(grammar.id<ChallengeId>()), expiresAt: time() },
});

const agentName = text(grammar.principalName, { wire: 'agent_name' });
const CURRENT = {
  agentName,
  expiresAt,
  expiresInSeconds: count({ wire: 'expires_in', description: 'Time until `expires_at`, in whole seconds.' }),
  roles: optional(list(oneOf(ROLES, { noun: 'role' }), { min: 0 }, { description: 'Of an operator.' })),
  endsAt: optional(
    time({ wire: 'ends_at', description: 'Of an operator: renewals extend the session up to this time.' }),
  ),
};
/** The session of a caller. Clients with a wrong clock need `expiresInSeconds`. */
export type CurrentSession = ValueOf<typeof CURRENT>;

export const OpenedSession = shape('Session', {
  token: anyText({ wire: 'session_id', description: 'The bearer token of the session.' }),
  ...CURRENT,
});

export const CurrentSession = shape('CurrentSession', {
  token: optional(
    anyText({
      wire: 'session_id',
      description: 'The bearer token of the session; left out for a browser’s, which has it in parts.',
    }),
  ),
  ...CURRENT,
});

/** A session in a browser; null for the administrator, whose token has no end. */
export const BrowserSession = shape('BrowserSession', {
  agentName: text(grammar.actorName, { wire: 'agent_name' }),
  expiresAt: nullable(expiresAt),
  expiresInSeconds: nullable(CURRENT.expiresInSeconds),
  sessionPart: anyText({
    wire: 'session_part',
    description: 'One half of the token. The cookie of this response contains the other half.',
  }),
});

export const SignInMethods = shape('SignInMethods', {
  passkey: boolean({ description: 'Whether passkeys work at this URL of the server. Only there can `oidc` be set.' }),
  oidc: nullable(record({ label: anyText() }, { title: 'SignInProvider' })),
  setup: boolean({ description: 'Whether no operator exists yet.' }),
});

const CANONICAL_BASE64 =
  /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$/;
/** WHY of any length: one of another length is a failed login, not a malformed request. */
const SIGNATURE: Grammar<string> = {
  pattern: CANONICAL_BASE64,
  minLength: 4,
  maxLength: 4096,
  annotations: { contentEncoding: 'base64' },
  description: 'Base64 of the Ed25519 signature over the decoded nonce.',
  parse(given, field) {
    if (CANONICAL_BASE64.test(given)) return given;
    throw invalidRequest(field, 'must be canonical base64');
  },
};
const challengeId = text(grammar.id<ChallengeId>(), { wire: 'challenge_id' });

export const ChallengeRequest = shape('ChallengeRequest', { agentName });
export const Challenge = shape('Challenge', {
  challengeId,
  nonce: anyText({ description: 'Base64 of 32 bytes; sign the decoded bytes.' }, { contentEncoding: 'base64' }),
  expiresAt,
});
export const VerifyRequest = shape('VerifyRequest', { challengeId, agentName, signature: text(SIGNATURE) });
