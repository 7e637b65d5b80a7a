/** The parameters of denials, and the texts that are made from them, for the table of denials. */
import { type ApiErrorCode, invalidRequest } from '../engine/errors.ts';
import type { Approval } from '../vault/approvals/approval.ts';
import { MAX_PASSKEYS } from '../vault/operators/operator.ts';
import type { LimitKind } from '../vault/use/misuse-operations.ts';
import type { Mismatch, Target } from '../vault/use/target.ts';
import type { TokenPlace } from '../vault/use/token-form.ts';
import { type DenialClass, type DenialKind, forbidden, rejection, type Text } from './denial-kinds.ts';
import { isOperatorName, type PolicyName, type PrincipalName } from './names.ts';

export const rule = (field: string, text: string): string => invalidRequest(field, text).message;

export interface ByPolicies {
  readonly principal: PrincipalName;
  readonly action: string;
}

/** A denial by policies. `reason` names the principal as `this agent`. */
export function byPolicies(kind: DenialClass, reason: string): DenialKind<ByPolicies> {
  const named = ({ principal }: ByPolicies): string =>
    isOperatorName(principal) ? reason.replace('this agent', 'this operator') : reason;
  return { ...forbidden(named, (access) => `${named(access)} (${access.action})`), class: kind };
}

export const TOKEN_UNKNOWN = 'the token is not valid. Log in at POST /auth/challenge and /auth/verify';

export const LOGIN_FAILED =
  'login failed: the agent is not registered, this is not its key, or the challenge has ended. Each challenge works once, for 60 seconds';
export const SIGN_IN_FAILED =
  'sign-in failed: it is not known here, or it took too long or was used before. Start again';

/** A failed login or sign-in: all have the same message, and only the audit log has the reason. */
export function failedLogin<P = unknown>(reason: Text<P> | null, told: string): DenialKind<P> {
  return { ...rejection('AUTH_FAILED', reason, told), class: 'login' };
}

export interface AboutApproval {
  readonly approval: Approval;
}

/** The denial of a request whose approval ended without a grant. */
export function approvalOutcome(
  error: ApiErrorCode,
  reason: (approval: Approval) => string,
  told: (approval: Approval) => string,
): DenialKind<AboutApproval> {
  return rejection(
    error,
    ({ approval }) => `${reason(approval)} (approval:${approval.id})`,
    ({ approval }) => told(approval),
  );
}

export const givenReason = ({ reason }: Approval): string => (reason === null ? '' : `: ${reason}`);

export const TAKEN = {
  agent: 'an agent of this name, or of one that differs only in case, is registered already',
  operator: 'an operator of this name, or of one that differs only in case, exists already',
  policy: 'a policy of this name exists already; PUT replaces it',
  'key slot': 'a key slot has this name',
} as const;

export const OPERATOR_REQUIRED = {
  passkeys: 'only an operator has passkeys. Add one with POST /api/v1/operators, and sign in as it',
  handoff: "only an operator's session can be handed over. Paste the administrator's token into the console",
} as const;

export const TOO_MANY_PASSKEYS = rule('response', `an operator has at most ${MAX_PASSKEYS} passkeys; remove one first`);

/** Why an approval is void. */
export const VOID_CAUSES = {
  agent: 'the agent was deregistered',
  approvers: 'fewer operators can approve it than the policy demands',
  policies: 'no policy grants the request now',
  basis:
    'its policies, credential or targets or the key of the agent changed, or a panic ended the access of the agent',
} as const;
export type VoidCause = keyof typeof VOID_CAUSES;

export const PART = { path: 'the path', query: 'the query', header: 'a header' } as const satisfies Record<
  TokenPlace,
  string
>;

export interface UseLimit {
  readonly policyName: PolicyName;
  readonly kind: LimitKind;
  readonly amount: number;
  /** The number of rejections that a summary records; null for a single one. */
  readonly count: number | null;
}

export function describeUseLimit({ kind, amount, count }: UseLimit): string {
  const over = `over the policy's limit of ${amount} ${kind}`;
  return count === null ? over : `${count} more ${count === 1 ? 'use was' : 'uses were'} rejected: ${over}`;
}

export interface NoTarget {
  readonly lacks: Mismatch;
  /** Null if there is none, or if the caller may not read the targets. */
  readonly nearest: Target | null;
}

export function toldNoTarget({ lacks, nearest }: NoTarget): string {
  const reason = `no target of the credential has this ${lacks}`;
  if (nearest === null) return reason;
  const { origin, methods, paths } = nearest;
  return `${reason}; the nearest is ${origin} with ${methods.join(', ')} on ${paths.join(', ')}`;
}

export interface NetworkNotAllowed {
  readonly field: string;
  readonly networks: readonly string[];
}

export function toldNetwork({ field, networks }: NetworkNotAllowed): string {
  const allowed = networks.join(', ');
  return allowed === ''
    ? `${field} must be empty: this server allows no internal network (--target-networks none)`
    : `${field} must be within ${allowed}, the networks that this server allows (--target-networks)`;
}

export interface Current {
  /** What the request is about; null if it does not exist, and undefined for a caller who may not see it. */
  readonly current: object | null | undefined;
}

export const operatorFieldRule = ({ field }: { readonly field: string }): string =>
  `${field}: only an operator or the administrator may set http, allow_networks and ca_pem`;
