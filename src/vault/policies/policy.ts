/**
 * Policies: they grant agents actions on paths, with a maximum TTL. SOURCE: docs/api.md, "Policies"; docs/decisions.md,
 * "Policies".
 */
import { policyName } from '../../core/grammars.ts';
import {
  AGENT_NAME_PART,
  type Brand,
  isOperatorName,
  NAME_PREFIX,
  OPERATOR_PREFIX,
  type PrincipalName,
  parseAgentName,
} from '../../core/names.ts';
import { MAX_PATH_LENGTH, PATH_PART } from '../../core/path.ts';
import { type Pattern, parsePattern } from '../../core/pattern.ts';
import { list, record } from '../../engine/compounds.ts';
import { invalidRequest } from '../../engine/errors.ts';
import {
  type AnyField,
  byDefault,
  covers,
  type Grammar,
  type InputOf,
  optional,
  parseField,
  type ReplyOf,
  setByServer,
  type ValueOf,
} from '../../engine/field.ts';
import { integer, oneOf, text, time } from '../../engine/kinds.ts';
import { type DraftOf, resource } from '../../engine/resource.ts';
import { APPROVAL_RULE } from './approval-rule.ts';

export const ACTIONS = ['retrieve', 'use', 'list', 'store', 'delete'] as const;
export type Action = (typeof ACTIONS)[number];

/** `agent:<name>` or `operator:<name>`; the name may end with `*`. */
export type Principal = Brand<string, 'Principal'>;

/** Seconds, 1 to 31,536,000 (a year). */
export type TtlSeconds = Brand<number, 'TtlSeconds'>;

export const MAX_TTL_SECONDS = 31_536_000;
const MAX_RESOURCES = 256;
const MAX_LIMIT = 1_000_000_000_000;

/** The lease that a request asks for, in seconds. */
export const givenTtlSeconds = optional(
  integer<TtlSeconds, 'ttl'>(
    { min: 1, max: MAX_TTL_SECONDS, unit: 'seconds' },
    { wire: 'ttl', description: 'A shorter lease than the policy allows.' },
  ),
);

const PRINCIPAL: Grammar<Principal> = {
  pattern: new RegExp(String.raw`^(?:agent|operator):(?:\*|[A-Za-z0-9][A-Za-z0-9._-]{0,62}\*|${AGENT_NAME_PART})$`),
  minLength: 7,
  maxLength: 73,
  description: '`agent:<name>` or `operator:<name>`, or with one `*` at the end.',
  parse: parsePrincipal,
  covers: principalCovers,
};

const PATTERN = {
  pattern: new RegExp(String.raw`^(?:\*|(?=.{1,${MAX_PATH_LENGTH}}(?:/\*)?$)${PATH_PART}(?:/\*)?)$`),
  minLength: 1,
  maxLength: MAX_PATH_LENGTH + 2,
  noun: 'pattern',
  description: 'A path; `prefix/*` for everything below `prefix/` at any depth; or `*`.',
  parse: parsePattern,
  covers: patternCovers,
};

const limit = { min: 1, max: MAX_LIMIT };

