/**
 * Policies: they grant agents actions on paths, with a maximum TTL.
 * SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies".
 */
import { type ApprovalFields, type ApprovalRule, parseApprovalRule } from './approval-rule.ts';
import { invalidRequest } from './errors.ts';
import {
  AGENT_NAME_PART,
  type Brand,
  isOperatorName,
  NAME_PREFIX,
  OPERATOR_PREFIX,
  type PolicyName,
  type PrincipalName,
  parseAgentName,
  parsePolicyName,
} from './names.ts';
import { type Pattern, parsePattern } from './pattern.ts';

export const ACTIONS = ['retrieve', 'use', 'list', 'store', 'delete'] as const;
export type Action = (typeof ACTIONS)[number];

/** `agent:<name>` or `operator:<name>`; the name may end with `*`. */
export type Principal = Brand<string, 'Principal'>;

/** Seconds, 1 to 31,536,000 (a year). */
export type TtlSeconds = Brand<number, 'TtlSeconds'>;

export const MAX_TTL_SECONDS = 31_536_000;
const DEFAULT_TTL_SECONDS = 300 as TtlSeconds;
export const MAX_RESOURCES = 256;
export const PRINCIPAL = new RegExp(
  String.raw`^(?:agent|operator):(?:\*|[A-Za-z0-9][A-Za-z0-9._-]{0,62}\*|${AGENT_NAME_PART})$`,
);

export interface Policy {
  readonly name: PolicyName;
  readonly principal: Principal;
  readonly resources: readonly Pattern[];
  readonly actions: readonly Action[];
  readonly maxTtlSeconds: TtlSeconds;
  readonly limits: PolicyLimits | null;
  /** Null if nothing needs a person's approval. */
  readonly approval: ApprovalRule | null;
  /** Milliseconds since 1970. A replaced policy keeps it. */
  readonly createdAt: number;
}

export type PolicyDraft = Omit<Policy, 'createdAt'>;

export function isAction(text: string): text is Action {
  return (ACTIONS as readonly string[]).includes(text);
}

/** @throws INVALID_REQUEST naming `field` and the rule. */
export function parseTtl(value: number, field: string): TtlSeconds {
  if (!Number.isInteger(value) || value < 1 || value > MAX_TTL_SECONDS) {
    throw invalidRequest(field, `must be a whole number of seconds, 1 to ${MAX_TTL_SECONDS}`);
  }
  return value as TtlSeconds;
}

/** @throws INVALID_REQUEST */
export function parsePrincipal(text: string): Principal {
  const rule = 'must be agent:<name>, agent:<prefix>* or agent:*, or the same with operator:';
  const kind = ['agent:', OPERATOR_PREFIX].find((prefix) => text.startsWith(prefix));
  if (kind === undefined) throw invalidRequest('principal', rule);
  const name = text.slice(kind.length);
  if (name === '*') return text as Principal;
  const prefix = name.endsWith('*') ? name.slice(0, -1) : name;
  if (prefix === name) parseAgentName(prefix, 'principal');
  else if (!NAME_PREFIX.test(prefix)) throw invalidRequest('principal', rule);
  return text as Principal;
}

/** Parses the fields of a request. @throws INVALID_REQUEST naming the field and the rule. */
export function parsePolicy(fields: {
  name: string;
  principal: string;
  resources: readonly string[];
  actions: readonly string[];
  maxTtlSeconds?: number | undefined;
  limits?: LimitFields | undefined;
  approval?: ApprovalFields | undefined;
}): PolicyDraft {
  const { resources, actions, maxTtlSeconds, limits, approval } = fields;
  const name = parsePolicyName(fields.name);
  const principal = parsePrincipal(fields.principal);
  if (resources.length < 1 || resources.length > MAX_RESOURCES) {
    throw invalidRequest('resources', `must be an array of 1 to ${MAX_RESOURCES} patterns`);
  }
  if (actions.length < 1) throw invalidRequest('actions', 'must be an array of 1 or more actions');
  const knownActions = actions.map((action, index) => {
    if (!isAction(action)) throw invalidRequest(`actions[${index}]`, `must be one of ${ACTIONS.join(', ')}`);
    return action;
  });
  if (limits !== undefined && !knownActions.includes('use')) {
    throw invalidRequest('limits', 'is only for policies with the action use');
  }
  return {
    name,
    principal,
    resources: [...new Set(resources.map((text, index) => parsePattern(text, `resources[${index}]`)))],
    actions: [...new Set(knownActions)],
    maxTtlSeconds: maxTtlSeconds === undefined ? DEFAULT_TTL_SECONDS : parseTtl(maxTtlSeconds, 'max_ttl'),
    limits: limits === undefined ? null : parseLimits(limits),
    approval: approval === undefined ? null : parseApprovalRule(approval, knownActions),
  };
}

export function principalOf(name: PrincipalName): Principal {
  return (isOperatorName(name) ? name : `agent:${name}`) as string as Principal;
}

export function isOfOperators(principal: Principal): boolean {
  return principal.startsWith(OPERATOR_PREFIX);
}

/** Whether the principal names the agent or operator. Case-sensitive. */
export function principalMatches(principal: Principal, name: PrincipalName): boolean {
  const exact = principalOf(name);
  return principal.endsWith('*') ? exact.startsWith(principal.slice(0, -1)) : principal === exact;
}

// Limits of a policy on the uses of each agent for which the policy decides. They are counted in each node's memory.
// SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Brokered use".

/** Null where the policy does not limit. The order of the properties is that of the stored text. */
export interface PolicyLimits {
  readonly usesPerHour: number | null;
  /** The bytes of request and response bodies together. */
  readonly bytesPerHour: number | null;
  readonly concurrent: number | null;
}

export interface LimitFields {
  readonly uses_per_hour?: number | undefined;
  readonly bytes_per_hour?: number | undefined;
  readonly concurrent?: number | undefined;
}

export const LIMIT_FIELDS = ['uses_per_hour', 'bytes_per_hour', 'concurrent'] as const satisfies (keyof LimitFields)[];
export const MAX_LIMIT = 1_000_000_000_000;

/** @throws INVALID_REQUEST naming the field and the rule */
export function parseLimits(fields: LimitFields): PolicyLimits {
  if (LIMIT_FIELDS.every((field) => fields[field] === undefined)) {
    throw invalidRequest('limits', `must have one or more of ${LIMIT_FIELDS.join(', ')}`);
  }
  for (const field of LIMIT_FIELDS) {
    const value = fields[field] ?? 1;
    if (!Number.isInteger(value) || value < 1 || value > MAX_LIMIT) {
      throw invalidRequest(`limits.${field}`, `must be a whole number, 1 to ${MAX_LIMIT}`);
    }
  }
  return fromLimitFields(fields);
}

/** Converts without validation. */
export function fromLimitFields({ uses_per_hour, bytes_per_hour, concurrent }: LimitFields): PolicyLimits {
  return {
    usesPerHour: uses_per_hour ?? null,
    bytesPerHour: bytes_per_hour ?? null,
    concurrent: concurrent ?? null,
  };
}

/** The fields that are given, as the interface names them. */
export function toLimitFields({ usesPerHour, bytesPerHour, concurrent }: PolicyLimits) {
  return {
    ...(usesPerHour === null ? {} : { uses_per_hour: usesPerHour }),
    ...(bytesPerHour === null ? {} : { bytes_per_hour: bytesPerHour }),
    ...(concurrent === null ? {} : { concurrent }),
  };
}
