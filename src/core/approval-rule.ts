/**
 * What a policy says about approvals, and what all policies that match one request demand together.
 * SOURCE: docs/approvals.md.
 */
import { invalidRequest } from './errors.ts';
import type { Brand, PolicyName } from './names.ts';

export const APPROVED_ACTIONS = ['use', 'retrieve'] as const;
export type ApprovedAction = (typeof APPROVED_ACTIONS)[number];

/** The extents from the narrowest to the widest. */
export const APPROVAL_EXTENTS = ['request', 'endpoint', 'host'] as const;
/** What one approval covers: this request, its method and path on the host, or everything on the host. */
type ApprovalExtent = (typeof APPROVAL_EXTENTS)[number];

export const APPROVAL_SCOPE = /^(?:once|session|[1-9][0-9]{0,3} uses|[1-9][0-9]{0,7} seconds)$/;
/** How long an approval counts: `once`, `session`, `<n> uses` or `<n> seconds`. */
export type ApprovalScope = Brand<string, 'ApprovalScope'>;
export const MAX_QUORUM = 10;
export const MAX_APPROVAL_TIMEOUT_SECONDS = 86_400;
const MAX_SCOPE_SECONDS = 31_536_000;
const DEFAULT_TIMEOUT_SECONDS = 300;
/** An approval for a number of uses, or for a session, ends after this time at the latest. */
const MAX_GRANT_SECONDS = 86_400;

export interface ApprovalRule {
  readonly for: ApprovedAction;
  readonly each: ApprovalExtent;
  readonly scope: ApprovalScope;
  readonly quorum: number;
  /** How long a request waits for an answer, in seconds. */
  readonly timeout: number;
}

export interface ApprovalFields {
  readonly for: string;
  readonly each?: string | undefined;
  readonly scope?: string | undefined;
  readonly quorum?: number | undefined;
  readonly timeout?: number | undefined;
}

export const APPROVAL_FIELDS = ['for', 'each', 'scope', 'quorum', 'timeout'] as const satisfies (keyof ApprovalRule)[];

/** @throws INVALID_REQUEST naming the field and the rule */
export function parseApprovalRule(fields: ApprovalFields, actions: readonly string[]): ApprovalRule {
  const { each = 'request', scope = 'once', quorum = 1, timeout = DEFAULT_TIMEOUT_SECONDS } = fields;
  const action = oneOf(fields.for, APPROVED_ACTIONS, 'approval.for');
  if (!actions.includes(action)) throw invalidRequest('approval.for', "must be one of the policy's actions");
  const extent = oneOf(each, APPROVAL_EXTENTS, 'approval.each');
  if (!APPROVAL_SCOPE.test(scope)) {
    throw invalidRequest('approval.scope', 'must be once, session, <n> uses or <n> seconds');
  }
  if (action === 'retrieve' && (extent !== 'request' || scope !== 'once')) {
    throw invalidRequest(
      extent === 'request' ? 'approval.scope' : 'approval.each',
      'must be left out for retrieve, because a value that was retrieved cannot be taken back',
    );
  }
  if (scope.endsWith('seconds') && Number.parseInt(scope, 10) > MAX_SCOPE_SECONDS) {
    throw invalidRequest('approval.scope', `must be at most ${MAX_SCOPE_SECONDS} seconds`);
  }
  return {
    for: action,
    each: extent,
    scope: scope as ApprovalScope,
    quorum: integer(quorum, MAX_QUORUM, 'approval.quorum'),
    timeout: integer(timeout, MAX_APPROVAL_TIMEOUT_SECONDS, 'approval.timeout'),
  };
}

function oneOf<T extends string>(text: string, allowed: readonly T[], field: string): T {
  const found = allowed.find((each) => each === text);
  if (found === undefined) throw invalidRequest(field, `must be one of ${allowed.join(', ')}`);
  return found;
}

function integer(value: number, max: number, field: string): number {
  if (!Number.isInteger(value) || value < 1 || value > max) {
    throw invalidRequest(field, `must be a whole number, 1 to ${max}`);
  }
  return value;
}

/** What the rules of several policies demand together: the strictest of each. */
export interface ApprovalTerms {
  readonly each: ApprovalExtent;
  /** Null if the number of uses is not limited. */
  readonly uses: number | null;
  /** How long the approval counts. */
  readonly seconds: number;
  /** Whether it counts only for the session that asked. */
  readonly isForSession: boolean;
  readonly quorum: number;
  readonly timeoutSeconds: number;
  readonly policyNames: readonly PolicyName[];
}

/** Null if no policy has a rule. */
export function combineRules(
  policies: readonly { readonly name: PolicyName; readonly approval: ApprovalRule | null }[],
): ApprovalTerms | null {
  const rules = policies.flatMap(({ approval }) => (approval == null ? [] : [approval]));
  if (rules.length === 0) return null;
  const limits = rules.map(limitsOf);
  const uses = limits.flatMap((limit) => limit.uses ?? []);
  const timeoutSeconds = Math.min(...rules.map(({ timeout }) => timeout));
  const terms = {
    uses: uses.length === 0 ? null : Math.min(...uses),
    isForSession: limits.some(({ isForSession }) => isForSession),
    quorum: Math.max(...rules.map(({ quorum }) => quorum)),
    timeoutSeconds,
    policyNames: policies.map(({ name }) => name).sort(),
  };
  const isOnce = rules.some(({ scope }) => scope === 'once');
  const narrowest = APPROVAL_EXTENTS.find((extent) => rules.some(({ each }) => each === extent)) ?? 'request';
  return {
    ...terms,
    // What is approved once is the very request that the operator saw.
    each: isOnce ? 'request' : narrowest,
    seconds: Math.min(...limits.map(({ seconds }) => seconds), isOnce ? timeoutSeconds : MAX_SCOPE_SECONDS),
  };
}

function limitsOf({ scope }: ApprovalRule): Pick<ApprovalTerms, 'uses' | 'seconds' | 'isForSession'> {
  const number = Number.parseInt(scope, 10);
  if (scope.endsWith('seconds')) return { uses: null, seconds: number, isForSession: false };
  const isForSession = scope === 'session';
  const uses = isForSession ? null : scope === 'once' ? 1 : number;
  return { uses, seconds: MAX_GRANT_SECONDS, isForSession };
}

/** How often and how long an approval counts: `3 times, in its session, within 5 minutes`. */
export function describeLimit({ uses, seconds, isForSession }: ApprovalTerms): string {
  const times = uses === null ? 'any number of times' : uses === 1 ? 'once' : `${uses} times`;
  return `${times}, ${isForSession ? 'in its session, ' : ''}within ${describeDuration(seconds)}`;
}

function describeDuration(seconds: number): string {
  const units: readonly (readonly [number, string])[] = [
    [86_400, 'day'],
    [3600, 'hour'],
    [60, 'minute'],
    [1, 'second'],
  ];
  const [size, unit] = units.find(([each]) => seconds % each === 0) ?? [1, 'second'];
  const count = seconds / size;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
