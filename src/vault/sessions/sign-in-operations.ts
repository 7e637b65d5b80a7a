/**
 * Sign-ins of operators in a browser: by passkey, by a provider's identity, and by the one-time code of a session.
 * SOURCE: docs/operators.md, "Signing in"; docs/decisions.md, "Agents and sessions".
 */

import type { BatchState, ReadSet } from '../../core/batch-state.ts';
import { putRow } from '../../core/change.ts';
import type { Denial, DenialOf } from '../../core/denials.ts';
import * as grammar from '../../core/grammars.ts';
import { identifySession } from '../../core/identity.ts';
import type { AgentId, ChallengeId, TokenHash } from '../../core/names.ts';
import { type Context, type Operation, type Outcome, rejected, succeeded } from '../../core/operation.ts';
import { optional } from '../../engine/field.ts';
import { anyText, text, time } from '../../engine/kinds.ts';
import { shape } from '../../engine/resource.ts';
import { draftEntry, type EntryDraft } from '../audit/audit-entry.ts';
import type { IdentityClaims, Operator, PasskeyId } from '../operators/operator.ts';
import type { CurrentSession } from './session.ts';
import { newSession, toCurrent } from './session-operations.ts';

/** An operator may have to find a phone or a security key. */
export const PASSKEY_CHALLENGE_LIFE_MS = 5 * 60_000;
/** An operator types a password and a second factor at the provider. */
export const OIDC_STATE_LIFE_MS = 10 * 60_000;
export const HANDOFF_LIFE_MS = 60_000;

/** The form of codes and states, which the server or a provider makes. SOURCE: RFC 6749, appendix A.11. */
const SIGN_IN_CODE = grammar.matching(
  /^[\x20-\x7e]{1,4096}$/,
  [1, 4096],
  'must be 1 to 4096 visible ASCII characters or spaces',
);
const code = text(SIGN_IN_CODE);
export const enrolmentCode = optional(
  text({
    ...SIGN_IN_CODE,
    description: 'The enrolment code. Required without a session, and takes precedence over one.',
  }),
);
export const OidcRequest = shape('OidcRequest', { code, state: code });
export const OidcOptions = shape('OidcOptions', {
  url: anyText({ description: "URL of the provider's sign-in page." }),
  state: anyText({ description: 'The state that the provider returns to `/console/callback`.' }),
});
export const HandoffRequest = shape('HandoffRequest', { code });
export const OneTimeCode = shape('OneTimeCode', { code: anyText(), expiresAt: time({ wire: 'expires_at' }) });

export type Origin = Pick<Context, 'requestId' | 'remoteAddr'>;

interface Attempt {
  readonly challengeId: ChallengeId;
  readonly expiresAt: number;
  readonly tokenHash: TokenHash;
  /** Whether a late or repeated attempt is recorded. WHY not of a code: it can be sent any number of times. */
  readonly recordsLate?: boolean;
}

/** The operator that signs in, and the outcome that the entry records. */
type Verdict =
  | { readonly operator: Operator | null; readonly denial: Denial }
  | { readonly operator: Operator; readonly by: string; readonly changed?: Operator; readonly endsAt?: number };

/**
 * Opens a session. Consumes the challenge in every case. Recorded only for an operator that exists: unauthenticated
 * callers must not grow the audit log.
 */
