/** Sorts the denials of the log into a closed set of classes, for metrics: a reason itself may name a path. */
import type { AuditEntry } from './audit.ts';
import { DENIAL_REASONS } from './decision.ts';

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

const CLASS_OF_REASON: ReadonlyMap<string | null, DenialClass> = new Map<string | null, DenialClass>([
  [DENIAL_REASONS.no_policy, 'no_policy'],
  [DENIAL_REASONS.no_action, 'no_action'],
  [DENIAL_REASONS.no_path, 'no_path'],
  ['only the administrator may do this', 'admin_only'],
]);

/** The class of an entry whose result is `denied`. */
export function denialClassOf({ event_type, reason }: Pick<AuditEntry, 'event_type' | 'reason'>): DenialClass {
  if (event_type === 'auth.verify') return 'login';
  if (event_type === 'credential.misuse') return 'misuse';
  const known = CLASS_OF_REASON.get(reason);
  if (known !== undefined) return known;
  return reason?.includes("over the policy's limit of ") === true ? 'limit' : 'other';
}
