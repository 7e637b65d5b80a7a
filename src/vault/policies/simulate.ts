/** Simulates decisions. SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies". */

import type { BatchState } from '../../core/batch-state.ts';
import { messageOf, toldOf } from '../../core/denials.ts';
import * as grammar from '../../core/grammars.ts';
import type { Identity } from '../../core/identity.ts';
import { isOperatorName, type PrincipalName } from '../../core/names.ts';
import { type Context, denied, type Operation, operation, succeeded } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { lackOfPermission } from '../../core/permissions.ts';
import { record } from '../../engine/compounds.ts';
import { nullable, optional, type ValueOf } from '../../engine/field.ts';
import { anyText, boolean, integer, text } from '../../engine/kinds.ts';
import { shape } from '../../engine/resource.ts';
import { access, retrievalAccess } from '../credentials/access.ts';
import { ADMIN_POLICY, VIEWER_POLICY } from '../leases/lease.ts';
import { hasRole } from '../operators/operator.ts';
import { METHOD, type UseRequest } from '../use/target.ts';
import { MAX_URL_LENGTH } from '../use/upstream-url.ts';
import { decideTarget, withoutNearest } from '../use/use-decision.ts';
import { explain } from './decision-text.ts';
import { isAction, MAX_TTL_SECONDS } from './policy.ts';
import { decide } from './policy-index.ts';

export const SimulateRequest = shape(
  'SimulateRequest',
  {
    agent: text(grammar.principalName),
    path: text(grammar.path, { wire: 'resource' }),
    action: anyText(),
    request: optional(
      record(
        { method: text(METHOD), url: anyText({ description: 'An absolute URL.' }, { maxLength: MAX_URL_LENGTH }) },
        { title: 'SimulatedRequest' },
        { description: 'Only with the action `use`: decides by the targets of the credential too.' },
      ),
    ),
  },
  ({ action, request }) => (request !== null && action !== 'use' ? 'request: is only for the action use' : null),
);
export const Simulation = shape('Simulation', {
  allowed: boolean(),
  policyName: nullable(anyText({ wire: 'policy_name' })),
  leaseTtlSeconds: nullable(integer({ min: 1, max: MAX_TTL_SECONDS, unit: 'seconds' }, { wire: 'lease_ttl' })),
  reason: anyText(),
});
type Simulated = ValueOf<typeof Simulation.fields>;

export interface SimulatedQuestion {
  readonly agent: PrincipalName;
  readonly path: CredentialPath;
  readonly action: string;
  /** The request of a use; null to decide by the policies only. */
  readonly request: UseRequest | null;
}

/**
 * Calls the decision functions, changes nothing and is not recorded. An agent may simulate only for itself. The value
 * and the limits are not looked at.
 */
export function simulate(context: Context, question: SimulatedQuestion): Operation<Simulated> {
  const { agent, path, action, request } = question;
  const reads = request === null ? {} : { credential: path, targets: path };
  return operation({ context, permission: 'policy.simulate', resource: path, reads }, ({ identity, state, entry }) => {
    if (identity.kind === 'agent' && identity.agent.name !== agent) {
      return denied({ entry }, { code: 'simulates_other' });
    }
    const byRole = simulateRole(state, question);
    if (byRole !== null) return succeeded(byRole, null);
    const { policies } = state.control;
    const decision = decide(policies, agent, action, path);
    const isRegistered = state.control.principalByName(agent) !== null;
    const reason = explain(decision, { policies, agent, isRegistered, action, path });
    if (!decision.allowed) return succeeded({ ...DENIED, reason }, null);
    const lack = request === null ? null : lackOfTargets(state, identity, path, request);
    if (lack !== null) return succeeded({ ...DENIED, reason: `${reason} But ${lack}.` }, null);
    const { policyName, ttlSeconds } = decision;
    const allowed: Simulated = { allowed: true, policyName, leaseTtlSeconds: ttlSeconds, reason };
    return succeeded(allowed, null);
  });
}

/** The decision of an operator's roles; null if policies decide. */
function simulateRole(state: BatchState, { agent: name, path, action }: SimulatedQuestion): Simulated | null {
  const operator = isOperatorName(name) ? state.control.operatorByName(name) : null;
  if (operator === null || !isAction(action)) return null;
  const holder = { kind: 'operator', operator } as const;
  const lack = lackOfPermission(`credential.${action}`, holder);
  if (lack !== null) return { ...DENIED, reason: messageOf(lack) };
  const decided = action === 'retrieve' ? retrievalAccess(state, holder, path) : access(state, holder, action, path);
  if (!decided.allowed) return hasRole(operator, 'admin') ? { ...DENIED, reason: messageOf(decided.denial) } : null;
  const { policyName, ttlSeconds } = decided;
  const reason = ROLE_REASONS.get(policyName);
  return reason === undefined ? null : { allowed: true, policyName, leaseTtlSeconds: ttlSeconds, reason };
}

/** The reasons for access that a role grants, by the name that its lease has in place of a policy's. */
const ROLE_REASONS: ReadonlyMap<string, string> = new Map([
  [ADMIN_POLICY, 'An operator with the role admin may do everything.'],
  [VIEWER_POLICY, 'Every operator may list.'],
]);

const DENIED: Omit<Simulated, 'reason'> = { allowed: false, policyName: null, leaseTtlSeconds: null };

/**
 * Returns the reason why the targets do not allow the request, or null if they do. Only callers who may list learn of
 * other hosts, and whether the credential exists.
 */
function lackOfTargets(
  state: BatchState,
  identity: Identity,
  path: CredentialPath,
  request: UseRequest,
): string | null {
  const credential = state.credential(path);
  const mayRead = access(state, identity, 'list', path).allowed;
  if (credential === null && mayRead) return toldOf({ code: 'credential_not_found' });
  const binding = credential === null ? null : state.binding(credential);
  if (binding === null) return toldOf({ code: 'targets_not_found' });
  const byTargets = decideTarget(binding, request);
  if (byTargets.allowed) return null;
  return toldOf(mayRead ? byTargets.denial : withoutNearest(byTargets.denial));
}
