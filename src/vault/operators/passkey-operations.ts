/** Registers and removes passkeys of operators. SOURCE: docs/operators.md, "Signing in". */

import { putRow } from '../../core/change.ts';
import type { Denial } from '../../core/denials.ts';
import * as grammar from '../../core/grammars.ts';
import type { AgentId, ChallengeId, OperatorName } from '../../core/names.ts';
import {
  type Context,
  denied,
  type Operation,
  type OperationInput,
  type Outcome,
  operation,
  rejected,
  succeeded,
} from '../../core/operation.ts';
import { list, record } from '../../engine/compounds.ts';
import { type Fields, optional } from '../../engine/field.ts';
import { anyText, oneOf, text } from '../../engine/kinds.ts';
import { shape } from '../../engine/resource.ts';
import { draftEntry } from '../audit/audit-entry.ts';
import { allLeasesOf } from '../leases/lease.ts';
import { enrolmentCode, type Origin } from '../sessions/sign-in-operations.ts';
import { hasRole, LABEL, MAX_PASSKEYS, type Operator, PASSKEY_ID, type Passkey, type PasskeyId } from './operator.ts';
import { rejectLastSignIn } from './operator-operations.ts';

/** WHY any text: one that does not decode is a failed sign-in, which is recorded. */
const base64url = anyText({}, { minLength: 0, maxLength: 32_768, pattern: '^[A-Za-z0-9_-]*$' });
/** Objects that browsers make. Later browsers may add fields. SOURCE: WebAuthn, level 3, section 5.1. */
const ofBrowser = <F extends Fields>(title: string, fields: F) => record(fields, { title, isOpen: true });
const MADE = {
  id: text(PASSKEY_ID),
  rawId: base64url,
  type: oneOf(['public-key']),
  clientExtensionResults: ofBrowser('ExtensionResults', {}),
};
const transports = list(anyText({}, { maxLength: 64 }), { min: 0, max: 16 });
const challengeId = text(grammar.id<ChallengeId>(), { wire: 'challenge_id' });

export const RegistrationOptionsRequest = shape('RegistrationOptionsRequest', { code: enrolmentCode });
export const RegistrationRequest = shape('RegistrationRequest', {
  challengeId,
  response: ofBrowser('RegistrationResponse', {
    ...MADE,
    response: ofBrowser('AttestationData', {
      clientDataJSON: base64url,
      attestationObject: base64url,
      transports: optional(transports),
    }),
  }),
  label: text(LABEL),
  code: enrolmentCode,
});
export const AssertionRequest = shape('AssertionRequest', {
  challengeId,
  response: ofBrowser('AssertionResponse', {
    ...MADE,
    response: ofBrowser('AssertionData', {
      clientDataJSON: base64url,
      authenticatorData: base64url,
      signature: base64url,
      userHandle: optional(base64url),
    }),
  }),
});

export const ENROLMENT_LIFE_MS = 24 * 3_600_000;

/**
 * The state to which an enrolment code is bound: adding or removing a passkey voids it, and so does an end of sessions.
 */
export function enrolmentState({ passkeys, sessionsEndedAt }: Operator): string {
  return JSON.stringify([passkeys?.map(({ id }) => id) ?? [], sessionsEndedAt]);
}

export const readOwnOperator = (context: Context) =>
  operation<Operator>({ context, permission: 'operator.passkey_add', resource: '*' }, ({ identity, entry }) =>
    identity.kind === 'operator'
      ? succeeded(identity.operator, null)
      : denied({ entry }, { code: 'operator_required', to: 'passkeys' }),
  );

export interface PasskeyRegistration {
  readonly operatorId: AgentId;
  readonly challengeId: ChallengeId;
  readonly challengeExpiresAt: number;
  readonly passkey: Omit<Passkey, 'addedAt'>;
}

function obstacle(
  { loaded, control }: OperationInput['state'],
  now: number,
  operator: Operator | null,
  { challengeId, challengeExpiresAt, operatorId, passkey }: PasskeyRegistration,
): Denial | null {
  const isLate = now >= challengeExpiresAt || loaded.spentChallenges.has(challengeId);
  if (isLate || operator?.id !== operatorId) return { code: 'sign_in_failed' };
  if ((operator.passkeys?.length ?? 0) >= MAX_PASSKEYS) return { code: 'too_many_passkeys' };
  return control.operatorByPasskey(passkey.id) === null ? null : { code: 'passkey_taken' };
}