/** The only list of a policy's fields. Limits are counted in the memory of each node. */
export const Policy = resource('policy', {
  table: 'policies',
  key: 'name',
  isHeld: true,
  subject: { fields: ['name'] },
  fields: {
    name: text(policyName, { example: 'some-name', label: 'Name' }),
    principal: text(PRINCIPAL, {
      example: 'agent:some-name',
      label: 'Principal',
      placeholder: 'agent:NAME',
      help: 'whom it applies to: agent:NAME, agent:PREFIX*, agent:*, or operator:NAME and so on',
    }),
    resources: list(
      text(PATTERN, { example: 'some/*' }),
      { min: 1, max: MAX_RESOURCES },
      {
        example: ['some/*'],
        label: 'Resources, one pattern on each line',
        flag: 'resource',
        placeholder: 'PATTERN',
        help: 'paths it grants; separate several with commas',
      },
    ),
    actions: list(
      oneOf(ACTIONS, { example: 'use', noun: 'action' }),
      { min: 1 },
      {
        example: ['use'],
        label: 'Actions',
        flag: 'action',
        placeholder: ACTIONS.join('|'),
        help: 'actions it grants; separate several with commas',
      },
    ),
    maxTtlSeconds: byDefault(
      300,
      integer<TtlSeconds, 'max_ttl'>(
        { min: 1, max: MAX_TTL_SECONDS, unit: 'seconds' },
        {
          wire: 'max_ttl',
          example: 60,
          label: 'Longest lease, in seconds',
          placeholder: 'DURATION',
          help: 'maximum lease duration, such as 15m, or in seconds',
        },
      ),
    ),
    limits: optional(
      record(
        {
          usesPerHour: optional(
            integer(limit, {
              wire: 'uses_per_hour',
              example: 1,
              label: 'Uses per hour',
              empty: 'any',
              placeholder: 'NUMBER',
              help: 'maximum number of uses of each agent in an hour',
            }),
          ),
          bytesPerHour: optional(
            integer(limit, {
              wire: 'bytes_per_hour',
              example: 1,
              description: 'Of the bodies of requests and responses.',
              label: 'Bytes per hour',
              empty: 'any',
              placeholder: 'NUMBER',
              help: 'maximum number of bytes that each agent may send and receive in an hour',
            }),
          ),
          concurrent: optional(
            integer(limit, {
              example: 1,
              label: 'Uses at the same time',
              empty: 'any',
              placeholder: 'NUMBER',
              help: 'maximum number of uses of each agent at the same time',
            }),
          ),
        },
        { title: 'Limits', needsOne: true },
        { example: { concurrent: 1 }, description: 'On the uses of each agent.' },
      ),
    ),
    approval: optional(APPROVAL_RULE),
    expiresAt: optional(
      time({
        wire: 'expires_at',
        example: '2999-01-31T09:30:00.000Z',
        description: 'The policy is deleted at this time.',
        label: 'Expires at',
        empty: 'never',
        placeholder: 'TIME',
        help: 'when it is deleted, a time in UTC such as 2027-01-31T09:30:00Z',
      }),
      { since: 2 },
    ),
    createdAt: setByServer(time({ wire: 'created_at', example: '2026-01-31T09:30:00.000Z' })),
  },
  check({ actions, limits, approval }) {
    if (limits !== null && !actions.includes('use')) return 'limits: is only for policies with the action use';
    if (approval !== null && !actions.includes(approval.for)) {
      return "approval.for: must be one of the policy's actions";
    }
    return null;
  },
});

type Fields = typeof Policy.fields;
/** `createdAt` is in milliseconds since 1970. A replaced policy keeps it. */
export type Policy = ValueOf<Fields>;
export type PolicyDraft = DraftOf<Fields>;
export type PolicyInput = InputOf<Fields>;
export type PolicyReply = ReplyOf<Fields>;
/** A limit is null where the policy does not limit. `bytesPerHour` counts the bodies of requests and responses. */
export type PolicyLimits = NonNullable<Policy['limits']>;

/** Whether the policy no longer grants anything, and is to be deleted. */
export function hasExpired({ expiresAt }: Pick<Policy, 'expiresAt'>, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

/** Whether `outer` is in force as long as `inner`. */
export function lastsAsLong(outer: Pick<Policy, 'expiresAt'>, inner: Pick<Policy, 'expiresAt'>): boolean {
  return covers(Policy.fields.expiresAt as AnyField, outer.expiresAt, inner.expiresAt);
}

export function isAction(text: string): text is Action {
  return (ACTIONS as readonly string[]).includes(text);
}

export function parseTtl(value: number, field: string): TtlSeconds {
  return parseField(Policy.fields.maxTtlSeconds, value, field);
}

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

export function principalOf(name: PrincipalName): Principal {
  return (isOperatorName(name) ? name : `agent:${name}`) as string as Principal;
}

export function isOfOperators(principal: Principal): boolean {
  return principal.startsWith(OPERATOR_PREFIX);
}

/** Whether every agent that `inner` names is named by `outer`. */
export function principalCovers(outer: Principal, inner: Principal): boolean {
  return outer === inner || (outer.endsWith('*') && inner.startsWith(outer.slice(0, -1)));
}

/** Whether every path that `inner` matches is matched by `outer`. */
export function patternCovers(outer: Pattern, inner: Pattern): boolean {
  return outer === inner || outer === '*' || (outer.endsWith('/*') && inner.startsWith(outer.slice(0, -1)));
}

/** Whether the principal names the agent or operator. Case-sensitive. */
export function principalMatches(principal: Principal, name: PrincipalName): boolean {
  const exact = principalOf(name);
  return principal.endsWith('*') ? exact.startsWith(principal.slice(0, -1)) : principal === exact;
}
