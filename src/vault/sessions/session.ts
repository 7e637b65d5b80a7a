/** Sessions of agents and operators. SOURCE: docs/api.md, "Logging in". */
import * as grammar from '../../core/grammars.ts';
import type { AgentId, ChallengeId, TokenHash } from '../../core/names.ts';
import { list } from '../../engine/compounds.ts';
import { nullable, optional, type ValueOf } from '../../engine/field.ts';
import { anyText, count, oneOf, text, time } from '../../engine/kinds.ts';
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

const CURRENT = {
  agentName: text(grammar.principalName, { wire: 'agent_name' }),
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