function signIn(
  { requestId, remoteAddr }: Origin,
  { challengeId, expiresAt, tokenHash, recordsLate = true }: Attempt,
  reads: ReadSet,
  decide: (known: BatchState, now: number) => Verdict,
): Operation<CurrentSession> {
  return {
    reads: { ...reads, challenge: challengeId },
    auth: { kind: 'unauthenticated', remoteAddr },
    decide(known, { now }): Outcome<CurrentSession> {
      const isExpired = now >= expiresAt;
      const isConsumed = known.loaded.spentChallenges.has(challengeId);
      const decided = decide(known, now);
      const { operator } = decided;
      const late: Denial | null = isExpired
        ? { code: 'sign_in_expired' }
        : isConsumed
          ? { code: 'sign_in_used' }
          : null;
      const verdict: Verdict = late === null ? decided : { operator, denial: late };
      const entry = (result: EntryDraft['result'], reason: string | null): EntryDraft | null =>
        operator === null || (late !== null && !recordsLate)
          ? null
          : draftEntry({
              eventType: 'auth.verify',
              agentName: operator.name,
              resource: operator.name,
              result,
              reason,
              requestId,
              remoteAddr,
            });
      const consume = late === null ? [{ kind: 'consumeChallenge' as const, id: challengeId, expiresAt }] : [];
      if ('denial' in verdict) return rejected(verdict.denial, entry(verdict.denial, null), consume);
      const session = newSession(tokenHash, verdict.operator, now, verdict.endsAt);
      return succeeded(toCurrent(verdict.operator, session, now), entry('allowed', verdict.by), [
        ...consume,
        ...(verdict.changed === undefined ? [] : [putRow('operator', verdict.changed)]),
        putRow('session', session),
      ]);
    },
  };
}

export type AssertionFailure = DenialOf<
  'passkey_of_other_user' | 'passkey_signature_invalid' | 'passkey_not_for_page'
>['code'];

/** An assertion whose signature was already checked. */
export interface PasskeySignIn extends Attempt {
  /** Null for a passkey that no operator has. */
  readonly verifiedAgainst: { readonly operatorId: AgentId; readonly publicKey: string } | null;
  readonly passkeyId: PasskeyId;
  readonly failure: AssertionFailure | null;
  /** The authenticator's count of signatures. */
  readonly counter: number;
}

export function signInByPasskey(origin: Origin, request: PasskeySignIn): Operation<CurrentSession> {
  const { verifiedAgainst, passkeyId, counter } = request;
  return signIn(origin, request, {}, ({ control }) => {
    const operator = verifiedAgainst === null ? null : control.operatorById(verifiedAgainst.operatorId);
    const passkey = operator?.passkeys?.find(({ id }) => id === passkeyId);
    if (operator === null || passkey === undefined || passkey.publicKey !== verifiedAgainst?.publicKey)
      return { operator, denial: { code: 'passkey_removed' } };
    if (request.failure !== null) return { operator, denial: { code: request.failure } };
    if ((counter > 0 || passkey.counter > 0) && counter <= passkey.counter)
      return { operator, denial: { code: 'passkey_copied', label: passkey.label } };
    const by = `by the passkey ${passkey.label}`;
    if (counter === 0) return { operator, by };
    const passkeys = operator.passkeys?.map((each) => (each === passkey ? { ...each, counter } : each)) ?? null;
    return { operator, by, changed: { ...operator, passkeys } };
  });
}

/** `claims`: null if the provider did not vouch for anyone. */
export function signInByIdentity(
  origin: Origin,
  request: Attempt & { readonly claims: IdentityClaims | null },
): Operation<CurrentSession> {
  const { claims } = request;
  return signIn(origin, request, {}, ({ control }) => {
    const operator = claims === null ? null : control.operatorByIdentity(claims);
    const identity = operator?.identity ?? null;
    if (claims === null || operator === null || identity === null)
      return { operator, denial: { code: 'identity_unknown' } };
    const by = 'by the identity provider';
    if (identity.subject !== null) return { operator, by };
    if (!claims.isEmailVerified) return { operator, denial: { code: 'email_unverified' } };
    const bound = { ...operator, identity: { ...identity, subject: claims.subject } };
    return { operator, by: `${by}, which is bound to its subject now`, changed: bound };
  });
}

/** `parent`: the session that issued the code. The new one ends when that would have ended. */
export function signInByHandoff(
  origin: Origin,
  request: Attempt & { readonly parent: TokenHash },
): Operation<CurrentSession> {
  return signIn(origin, { ...request, recordsLate: false }, { session: request.parent }, (known, now) => {
    const parent = identifySession(known.session(request.parent), known, now);
    if ('code' in parent || parent.kind !== 'operator')
      return { operator: null, denial: { code: 'parent_session_ended' } };
    const { operator, session } = parent;
    return { operator, by: 'by a one-time code of a session', endsAt: session.endsAt ?? session.expiresAt };
  });
}
