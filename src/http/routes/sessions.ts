/**
 * Rows of the route table: logging in by a challenge, signing in to the console, and sessions. SOURCE: docs/api.md,
 * "Logging in"; docs/operators.md, "Signing in"; docs/decisions.md, "Agents and sessions".
 */
import { replySchema } from '../../api/resource-schemas.ts';
import { AssertionOptions, RegistrationOptions } from '../../api/sign-in.ts';
import { ADMIN } from '../../core/names.ts';
import { ApiError } from '../../engine/errors.ts';
import { withBudget } from '../../ledger/budgets.ts';
import type { Secret } from '../../vault/credentials/credential.ts';
import { Passkey } from '../../vault/operators/operator.ts';
import {
  AssertionRequest,
  RegistrationOptionsRequest,
  RegistrationRequest,
} from '../../vault/operators/passkey-operations.ts';
import {
  type Registrar,
  registerPasskey,
  requestAssertion,
  requestRegistration,
  signInWithPasskey,
} from '../../vault/operators/passkeys.ts';
import type { OidcClient } from '../../vault/ports.ts';
import { issueChallenge, login } from '../../vault/sessions/login.ts';
import {
  BrowserSession,
  Challenge,
  ChallengeRequest,
  CurrentSession,
  OpenedSession,
  SignInMethods,
  VerifyRequest,
} from '../../vault/sessions/session.ts';
import { endSession, readBrowserSession, readSession, renewSession } from '../../vault/sessions/session-operations.ts';
import { issueHandoff, redeemHandoff, requestIdentity, signInWithIdentity } from '../../vault/sessions/sign-in.ts';
import { HandoffRequest, OidcOptions, OidcRequest, OneTimeCode } from '../../vault/sessions/sign-in-operations.ts';
import type { Vault } from '../../vault/vault.ts';
import type { BrowserPage } from '../browser-session.ts';
import { type Call, type PublicCall, publicRoute, type Reply, type Route, route, shapedRoute } from '../route.ts';

