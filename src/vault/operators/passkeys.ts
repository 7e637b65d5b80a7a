/** Registers passkeys, and signs operators in with them. SOURCE: docs/operators.md, "Signing in". */

import { toApiError } from '../../core/denials.ts';
import { type ChallengeId, OPERATOR_PREFIX, type OperatorName } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import { decodeEnrolment, encodeEnrolment } from '../../crypto/sign-in-codes.ts';
import { decodeChallengeId, deriveNonce, encodeChallengeId, hashToken, newToken } from '../../crypto/tokens.ts';
import {
  assertionOptions,
  checkAssertion,
  checkRegistration,
  DUMMY_PASSKEY_KEY,
  registrationOptions,
  toBase64url,
  type WebOrigin,
} from '../../crypto/webauthn.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { parseField } from '../../engine/field.ts';
import type { DraftOf } from '../../engine/resource.ts';
import type { Secret } from '../credentials/credential.ts';
import type { CurrentSession } from '../sessions/session.ts';
import { type Origin, PASSKEY_CHALLENGE_LIFE_MS, signInByPasskey } from '../sessions/sign-in-operations.ts';
import type { Vault } from '../vault.ts';
import { MAX_PASSKEYS, type Operator, Passkey } from './operator.ts';
import {
  type AssertionRequest,
  addOwnPasskey,
  ENROLMENT_LIFE_MS,
  enrolmentState,
  enrolPasskey,
  inviteOperator,
  type PasskeyRegistration,
  type RegistrationRequest,
  readOwnOperator,
} from './passkey-operations.ts';

export type { WebOrigin } from '../../crypto/webauthn.ts';

/** The bytes that the authenticator stores with the passkey, by which a sign-in finds its operator. */
const userHandle = ({ id }: Operator): Uint8Array => Buffer.from(id);

/** The challenge of a passkey, in base64url. `subject` names its purpose. */
function challengeOf({ keys }: Vault, id: ChallengeId, subject: string, { origin }: WebOrigin): string {
  return toBase64url(deriveNonce(keys.challenge, id, `passkey:${subject}:${origin}`));
}

function newChallengeId({ keys, clock }: Vault): ChallengeId {
  return encodeChallengeId(keys.challenge, clock.now(), false);
}

export function requestAssertion(vault: Vault, origin: WebOrigin) {
  const challengeId = newChallengeId(vault);
  return { challengeId, options: assertionOptions(challengeOf(vault, challengeId, 'sign-in', origin), origin) };
}

/** @throws AUTH_FAILED, RATE_LIMITED, INVALID_REQUEST */
export async function signInWithPasskey(
  vault: Vault,
  origin: Origin,
  page: WebOrigin,
  { challengeId, response: given }: DraftOf<typeof AssertionRequest.fields>,
): Promise<CurrentSession & { token: Secret }> {
  const { keys, clock, ledger, loginThrottle, budgets } = vault;
  const { userHandle: givenHandle, ...signed } = given.response;
  const named = givenHandle === null ? {} : { userHandle: givenHandle };
  const response = { ...given, response: { ...signed, ...named } };
  const passkeyId = given.id;
  const challenge = decodeChallengeId(keys.challenge, challengeId);
  // A forged id is not charged: it costs no signature check, and must not use up the attempts of an address.
  if (challenge === null) throw toApiError({ code: 'sign_in_failed' });
  await ledger.refresh();
  const operator = ledger.memory.control.operatorByPasskey(passkeyId);
  return loginThrottle.run(operator?.name ?? null, origin.remoteAddr, clock, async () => {
    const publicKey = operator?.passkeys?.find(({ id }) => id === passkeyId)?.publicKey ?? DUMMY_PASSKEY_KEY;
    const expected = challengeOf(vault, challengeId, 'sign-in', page);
    const checked = await checkAssertion(response, publicKey, expected, page);
    const handle = operator === null ? null : toBase64url(userHandle(operator));
    const isForUser = checked.failure !== null || givenHandle === handle;
    const failure = isForUser ? checked.failure : 'passkey_of_other_user';
    const token = newToken('lhs_');
    const operation = signInByPasskey(origin, {
      challengeId,
      expiresAt: challenge.issuedAt + PASSKEY_CHALLENGE_LIFE_MS,
      tokenHash: hashToken(token.reveal()),
      verifiedAgainst: operator === null ? null : { operatorId: operator.id, publicKey },
      passkeyId,
      failure,
      counter: checked.failure === null ? checked.counter : 0,
    });
    const submit = () => ledger.submit(operation);
    // ORDER: after the signature check, so that no caller uses up the session budget of another.
    const isCharged = failure === null && operator !== null;
    const session = isCharged ? budgets.sessions.charge(operator.name, 1, clock.now(), submit) : submit();
    return { ...(await session), token };
  });
}

