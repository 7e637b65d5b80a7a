/**
 * Denials: why an operation is not done, as a code with its parameters. Outcomes and drafts of entries carry them; the
 * texts are made when the entry is written and when the error is sent.
 */
import { ApiError, type ApiErrorCode, PreconditionFailed } from '../engine/errors.ts';
import type { AuditEntry, AuditResult, EntryDraft } from '../vault/audit/audit-entry.ts';
import { type DenialClass, type DenialKind, type ParametersOf, textOf, toSentence } from './denial-kinds.ts';
import { DENIALS } from './denial-table.ts';

export type DenialCode = keyof typeof DENIALS;
/** A code with its parameters. */
export type Denial = {
  [C in DenialCode]: { readonly code: C } & ParametersOf<(typeof DENIALS)[C]>;
}[DenialCode];
export type DenialOf<C extends DenialCode> = Extract<Denial, { readonly code: C }>;

export const DENIAL_CODES = Object.keys(DENIALS) as readonly DenialCode[];

/** The kind, whose texts take the parameters of this denial. */
function kindOf(denial: Denial): DenialKind<Denial> {
  return DENIALS[denial.code] as DenialKind<never> as DenialKind<Denial>;
}

export function errorOf(denial: Denial): ApiErrorCode {
  return kindOf(denial).error;
}

export function resultOf(denial: Denial): Exclude<AuditResult, 'allowed'> {
  const error = errorOf(denial);
  return error === 'NOT_FOUND' ? 'not_found' : error === 'INTEGRITY_FAILURE' ? 'error' : 'denied';
}

/** The fields of an entry that its result determines. */
export function resultFields({
  result,
  reason,
}: Pick<EntryDraft, 'result' | 'reason'>): Pick<AuditEntry, 'result' | 'code' | 'reason'> {
  if (typeof result === 'string') return { result, code: null, reason };
  return { result: resultOf(result), code: result.code, reason: reasonOf(result) };
}

export function reasonOf(denial: Denial): string | null {
  const { reason } = kindOf(denial);
  return reason === null ? null : textOf(reason, denial);
}

/** The text for the caller, as a clause. */
export function toldOf(denial: Denial): string {
  return textOf(kindOf(denial).told, denial);
}

export function messageOf(denial: Denial): string {
  const { form } = kindOf(denial);
  const told = toldOf(denial);
  if (form === 'verbatim') return told;
  return form === 'sentence' ? toSentence(told) : `Access denied: ${told}.`;
}

export function toApiError(denial: Denial, retryAfterSeconds: number | null = null): ApiError {
  if (denial.code === 'precondition_failed') return new PreconditionFailed(messageOf(denial), denial.current);
  const approvalId = 'approval' in denial ? denial.approval.id : null;
  return new ApiError(errorOf(denial), messageOf(denial), retryAfterSeconds, approvalId);
}

const CLASSES: ReadonlyMap<string | null, DenialClass> = new Map(
  DENIAL_CODES.map((code) => [code, (DENIALS[code] as DenialKind<never>).class ?? 'other']),
);

export function denialClassOf(code: string | null): DenialClass {
  return CLASSES.get(code) ?? 'other';
}