/** Omits the token of a browser's session, of which no page receives the whole. */
function toReply({ token, browser }: Pick<Call, 'token' | 'browser'>, session: CurrentSession): Reply {
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
    data: replySchema(Challenge),
    async handle({ vault, body }) {
      const { nonce, ...issued } = await issueChallenge(vault, body.agentName);
      return { data: Challenge.toReply({ ...issued, nonce: nonce.toString('base64') }) };
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
        ...body,
        signature: Buffer.from(body.signature, 'base64'),
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
    handle: async (call) => toReply(call, await call.vault.ledger.read(readSession(call.context))),
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
      // Each renewal is an audit entry.
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

// Signing in to the console.

/** The URL to which the provider returns. @throws INVALID_REQUEST where another program could have the origin */
const callbackOf = (browser: BrowserPage): string => `${browser.requirePasskeyOrigin().origin}/console/callback`;

/** Sets the cookie; the body contains the other half. `session`: null for the administrator. */
function openInBrowser(browser: BrowserPage, token: string, session: CurrentSession | null): Reply {
  const { headers, part } = browser.splitToken(token);
  const { agentName, expiresAt, expiresInSeconds } = session ?? {
    agentName: ADMIN,
    expiresAt: null,
    expiresInSeconds: null,
  };
  return { data: BrowserSession.toReply({ agentName, expiresAt, expiresInSeconds, sessionPart: part }), headers };
}

const openNew = (browser: BrowserPage, { token, ...session }: CurrentSession & { token: Secret }): Reply =>
  openInBrowser(browser, token.reveal(), session);

function providerOf({ oidc }: Vault): OidcClient {
  if (oidc === null) throw new ApiError('NOT_FOUND', 'The server has no identity provider (--oidc-issuer).');
  return oidc;
}

/** A code wins over a session: the link of an enrolment may be opened where another operator is signed in. */
function registrarOf(
  { context: origin, session }: Pick<PublicCall, 'context' | 'session'>,
  code: string | null,
): Registrar {
  if (code !== null) return { kind: 'code', origin, code };
  if (session === null) throw new ApiError('UNAUTHENTICATED', 'Sign in, or send the code of an enrolment.');
  return { kind: 'session', context: session };
}

export const signInRoutes: readonly Route[] = [
  publicRoute({
    id: 'readSignInMethods',
    method: 'GET',
    path: '/api/v1/auth/methods',
    summary: 'How operators can sign in at this URL of the server.',
    data: replySchema(SignInMethods),
    async handle({ vault, browser }) {
      const { oidc, ledger } = vault;
      await ledger.refresh();
      const passkey = browser.passkeyOrigin() !== null;
      const provider = oidc === null || !passkey ? null : { label: oidc.label };
      const setup = ledger.memory.control.operators().length === 0;
      return { data: SignInMethods.toReply({ passkey, oidc: provider, setup }) };
    },
  }),
  route({
    id: 'openBrowserSession',
    method: 'POST',
    path: '/api/v1/auth/browser',
    summary: "Use the caller's token in a browser: half of it as a cookie. For operators and the administrator.",
    permission: 'session.browser',
    data: replySchema(BrowserSession),
    async handle({ vault, context, token, browser }) {
      return openInBrowser(browser, token, await vault.ledger.read(readBrowserSession(context)));
    },
  }),
  publicRoute({
    id: 'requestPasskeySignIn',
    method: 'POST',
    path: '/api/v1/auth/passkey/options',
    summary: 'Begin a sign-in by passkey: a challenge to sign within 5 minutes.',
    data: AssertionOptions,
    async handle({ vault, browser }) {
      const { challengeId, options } = requestAssertion(vault, browser.requirePasskeyOrigin());
      return { data: { challenge_id: challengeId, options } };
    },
  }),
  publicRoute({
    id: 'signInByPasskey',
    method: 'POST',
    path: '/api/v1/auth/passkey/verify',
    summary: 'Sign in by passkey: sets the cookie of a session.',
    body: AssertionRequest,
    data: replySchema(BrowserSession),
    async handle({ vault, context, browser, body }) {
      const page = browser.requirePasskeyOrigin();
      return openNew(browser, await signInWithPasskey(vault, context, page, body));
    },
  }),
  publicRoute({
    id: 'requestPasskeyRegistration',
    method: 'POST',
    path: '/api/v1/auth/passkey/register-options',
    summary: "Begin the registration of a passkey: the caller's own, or with an enrolment code.",
    takesSession: true,
    body: RegistrationOptionsRequest,
    data: RegistrationOptions,
    async handle({ vault, browser, body, ...call }) {
      const registrar = registrarOf(call, body.code);
      const { challengeId, options } = await requestRegistration(vault, browser.requirePasskeyOrigin(), registrar);
      return { data: { challenge_id: challengeId, options } };
    },
  }),
  publicRoute({
    id: 'registerPasskey',
    method: 'POST',
    path: '/api/v1/auth/passkey/register',
    summary: "Register a passkey: the caller's own, or with an enrolment code.",
    takesSession: true,
    status: 201,
    body: RegistrationRequest,
    data: replySchema(Passkey),
    async handle({ vault, browser, body, ...call }) {
      const registrar = registrarOf(call, body.code);
      return { data: Passkey.toReply(await registerPasskey(vault, browser.requirePasskeyOrigin(), registrar, body)) };
    },
  }),
  publicRoute({
    id: 'requestIdentitySignIn',
    method: 'POST',
    path: '/api/v1/auth/oidc/options',
    summary: 'Begin a sign-in at the identity provider, within 10 minutes.',
    data: replySchema(OidcOptions),
    handle: async ({ vault, browser }) => ({
      data: OidcOptions.toReply(await requestIdentity(vault, providerOf(vault), callbackOf(browser))),
    }),
  }),
  publicRoute({
    id: 'signInByIdentity',
    method: 'POST',
    path: '/api/v1/auth/oidc/verify',
    summary: 'Sign in with the code that the identity provider returned: sets the cookie of a session.',
    body: OidcRequest,
    data: replySchema(BrowserSession),
    async handle({ vault, context, browser, body }) {
      const provider = providerOf(vault);
      return openNew(browser, await signInWithIdentity(vault, provider, context, callbackOf(browser), body));
    },
  }),
  shapedRoute({
    id: 'issueHandoff',
    method: 'POST',
    path: '/api/v1/auth/handoff',
    summary:
      'Make a code that signs a browser in as the caller, once within a minute. For operators outside a browser.',
    permission: 'session.handoff',
    reply: OneTimeCode,
    handle: ({ vault, context, token, browser }) => issueHandoff(vault, context, token, browser.isSession),
  }),
  publicRoute({
    id: 'redeemHandoff',
    method: 'POST',
    path: '/api/v1/auth/handoff/redeem',
    summary: 'Sign in with the code of another session: sets the cookie of a session.',
    body: HandoffRequest,
    data: replySchema(BrowserSession),
    async handle({ vault, context, browser, body }) {
      return openNew(browser, await redeemHandoff(vault, context, body.code));
    },
  }),
];
