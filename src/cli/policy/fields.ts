/** Validates the fields of a policy in a file, and reports all unknown, missing and invalid fields together. */

import type { PolicyReplacement, Policy as PolicyText } from '../../client/types.ts';
import { nearest } from '../../core/nearest.ts';
import { parsePattern } from '../../core/pattern.ts';
import { ACTIONS, type Policy, type PolicyDraft, parsePolicy, parsePrincipal, parseTtl } from '../../core/policy.ts';
import { parseDuration } from '../flags.ts';
import { ruleBroken } from './problems.ts';

/** `created_at` is accepted and ignored, so that the output of `policy show` is a valid file. */
const FIELDS = ['name', 'principal', 'resources', 'actions', 'max_ttl', 'created_at'] as const;
const SETTABLE = FIELDS.slice(0, -1);
const REQUIRED = ['principal', 'resources', 'actions'] as const;
const SHOWN_NAME = /^[\w.-]{1,40}$/;

export type Read = { readonly draft: PolicyDraft } | { readonly problems: readonly string[] };

/** `name` is the name of the policy by its file; a field `name` must be the same. */
export function readFields(value: unknown, name: string): Read {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { problems: [`must contain the fields of a policy: ${SETTABLE.join(', ')}`] };
  const fields = value as Readonly<Record<string, unknown>>;
  const problems = [...unknownFields(fields), ...missingFields(fields), ...wrongKinds(fields, name)];
  if (problems.length > 0) return { problems };
  const { principal, resources, actions } = fields as unknown as PolicyReplacement;
  const maxTtlSeconds = Object.hasOwn(fields, 'max_ttl') ? toSeconds(fields['max_ttl']) : undefined;
  let draft: PolicyDraft | null = null;
  // The parser of the service, so both accept the same policies.
  const rule = ruleBroken(() => {
    draft = parsePolicy({ name, principal, resources, actions, maxTtlSeconds });
  });
  return draft === null ? { problems: [rule ?? 'is not a policy'] } : { draft };
}

function unknownFields(fields: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(fields)
    .filter((field) => !(FIELDS as readonly string[]).includes(field))
    .map((field) => {
      const shown = SHOWN_NAME.test(field) ? field : 'a field';
      const meant = nearest(field.toLowerCase(), SETTABLE);
      return `${shown}: unknown field; ${meant ? `did you mean ${meant}?` : `must be one of ${SETTABLE.join(', ')}`}`;
    });
}

function missingFields(fields: Readonly<Record<string, unknown>>): string[] {
  return REQUIRED.filter((field) => !Object.hasOwn(fields, field)).map((field) => `${field}: is missing`);
}

/** Checks each field separately, so that one problem does not hide another. */
function wrongKinds(fields: Readonly<Record<string, unknown>>, name: string): string[] {
  const found = SETTABLE.filter((field) => Object.hasOwn(fields, field)).flatMap((field) => {
    const value = fields[field];
    switch (field) {
      case 'name':
        return value === name ? [] : [`name: must be ${name}, the name of the file, or omitted`];
      case 'principal':
        return typeof value === 'string' ? [ruleBroken(() => parsePrincipal(value))] : ['principal: must be a string'];
      case 'resources':
        return listRules(value, field, (text, where) => ruleBroken(() => parsePattern(text, where)));
      case 'actions':
        return listRules(value, field, actionRule);
      case 'max_ttl':
        return Number.isNaN(toSeconds(value))
          ? [`max_ttl: ${DURATION_RULE}`]
          : [ruleBroken(() => parseTtl(toSeconds(value), field))];
      default:
        return [];
    }
  });
  return found.filter((rule) => rule !== null);
}

export const DURATION_RULE = 'must be a whole number of seconds, or a duration such as 15m';

/** A number of seconds, or a duration with its units as text; NaN for anything else. */
function toSeconds(value: unknown): number {
  if (typeof value === 'string') return /[a-z]$/.test(value) ? (parseDuration(value) ?? Number.NaN) : Number.NaN;
  return typeof value === 'number' ? value : Number.NaN;
}

type Rule = (text: string, where: string) => string | null;

function listRules(value: unknown, field: string, rule: Rule): (string | null)[] {
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

/**
 * A policy from a list of the service. WHY not parsed: a newer service may have actions that this command does not
 * know.
 */
export function toPolicy({ name, principal, resources, actions, max_ttl, created_at }: PolicyText): Policy {
  const fields = { name, principal, resources, actions, maxTtlSeconds: max_ttl, createdAt: Date.parse(created_at) };
  return fields as unknown as Policy;
}

export function toReplacement({ principal, resources, actions, maxTtlSeconds }: PolicyDraft): PolicyReplacement {
  return { principal, resources: [...resources], actions: [...actions], max_ttl: maxTtlSeconds };
}