function added(
  operator: Operator,
  { challengeId, challengeExpiresAt, passkey }: PasskeyRegistration,
  entry: Outcome<Passkey>['entry'],
  now: number,
): Outcome<Passkey> {
  const made: Passkey = { ...passkey, addedAt: now };
  return succeeded(made, entry, [
    { kind: 'consumeChallenge', id: challengeId, expiresAt: challengeExpiresAt },
    putRow('operator', { ...operator, passkeys: [...(operator.passkeys ?? []), made] }),
  ]);
}

export function addOwnPasskey(context: Context, request: PasskeyRegistration): Operation<Passkey> {
  const spec = { context, permission: 'operator.passkey_add', resource: '*' } as const;
  return operation<Passkey>(
    { ...spec, reads: { challenge: request.challengeId } },
    ({ identity, state, moment, entry }) => {
      if (identity.kind !== 'operator') return denied({ entry }, { code: 'operator_required', to: 'passkeys' });
      const { operator } = identity;
      const denial = obstacle(state, moment.now, operator, request);
      const resource = operator.name;
      if (denial !== null) return denied({ entry }, denial, { resource });
      const reason = `the passkey ${request.passkey.label}`;
      return added(operator, request, entry('allowed', { resource, reason }), moment.now);
    },
  );
}

/** Adds a passkey by an enrolment code, whose MAC was already checked against `state`. */
export function enrolPasskey(
  { requestId, remoteAddr }: Origin,
  request: PasskeyRegistration & { readonly state: string; readonly codeExpiresAt: number },
): Operation<Passkey> {
  return {
    reads: { challenge: request.challengeId },
    auth: { kind: 'unauthenticated', remoteAddr },
    decide(known, { now }) {
      const operator = known.control.operatorById(request.operatorId);
      const isUsed = operator === null || enrolmentState(operator) !== request.state || now >= request.codeExpiresAt;
      if (isUsed) return rejected({ code: 'sign_in_failed' }, null);
      const denial = obstacle(known, now, operator, request);
      if (denial !== null) return rejected(denial, null);
      const entry = draftEntry({
        eventType: 'operator.passkey_add',
        agentName: operator.name,
        resource: operator.name,
        result: 'allowed',
        reason: `the passkey ${request.passkey.label}, with an enrolment code`,
        requestId,
        remoteAddr,
      });
      return added(operator, request, entry, now);
    },
  };
}

/** Returns the operator, whose code the caller may make; recorded, because the code opens a way in. */
export const inviteOperator = (context: Context, name: OperatorName) =>
  operation<Operator>({ context, permission: 'operator.invite', resource: name }, ({ state, entry }) => {
    const operator = state.control.operatorByName(name);
    if (operator === null) return denied({ entry }, { code: 'operator_not_found' });
    return succeeded(operator, entry('allowed'));
  });

/**
 * The operator itself or an admin removes a passkey. The operator's sessions and leases end, because one may be on a
 * lost device.
 */
export const removePasskey = (context: Context, name: OperatorName, id: PasskeyId) =>
  operation<null>({ context, permission: 'operator.passkey_remove', resource: name }, (input) => {
    const { identity, state, moment, entry } = input;
    const operator = state.control.operatorByName(name);
    if (identity.kind === 'operator' && identity.operator.id !== operator?.id && !hasRole(identity.operator, 'admin')) {
      return denied(input, { code: 'passkey_of_other' });
    }
    const passkey = operator?.passkeys?.find((each) => each.id === id);
    if (operator === null || passkey === undefined) return denied(input, { code: 'passkey_not_found' });
    const others = operator.passkeys?.filter((each) => each !== passkey) ?? [];
    const passkeys = others.length === 0 ? null : others;
    const changed = { ...operator, passkeys, sessionsEndedAt: moment.now };
    const rejection = rejectLastSignIn(input, operator, changed, 'id');
    if (rejection !== null) return rejection;
    return succeeded(
      null,
      entry('allowed', { reason: `the passkey ${passkey.label}; its sessions and leases ended` }),
      [putRow('operator', changed), { kind: 'revokeMatching', revocation: allLeasesOf(operator.id, moment) }],
    );
  });
