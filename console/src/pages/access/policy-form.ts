/**
 * The fields of the editor as text, and what the parser of the server says about them. Each field is checked
 * separately, so that one problem does not hide another; the whole policy is parsed last.
 */

import { type ApprovalFields, parseApprovalRule } from '../../../../src/core/approval-rule.ts';
import { ruleBroken } from '../../../../src/core/errors.ts';
import { parsePolicyName } from '../../../../src/core/names.ts';
import { parsePattern } from '../../../../src/core/pattern.ts';
import {
  ACTIONS,
  LIMIT_FIELDS,
  type LimitFields,
  type PolicyDraft,
  parseLimits,
  parsePolicy,
  parsePrincipal,
  parseTtl,
  toLimitFields,
} from '../../../../src/core/policy.ts';

export interface FormFields {
  readonly name: string;
  readonly principal: string;
  /** One on each line. */
  readonly resources: string;
  readonly actions: readonly string[];
  readonly max_ttl: string;
  readonly uses_per_hour: string;
  readonly bytes_per_hour: string;
  readonly concurrent: string;
  /** `use` or `retrieve`; empty for no approval. */
  readonly approval_for: string;
  readonly each: string;
  readonly scope: string;
  readonly quorum: string;
  readonly timeout: string;
}

/** A field that a problem belongs to; `policy` for the policy as a whole. */
export type FormPart = 'name' | 'principal' | 'resources' | 'actions' | 'max_ttl' | 'limits' | 'approval' | 'policy';

export interface Checked {
  /** Null while a problem exists. */
  readonly draft: PolicyDraft | null;
  readonly problems: Partial<Readonly<Record<FormPart, string>>>;
}

export const NEW_POLICY: FormFields = {
  name: '',
  principal: 'agent:',
  resources: '',
  actions: ['retrieve'],
  max_ttl: '300',
  uses_per_hour: '',
  bytes_per_hour: '',
  concurrent: '',
  approval_for: '',
  each: 'request',
  scope: 'once',
  quorum: '1',
  timeout: '300',
};

export function toFields({ limits, approval, maxTtlSeconds, ...draft }: PolicyDraft): FormFields {
  const given: LimitFields = limits === null ? {} : toLimitFields(limits);
  return {
    ...NEW_POLICY,
    name: draft.name,
    principal: draft.principal,
    resources: draft.resources.join('\n'),
    actions: draft.actions,
    max_ttl: String(maxTtlSeconds),
    ...Object.fromEntries(LIMIT_FIELDS.map((field) => [field, String(given[field] ?? '')])),
    ...(approval === null
      ? {}
      : {
          approval_for: approval.for,
          each: approval.each,
          scope: approval.scope,
          quorum: String(approval.quorum),
          timeout: String(approval.timeout),
        }),
  };
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** NaN for anything but digits, which the parser rejects by the name of the field. */
const toNumber = (text: string): number => (/^\d+$/.test(text.trim()) ? Number(text) : Number.NaN);

function limitsOf(fields: FormFields): LimitFields | undefined {
  const given = LIMIT_FIELDS.filter((field) => fields[field].trim() !== '');
  return given.length === 0 ? undefined : Object.fromEntries(given.map((field) => [field, toNumber(fields[field])]));
}

function approvalOf({ approval_for, each, scope, quorum, timeout }: FormFields): ApprovalFields | undefined {
  if (approval_for === '') return undefined;
  const fields = { for: approval_for, scope: scope.trim(), quorum: toNumber(quorum), timeout: toNumber(timeout) };
  return { ...fields, each };
}

export function check(fields: FormFields): Checked {
  const resources = linesOf(fields.resources);
  const [limits, approval] = [limitsOf(fields), approvalOf(fields)];
  const found: Readonly<Record<Exclude<FormPart, 'policy'>, string | null | undefined>> = {
    name: ruleBroken(() => parsePolicyName(fields.name)),
    principal: ruleBroken(() => parsePrincipal(fields.principal.trim())),
    resources:
      resources.length === 0
        ? 'resources: must have one or more patterns, one on each line'
        : resources
            .map((text, at) => ruleBroken(() => parsePattern(text, `line ${at + 1}`)))
            .find((rule) => rule !== null),
    actions: fields.actions.length === 0 ? 'actions: choose one or more' : null,
    max_ttl: ruleBroken(() => parseTtl(toNumber(fields.max_ttl), 'max_ttl')),
    limits: limits === undefined ? null : ruleBroken(() => parseLimits(limits)),
    approval: approval === undefined ? null : ruleBroken(() => parseApprovalRule(approval, ACTIONS)),
  };
  const problems = Object.fromEntries(Object.entries(found).filter(([, rule]) => rule != null));
  if (Object.keys(problems).length > 0) return { draft: null, problems };
  let draft: PolicyDraft | null = null;
  const rule = ruleBroken(() => {
    draft = parsePolicy({
      name: fields.name,
      principal: fields.principal.trim(),
      resources,
      actions: ACTIONS.filter((action) => fields.actions.includes(action)),
      maxTtlSeconds: toNumber(fields.max_ttl),
      limits,
      approval,
    });
  });
  return { draft, problems: rule === null ? {} : { policy: rule } };
}
