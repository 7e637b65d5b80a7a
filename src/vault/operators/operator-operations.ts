/** Adds and changes operators. SOURCE: docs/operators.md. */
import type { BatchState } from '../../core/batch-state.ts';
import { putRow } from '../../core/change.ts';
import type { ControlState } from '../../core/control.ts';
import type { AgentId, OperatorName, PublicKey } from '../../core/names.ts';
import { type Context, denied, type OperationInput, type Outcome, operation, succeeded } from '../../core/operation.ts';
import { allLeasesOf } from '../leases/lease.ts';
import { canSignIn, hasRole, isSameEmail, type Operator, type ProviderIdentity, type Role } from './operator.ts';

interface OperatorToAdd extends Pick<Operator, 'name' | 'description' | 'roles' | 'publicKey' | 'identity'> {
  /** WHY not an id made by the batch: a repeated request must find the one that it made. */
  readonly id: AgentId;
}

const operatorNamed =
  (name: OperatorName) =>
  ({ control }: BatchState): Operator | null =>
    control.operatorByName(name);

export const addOperator = (context: Context, request: OperatorToAdd) =>
  operation<Operator>({ context, permission: 'operator.add', resource: request.name }, ({ state, moment, entry }) => {
    if (state.control.isOperatorNameTaken(request.name))
      return denied({ entry }, { code: 'name_taken', of: 'operator' });
    if (isIdentityTaken(state.control, request.identity)) return denied({ entry }, { code: 'identity_taken' });
    const operator: Operator = { ...request, passkeys: null, addedAt: moment.now, sessionsEndedAt: null };
    return succeeded(operator, entry('allowed', { reason: describeRoles(operator) }), [putRow('operator', operator)]);
  });

export interface OperatorChange {
  readonly description: string;
  readonly roles: readonly Role[];
  /** Absent: it stays. */
  readonly identity?: ProviderIdentity | null;
}

export const replaceOperator = (context: Context, name: OperatorName, change: OperatorChange) =>
  operation<Operator>(
    { context, permission: 'operator.replace', resource: name, target: operatorNamed(name) },
    (input) => {
      const { state, moment, entry } = input;
      const known = operatorNamed(name)(state);
      if (known === null) return denied(input, { code: 'operator_not_found' });
      const isOther = change.identity !== undefined && !isSameIdentity(change.identity, known.identity);
      const operator: Operator = { ...known, ...change, ...(isOther ? { sessionsEndedAt: moment.now } : {}) };
      if (!hasRole(operator, 'admin') && isLastAdmin(input, known)) return keptAdmin(input, 'roles');
      const rejection = rejectLastSignIn(input, known, operator, 'identity');
      if (rejection !== null) return rejection;
      if (change.identity !== undefined && isIdentityTaken(state.control, change.identity, known))
        return denied(input, { code: 'identity_taken' });
      return succeeded(operator, entry('allowed', { reason: describeRoles(operator) }), [
        putRow('operator', operator),
        ...(isOther ? [{ kind: 'revokeMatching' as const, revocation: allLeasesOf(known.id, moment) }] : []),
      ]);
    },
  );

/** Logins need the new key. The sessions that the previous one opened end, and so do the leases that they got. */
export const rotateOperatorKey = (context: Context, name: OperatorName, publicKey: PublicKey) =>
  operation<Operator>({ context, permission: 'operator.rotate', resource: name }, ({ state, moment, entry }) => {
    const known = state.control.operatorByName(name);
    if (known === null) return denied({ entry }, { code: 'operator_not_found' });
    const operator: Operator = { ...known, publicKey, sessionsEndedAt: moment.now };
    return succeeded(operator, entry('allowed', { reason: 'its sessions and leases ended' }), [
      putRow('operator', operator),
      { kind: 'revokeMatching', revocation: allLeasesOf(known.id, moment) },
    ]);
  });

export const recordBreakGlass = (context: Context) =>
  operation<null>({ context, permission: 'operator.break_glass', resource: '*' }, ({ entry }) =>
    succeeded(null, entry('allowed', { reason: "the administrator's token is in use" })),
  );

function isSameIdentity(one: ProviderIdentity | null, other: ProviderIdentity | null): boolean {
  return one?.issuer === other?.issuer && one?.subject === other?.subject && one?.email === other?.email;
}

function isIdentityTaken(control: ControlState, identity: ProviderIdentity | null, except?: Operator): boolean {
  if (identity === null) return false;
  const isSame = (one: string | null, other: string | null): boolean =>
    one !== null && other !== null && isSameEmail(one, other);
  return control.operators().some(({ id, identity: other }) => {
    if (id === except?.id || other === null || other.issuer !== identity.issuer) return false;
    return (identity.subject !== null && identity.subject === other.subject) || isSame(identity.email, other.email);
  });
}

function describeRoles({ roles, identity }: Operator): string {
  const named = identity === null ? '' : `; signs in as ${identity.subject ?? identity.email} of ${identity.issuer}`;
  return `roles: ${roles.join(', ')}${named}`;
}

/** An e-mail address alone may never have worked at the provider. */
function hasProvenSignIn(operator: Operator): boolean {
  const { identity } = operator;
  return canSignIn({ ...operator, identity: identity?.subject == null ? null : identity });
}

/** Whether without it no admin is left, or none that can sign in. */
export function isLastAdmin({ state }: OperationInput, operator: Operator): boolean {
  const others = state.control.operators().filter((other) => other.id !== operator.id && hasRole(other, 'admin'));
  return hasRole(operator, 'admin') && !others.some((other) => hasProvenSignIn(other) || !canSignIn(operator));
}

/** The rejection of a change after which no admin could sign in; null if the change keeps one. */
export function rejectLastSignIn(input: OperationInput, known: Operator, changed: Operator, field: string) {
  return !canSignIn(changed) && canSignIn(known) && isLastAdmin(input, known) ? keptAdmin(input, field) : null;
}

export function keptAdmin(input: OperationInput, field: string): Outcome<never> {
  return denied(input, { code: 'last_admin', field });
}
