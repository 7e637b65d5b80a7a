/**
 * Rows of the route table: challenges, logins, sessions. SOURCE: docs/api.md, "Logging in"; docs/decisions.md, "Agents
 * and sessions".
 */
import { ChallengeRequest, VerifyRequest } from '../../api/requests.ts';
import { replySchema } from '../../api/resource-schemas.ts';
import { Challenge } from '../../api/responses.ts';
import { parseChallengeId, parsePrincipalName } from '../../core/names.ts';
import { toTimestamp } from '../../engine/timestamp.ts';
import { withBudget } from '../../vault/agents/agent-budgets.ts';
import { issueChallenge, login, parseSignature } from '../../vault/sessions/login.ts';
import { CurrentSession, OpenedSession } from '../../vault/sessions/session.ts';
import { endSession, readBrowserSession, readSession, renewSession } from '../../vault/sessions/session-operations.ts';
import { type Call, publicRoute, type Reply, type Route, route } from '../route.ts';

/** Omits the token of a browser's session, of which no page receives the whole. */
function toReply(
  { token, browser }: Pick<Call<unknown, unknown>, 'token' | 'browser'>,
  session: CurrentSession,
): Reply {
  return { data: CurrentSession.toReply({ ...session, token: browser.isSession ? null : token }) };
}

export const sessionRoutes: readonly Route[] = [
  publicRoute({
    id: 'requestChallenge',
    method: 'POST',
    path: '/auth/challenge',
    aliases: ['/api/v1/auth/challenge'],
    summary: 'Request a challenge: 32 bytes to sign within 60 seconds.',
    body: ChallengeRequest,
    data: Challenge,
    async handle({ vault, body }) {
      const { challengeId, nonce, expiresAt } = await issueChallenge(
        vault,
        parsePrincipalName(body.agent_name, 'agent_name'),
      );
      return {
        data: { challenge_id: challengeId, nonce: nonce.toString('base64'), expires_at: toTimestamp(expiresAt) },
      };
    },
  }),
  publicRoute({
    id: 'verifyChallenge',
    method: 'POST',
    path: '/auth/verify',
    aliases: ['/api/v1/auth/verify'],
    summary: 'Verify the signature of a challenge, and open a session.',
    body: VerifyRequest,
    data: replySchema(OpenedSession),
    async handle({ vault, context, body }) {
      const { token, ...session } = await login(vault, context, {
        challengeId: parseChallengeId(body.challenge_id),
        agentName: parsePrincipalName(body.agent_name, 'agent_name'),
        signature: parseSignature(body.signature),
      });
      return { data: OpenedSession.toReply({ ...session, token: token.reveal() }) };
    },
  }),
  route({
    id: 'readSession',
    method: 'GET',
    path: '/auth/session',
    aliases: ['/api/v1/auth/session'],
    summary: "The caller's own session.",
    permission: 'session.read',
    data: replySchema(CurrentSession),
    async handle(call) {
      return toReply(call, await call.vault.ledger.read(readSession(call.context)));
    },
  }),
  route({
    id: 'renewSession',
    method: 'POST',
    path: '/auth/session/renew',
    aliases: ['/api/v1/auth/session/renew'],
    summary: "Extend the caller's own session by half an hour, up to its end. For operators.",
    permission: 'session.renew',
    data: replySchema(CurrentSession),
    async handle(call) {
      const { vault, context } = call;
      const { ledger, budgets, clock } = vault;
      const renew = () => ledger.submit(renewSession(context));
      // Each renewal is an entry.
      const session = await withBudget(budgets.sessions, context, 1, clock.now(), renew);
      return toReply(call, session);
    },
  }),
  route({
    id: 'endSession',
    method: 'DELETE',
    path: '/auth/session',
    aliases: ['/api/v1/auth/session'],
    summary: "End the caller's own session.",
    permission: 'session.end',
    async handle({ vault, context, browser }) {
      if (!browser.isSession) {
        await vault.ledger.submit(endSession(context));
        return null;
      }
      // The administrator's token has no session; in a browser only its cookie ends.
      const session = await vault.ledger.read(readBrowserSession(context));
      if (session !== null) await vault.ledger.submit(endSession(context));
      return { isEmpty: true, headers: browser.clearCookie() };
    },
  }),
];
