/**
 * The rule of a policy for approvals, and the terms that all policies that match one request demand together. SOURCE:
 * docs/approvals.md.
 */

import * as grammar from '../../core/grammars.ts';
import type { Brand, PolicyName } from '../../core/names.ts';
import { list, record } from '../../engine/compounds.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { byDefault, nullable, type PatternGrammar, type ValueOf } from '../../engine/field.ts';
import { boolean, integer, oneOf, positive, text } from '../../engine/kinds.ts';

export const APPROVED_ACTIONS = ['use', 'retrieve'] as const;
export type ApprovedAction = (typeof APPROVED_ACTIONS)[number];

/**
 * What one approval covers, from the narrowest to the widest: this request, its method and path on the host, or
 * everything on the host.
 */
const APPROVAL_EXTENTS = ['request', 'endpoint', 'host'] as const;

/** How long an approval counts: `once`, `session`, `<n> uses` or `<n> seconds`. */
export type ApprovalScope = Brand<string, 'ApprovalScope'>;
export const MAX_QUORUM = 10;
const MAX_APPROVAL_TIMEOUT_SECONDS = 86_400;
const MAX_SCOPE_SECONDS = 31_536_000;
/** An approval for a number of uses, or for a session, ends after this time at the latest. */
const MAX_GRANT_SECONDS = 86_400;

const SCOPE: PatternGrammar<ApprovalScope> = {
  pattern: /^(?:once|session|[1-9][0-9]{0,3} uses|[1-9][0-9]{0,7} seconds)$/,
  minLength: 4,
  maxLength: 16,
  parse(given, field) {
    if (!SCOPE.pattern.test(given)) throw invalidRequest(field, 'must be once, session, <n> uses or <n> seconds');
    if (given.endsWith('seconds') && Number.parseInt(given, 10) > MAX_SCOPE_SECONDS) {
      throw invalidRequest(field, `must be at most ${MAX_SCOPE_SECONDS} seconds`);
    }
    return given as ApprovalScope;
  },
};

const FIELDS = {
  for: oneOf(APPROVED_ACTIONS, {
    example: 'use',
    description: "One of the policy's actions.",
    label: 'Approval by operators',
    empty: 'Not needed',
    flag: 'approval',
    placeholder: APPROVED_ACTIONS.join('|'),
    help: 'the action that an operator must approve',
  }),
  each: byDefault(
    'request',
    oneOf(APPROVAL_EXTENTS, {
      example: 'host',
      description: 'What one approval covers: `request` by default; only that for `retrieve`.',
      label: 'One approval covers each',
      flag: 'approval-each',
      placeholder: 'EXTENT',
      help: 'what one approval covers: request, endpoint or host',
    }),
  ),
  scope: byDefault(
    'once',
    text(SCOPE, {
      example: 'session',
      description: '`once` by default, `session`, `<n> uses` or `<n> seconds`; only `once` for `retrieve`.',
      label: 'For: once, session, 5 uses, 600 seconds',
      flag: 'approval-scope',
      placeholder: 'SCOPE',
      help: "how long an approval counts: once, session, '5 uses' or '3600 seconds'",
    }),
  ),
  quorum: byDefault(
    1,
    integer(
      { min: 1, max: MAX_QUORUM },
      {
        example: 2,
        description: 'How many operators must approve; by default 1.',
        label: 'Operators that must approve',
        flag: 'approval-quorum',
        placeholder: 'NUMBER',
        help: 'how many operators must approve',
      },
    ),
  ),
  timeout: byDefault(
    300,
    integer(
      { min: 1, max: MAX_APPROVAL_TIMEOUT_SECONDS, unit: 'seconds' },
      {
        example: 60,
        description: 'For how many seconds a request waits for an answer; 300 by default.',
        label: 'Seconds until it times out',
        flag: 'approval-timeout',
        placeholder: 'DURATION',
        help: 'how long a request waits for an answer, such as 10m',
      },
    ),
  ),
};

/** `timeout` is the number of seconds that a request waits for an answer. */
export type ApprovalRule = ValueOf<typeof FIELDS>;

export const APPROVAL_RULE = record(
  FIELDS,
  {
    title: 'Approval',
    names: { request: 'ApprovalFields', reply: 'PolicyApproval' },
    check(rule) {
      if (rule.for !== 'retrieve' || (rule.each === 'request' && rule.scope === 'once')) return null;
      const field = rule.each === 'request' ? 'scope' : 'each';
      return `${field}: must be left out for retrieve, because a value that was retrieved cannot be taken back`;
    },
    covers: approvalCovers,
  },
  { example: { for: 'use' }, description: 'People must approve the action.' },
);

/** Whether `inner` demands at least what `outer` does. A rule that differs in its scope counts as wider. */
export function approvalCovers(outer: ApprovalRule, inner: ApprovalRule): boolean {
  const isNarrower = APPROVAL_EXTENTS.indexOf(inner.each) <= APPROVAL_EXTENTS.indexOf(outer.each);
  const isSameScope = inner.scope === outer.scope || inner.scope === 'once';
  return inner.for === outer.for && isNarrower && isSameScope && inner.quorum >= outer.quorum;
}

/** The combined demands of the rules of several policies: the strictest of each. */
export const TERMS = {
  each: oneOf(APPROVAL_EXTENTS),
  uses: nullable(positive({ description: 'How often; null for any number of times.' })),
  seconds: integer({ min: 1, max: MAX_SCOPE_SECONDS }, { description: 'For how long after the approval.' }),
  isForSession: boolean({ wire: 'for_session', description: 'Whether only for the session that asked.' }),
  quorum: integer({ min: 1, max: MAX_QUORUM }),
  timeoutSeconds: integer({ min: 1, max: MAX_APPROVAL_TIMEOUT_SECONDS }),
  policyNames: list(text(grammar.policyName), { min: 1 }, { wire: 'policy_names' }),
};
export type ApprovalTerms = ValueOf<typeof TERMS>;

/** Null if no policy has a rule. */
export function combineRules(
  policies: readonly { readonly name: PolicyName; readonly approval: ApprovalRule | null }[],
): ApprovalTerms | null {
  const rules = policies.flatMap(({ approval }) => (approval === null ? [] : [approval]));
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
    // A single approval applies to exactly the request that the operator saw.
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
