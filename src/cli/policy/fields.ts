/** Validates the fields of a policy in a file, and reports all unknown, missing and invalid fields together. */

import type { PolicyReplacement } from '../../client/types.ts';
import { APPROVAL_FIELDS, type ApprovalFields, parseApprovalRule } from '../../core/approval-rule.ts';
import { ruleBroken } from '../../core/errors.ts';
import { nearest } from '../../core/operator-text.ts';
import { parsePattern } from '../../core/pattern.ts';
import {
  ACTIONS,
  LIMIT_FIELDS,
  type LimitFields,
  type PolicyDraft,
  parseLimits,
  parsePolicy,
  parsePrincipal,
  parseTtl,
} from '../../core/policy.ts';
import { parseDuration } from '../../flags/flag.ts';

const SHOWN_NAME = /^[\w.-]{1,40}$/;

type Read = { readonly draft: PolicyDraft } | { readonly problems: readonly string[] };

const REQUIRED = ['principal', 'resources', 'actions'];
type Rules = (value: unknown, name: string) => readonly (string | null)[];
/** Each field is checked separately, so that one problem does not hide another. */
const RULES: Readonly<Record<string, Rules>> = {
  name: (value, name) => [value === name ? null : `name: must be ${name}, the name of the file, or omitted`],
  principal: (value) => [
    typeof value === 'string' ? ruleBroken(() => parsePrincipal(value)) : 'principal: must be a string',
  ],
  resources: (value) => listRules(value, 'resources', (text, where) => ruleBroken(() => parsePattern(text, where))),
  actions: (value) => listRules(value, 'actions', actionRule),
  max_ttl: (value) => {
    const seconds = toSeconds(value);
    return [Number.isNaN(seconds) ? `max_ttl: ${DURATION_RULE}` : ruleBroken(() => parseTtl(seconds, 'max_ttl'))];
  },
  limits: tableRules<LimitFields>('limits', `one or more of ${LIMIT_FIELDS.join(', ')}`, LIMIT_FIELDS, parseLimits),
  // The check of the whole policy covers the action, which must be one of the policy's.
  approval: tableRules<ApprovalFields>(
    'approval',
    `for, and optionally ${APPROVAL_FIELDS.slice(1).join(', ')}`,
    APPROVAL_FIELDS,
    (fields) => parseApprovalRule(fields, ACTIONS),
  ),
};
const FIELDS = Object.keys(RULES);

/** `name` is the name of the policy by its file; a field `name` must be the same. */
export function readFields(value: unknown, name: string): Read {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { problems: [`must contain the fields of a policy: ${FIELDS.join(', ')}`] };
  const fields = value as Readonly<Record<string, unknown>>;
  const has = (field: string): boolean => Object.hasOwn(fields, field);
  const problems = [
    // `created_at` is ignored, so that the output of `policy show` is a valid file.
    ...Object.keys(fields).flatMap((field) =>
      FIELDS.includes(field) || field === 'created_at' ? [] : unknownField(field),
    ),
    ...REQUIRED.filter((field) => !has(field)).map((field) => `${field}: is missing`),
    ...Object.entries(RULES).flatMap(([field, rules]) => (has(field) ? rules(fields[field], name) : [])),
  ].filter((problem) => problem !== null);
  if (problems.length > 0) return { problems };
  const { principal, resources, actions } = fields as unknown as PolicyReplacement;
  const limits = has('limits') ? (fields['limits'] as LimitFields) : undefined;
  const approval = has('approval') ? (fields['approval'] as ApprovalFields) : undefined;
  const maxTtlSeconds = has('max_ttl') ? toSeconds(fields['max_ttl']) : undefined;
  let draft: PolicyDraft | null = null;
  // The parser of the server, so both accept the same policies.
  const rule = ruleBroken(() => {
    draft = parsePolicy({ name, principal, resources, actions, maxTtlSeconds, limits, approval });
  });
  return draft === null ? { problems: [rule ?? 'is not a policy'] } : { draft };
}

function unknownField(field: string, known: readonly string[] = FIELDS, where = ''): string {
  const meant = nearest(field.toLowerCase(), known);
  const hint = meant === null ? `must be one of ${known.join(', ')}` : `did you mean ${meant}?`;
  return `${where}${SHOWN_NAME.test(field) ? field : 'a field'}: unknown field; ${hint}`;
}

/** `what`: what the table must contain. Unknown fields hide the other rules. */
function tableRules<F>(name: string, what: string, known: readonly string[], parse: (table: F) => unknown): Rules {
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${name}: must contain ${what}`];
    const unknown = Object.keys(value).filter((field) => !known.includes(field));
    if (unknown.length > 0) return unknown.map((field) => unknownField(field, known, `${name}.`));
    return [ruleBroken(() => parse(value as F))];
  };
}

export const DURATION_RULE = 'must be a whole number of seconds, or a duration such as 15m';

/** A number of seconds, or a duration with its units as text; NaN for anything else. */
function toSeconds(value: unknown): number {
  if (typeof value === 'string') return /[a-z]$/.test(value) ? (parseDuration(value) ?? Number.NaN) : Number.NaN;
  return typeof value === 'number' ? value : Number.NaN;
}

function listRules(value: unknown, field: string, rule: (text: string, where: string) => string | null) {
  if (!Array.isArray(value)) return [`${field}: must be a list`];
  if (value.length === 0) return [`${field}: must not be empty`];
  return value.map((text: unknown, at) => {
    const where = `${field}[${at}]`;
    return typeof text === 'string' ? rule(text, where) : `${where}: must be a string`;
  });
}

export function actionRule(text: string, where: string): string | null {
  if ((ACTIONS as readonly string[]).includes(text)) return null;
  const meant = nearest(text.toLowerCase(), ACTIONS);
  return `${where}: must be one of ${ACTIONS.join(', ')}${meant === null ? '' : `; did you mean ${meant}?`}`;
}