/** The authority to register a passkey: the caller's own session, or a code. */
export type Registrar =
  | { readonly kind: 'session'; readonly context: Context }
  | { readonly kind: 'code'; readonly origin: Origin; readonly code: string };

/** @throws AUTH_FAILED for a code that is not valid; ACCESS_DENIED for a caller that is not an operator */
async function registrant(vault: Vault, registrar: Registrar): Promise<{ operator: Operator; codeExpiresAt: number }> {
  const { keys, ledger, clock } = vault;
  if (registrar.kind === 'session') {
    const operator = await ledger.read(readOwnOperator(registrar.context));
    return { operator, codeExpiresAt: Number.POSITIVE_INFINITY };
  }
  const code = decodeEnrolment(keys.challenge, registrar.code);
  if (code === null) throw toApiError({ code: 'sign_in_failed' });
  await ledger.refresh();
  const operator = ledger.memory.control.operatorById(code.operatorId);
  if (operator === null || !code.isFor(enrolmentState(operator)) || clock.now() >= code.expiresAt)
    throw toApiError({ code: 'sign_in_failed' });
  return { operator, codeExpiresAt: code.expiresAt };
}

/** Nothing is stored. @throws AUTH_FAILED, ACCESS_DENIED, INVALID_REQUEST */
export async function requestRegistration(vault: Vault, page: WebOrigin, registrar: Registrar) {
  const { operator } = await registrant(vault, registrar);
  const known = operator.passkeys ?? [];
  if (known.length >= MAX_PASSKEYS)
    throw invalidRequest('passkeys', `an operator has at most ${MAX_PASSKEYS}; remove one first`);
  const challengeId = newChallengeId(vault);
  const challenge = challengeOf(vault, challengeId, operator.id, page);
  const user = { id: userHandle(operator), name: operator.name.slice(OPERATOR_PREFIX.length) };
  return { challengeId, options: registrationOptions(challenge, page, user, known) };
}

/** @throws AUTH_FAILED, ACCESS_DENIED, INVALID_REQUEST, ALREADY_EXISTS */
export async function registerPasskey(
  vault: Vault,
  page: WebOrigin,
  registrar: Registrar,
  { challengeId, response: given, label }: Omit<DraftOf<typeof RegistrationRequest.fields>, 'code'>,
): Promise<Passkey> {
  const { keys, ledger } = vault;
  const { operator, codeExpiresAt } = await registrant(vault, registrar);
  const challenge = decodeChallengeId(keys.challenge, challengeId);
  if (challenge === null) throw toApiError({ code: 'sign_in_failed' });
  const { transports, ...attestation } = given.response;
  const response = { ...given, response: attestation };
  const checked = await checkRegistration(response, challengeOf(vault, challengeId, operator.id, page), page);
  if (checked.failure !== null) throw invalidRequest('response', `cannot be registered: ${checked.failure}`);
  const { id, publicKey, counter } = Passkey.fields;
  // Browsers may name transports that are not known here.
  const known = (transports ?? []).filter((each) => /^[a-z-]{1,20}$/.test(each)).slice(0, 8);
  const request: PasskeyRegistration = {
    operatorId: operator.id,
    challengeId,
    challengeExpiresAt: challenge.issuedAt + PASSKEY_CHALLENGE_LIFE_MS,
    // WHY parsed: an authenticator makes these values, and the library does not know the rules of the stored row.
    passkey: {
      id: parseField(id, checked.id, 'response.id'),
      publicKey: parseField(publicKey, checked.publicKey, 'response.publicKey'),
      counter: parseField(counter, checked.counter, 'response.counter'),
      transports: parseField(Passkey.fields.transports, known, 'response.transports'),
      label,
      isSynced: checked.isSynced,
    },
  };
  if (registrar.kind === 'session') return ledger.submit(addOwnPasskey(registrar.context, request));
  const state = enrolmentState(operator);
  return ledger.submit(enrolPasskey(registrar.origin, { ...request, state, codeExpiresAt }));
}

/** A code with which the operator registers its first passkey. Nothing is stored. @throws NOT_FOUND */
export async function invite(
  { ledger, keys, clock }: Vault,
  context: Context,
  name: OperatorName,
): Promise<{ readonly code: string; readonly expiresAt: number }> {
  const operator = await ledger.submit(inviteOperator(context, name));
  const expiresAt = clock.now() + ENROLMENT_LIFE_MS;
  return { code: encodeEnrolment(keys.challenge, operator.id, expiresAt, enrolmentState(operator)), expiresAt };
}
