/**
 * The kinds of which the table of denials is made: the error code, the text of the audit log, and the text of the
 * error.
 */
import type { ApiErrorCode } from '../engine/errors.ts';

/** The classes of denials in metrics. */
export const DENIAL_CLASSES = [
  'no_policy',
  'no_action',
  'no_path',
  'admin_only',
  'login',
  'misuse',
  'limit',
  'other',
] as const;
export type DenialClass = (typeof DENIAL_CLASSES)[number];

export type Text<P> = string | ((parameters: P) => string);

/** A kind of denial with the parameters `P`. */
export interface DenialKind<P> {
  readonly error: ApiErrorCode;
  /** The `reason` of the entry: a clause, or null if the code says all of it. */
  readonly reason: Text<P> | null;
  /** The text for the caller, a clause without a full stop; verbatim it is the message. */
  readonly told: Text<P>;
  readonly form: 'access denied' | 'sentence' | 'verbatim';
  readonly class?: DenialClass;
}

export type ParametersOf<K> = K extends DenialKind<infer P> ? P : never;

/** The message begins with `Access denied: `. The caller is told the reason, unless `told` says more. */
export function forbidden<P = unknown>(reason: Text<P>, told: Text<P> = reason): DenialKind<P> {
  return { error: 'ACCESS_DENIED', reason, told, form: 'access denied' };
}

/** The message is a sentence. */
export function rejection<P = unknown>(
  error: ApiErrorCode,
  reason: Text<P> | null,
  told: Text<P> = reason ?? '',
): DenialKind<P> {
  return { error, reason, told, form: 'sentence' };
}

/** The message names a field of the request, and the rule that is broken. */
export function invalid<P = unknown>(reason: Text<P> | null, told: Text<P>): DenialKind<P> {
  return { error: 'INVALID_REQUEST', reason, told, form: 'verbatim' };
}

/** The reason is null, because the resource of the entry says what is missing. */
export function missing(told: string): DenialKind<unknown> {
  return rejection('NOT_FOUND', null, told);
}

export function textOf<P>(text: Text<P>, parameters: P): string {
  return typeof text === 'string' ? text : text(parameters);
}

export function toSentence(clause: string): string {
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`;
}
