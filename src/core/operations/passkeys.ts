/** Registers and removes passkeys of operators. SOURCE: docs/operators.md, "Signing in". */
import { type ErrorInfo, invalidRequest } from '../../engine/errors.ts';
import { draftEntry } from '../audit.ts';
import { putRow } from '../change.ts';
import type { AgentId, ChallengeId, OperatorName } from '../names.ts';
import {
  type Context,
  forbidden,
  type Operation,
  type OperationInput,
  type Outcome,
  operation,
  rejected,
  succeeded,
} from '../operation.ts';
import { hasRole, MAX_PASSKEYS, type Operator, type Passkey, type PasskeyId } from '../operator.ts';
import { rejectLastSignIn } from './operators.ts';
import { type Origin, signInFailed } from './sign-in.ts';

export const ENROLMENT_LIFE_MS = 24 * 3_600_000;

/** What an enrolment code is bound to: a passkey that is added or removed voids it, and so does an end of sessions. */
export function enrolmentState({ passkeys, sessionsEndedAt }: Operator): string {
  return JSON.stringify([passkeys?.map(({ id }) => id) ?? [], sessionsEndedAt]);
}

const NO_PASSKEYS = 'Only an operator has passkeys. Add one with POST /api/v1/operators, and sign in as it.';

export const readOwnOperator = (context: Context) =>
  operation<Operator>({ context, permission: 'operator.passkey_add', resource: '*' }, ({ caller, entry }) =>
    caller.kind === 'operator'
      ? succeeded(caller.operator, null)
      : rejected('ACCESS_DENIED', NO_PASSKEYS, entry('denied', { reason: 'the caller is not an operator' })),
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
): ErrorInfo | null {
  const isLate = now >= challengeExpiresAt || loaded.spentChallenges.has(challengeId);
  if (isLate || operator?.id !== operatorId) return signInFailed();
  if ((operator.passkeys?.length ?? 0) >= MAX_PASSKEYS)
    return invalidRequest('response', `an operator has at most ${MAX_PASSKEYS} passkeys; remove one first`);
  if (control.operatorByPasskey(passkey.id) === null) return null;
  return { code: 'ALREADY_EXISTS', message: 'This passkey is registered already.' };
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
    ({ caller, state, moment, entry }) => {
      if (caller.kind !== 'operator')
        return rejected('ACCESS_DENIED', NO_PASSKEYS, entry('denied', { reason: 'the caller is not an operator' }));
      const { operator } = caller;
      const error = obstacle(state, moment.now, operator, request);
      const resource = operator.name;
      if (error !== null)
        return rejected(error.code, error.message, entry('denied', { resource, reason: error.message }));
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
    requester: { kind: 'unauthenticated', remoteAddr },
    decide(known, { now }) {
      const operator = known.control.operatorById(request.operatorId);
      const isUsed = operator === null || enrolmentState(operator) !== request.state || now >= request.codeExpiresAt;
      const error = isUsed ? signInFailed() : obstacle(known, now, operator, request);
      if (operator === null || error !== null)
        return rejected(error?.code ?? 'AUTH_FAILED', error?.message ?? signInFailed().message, null);
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
    if (operator === null) return rejected('NOT_FOUND', 'The operator does not exist.', entry('not_found'));
    return succeeded(operator, entry('allowed'));
  });

/**
 * The operator itself or an admin removes a passkey. The operator's sessions and leases end, because one may be on a
 * lost device.
 */
export const removePasskey = (context: Context, name: OperatorName, id: PasskeyId) =>
  operation<null>({ context, permission: 'operator.passkey_remove', resource: name }, (input) => {
    const { caller, state, moment, entry } = input;
    const operator = state.control.operatorByName(name);
    if (caller.kind === 'operator' && caller.operator.id !== operator?.id && !hasRole(caller.operator, 'admin')) {
      const reason = "only the operator itself or an admin may remove an operator's passkey";
      return forbidden(input, reason);
    }
    const passkey = operator?.passkeys?.find((each) => each.id === id);
    if (operator === null || passkey === undefined)
      return rejected('NOT_FOUND', 'The operator or the passkey does not exist.', entry('not_found'));
    const others = operator.passkeys?.filter((each) => each !== passkey) ?? [];
    const { now, seq } = moment;
    const changed = { ...operator, passkeys: others.length === 0 ? null : others, sessionsEndedAt: now };
    const rejection = rejectLastSignIn(input, operator, changed, 'id');
    if (rejection !== null) return rejection;
    const revocation = { agentId: operator.id, credentialId: null, kind: null, revokedAt: now, seq };
    return succeeded(
      null,
      entry('allowed', { reason: `the passkey ${passkey.label}; its sessions and leases ended` }),
      [putRow('operator', changed), { kind: 'revokeMatching', revocation }],
    );
  });
