/**
 * Rows of the route table: challenges, logins, sessions. SOURCE: docs/api.md, "Logging in"; docs/decisions.md, "Agents
 * and sessions".
 */
import { ChallengeRequest, VerifyRequest } from '../../api/requests.ts';
import { Challenge, Session } from '../../api/responses.ts';
import { parseAgentName, parseChallengeId } from '../../core/names.ts';
import { endSession, readSession } from '../../core/operations/sessions.ts';
import { issueChallenge, login, parseSignature } from '../../vault/sessions.ts';
import { publicRoute, type Route, route } from '../route.ts';
import { toTimestamp } from '../serialize.ts';

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
        parseAgentName(body.agent_name, 'agent_name'),
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
    data: Session,
    async handle({ vault, context, body }) {
      const { token, agentName, expiresAt } = await login(vault, context, {
        challengeId: parseChallengeId(body.challenge_id),
        agentName: parseAgentName(body.agent_name, 'agent_name'),
        signature: parseSignature(body.signature),
      });
      return { data: { session_id: token.reveal(), agent_name: agentName, expires_at: toTimestamp(expiresAt) } };
    },
  }),
  route({
    id: 'readSession',
    method: 'GET',
    path: '/auth/session',
    aliases: ['/api/v1/auth/session'],
    summary: "The caller's own session.",
    who: 'authenticated',
    data: Session,
    async handle({ vault, context, token }) {
      const { agentName, expiresAt } = await vault.ledger.submit(readSession(context));
      return { data: { session_id: token, agent_name: agentName, expires_at: toTimestamp(expiresAt) } };
    },
  }),
  route({
    id: 'endSession',
    method: 'DELETE',
    path: '/auth/session',
    aliases: ['/api/v1/auth/session'],
    summary: "End the caller's own session.",
    who: 'authenticated',
    status: 204,
    data: null,
    async handle({ vault, context }) {
      await vault.ledger.submit(endSession(context));
      return null;
    },
  }),
];
