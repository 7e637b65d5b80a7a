/**
 * Decides whether a brokered request that a policy grants may be made: by the targets of the credential, by the
 * catalogue's list of endpoints that return other secrets, and by the value, which must be long enough to be redacted.
 * Pure. SOURCE: docs/decisions.md, "Brokered use".
 */

import type { DenialOf } from '../../core/denials.ts';
import { findService } from '../catalogue/catalogue.ts';
import { returnsSecret } from '../catalogue/secret-endpoints.ts';
import type { Secret } from '../credentials/credential.ts';
import {
  findTarget,
  nearestTarget,
  type Placement,
  type Target,
  type TargetBinding,
  type UseRequest,
} from './target.ts';

/** It may name the nearest target, for callers who may read the targets. */
export type TargetDenial = DenialOf<'no_target' | 'returns_secret'>;

type TargetDecision =
  | { readonly allowed: true; readonly target: Target }
  | { readonly allowed: false; readonly denial: TargetDenial };

export function decideTarget(
  { allowedTargets, service }: Pick<TargetBinding, 'allowedTargets' | 'service'>,
  request: UseRequest,
): TargetDecision {
  const target = findTarget(allowedTargets, request);
  if (target === null) {
    const nearest = nearestTarget(allowedTargets, request);
    const lacks = nearest?.lacks ?? 'host';
    return { allowed: false, denial: { code: 'no_target', lacks, nearest: nearest?.target ?? null } };
  }
  const definition = service === null ? null : findService(service);
  if (definition === null) return { allowed: true, target };
  const isOwnHost = definition.targets.some(({ origin }) => origin === target.origin);
  if (!returnsSecret(definition, request, isOwnHost)) return { allowed: true, target };
  return { allowed: false, denial: { code: 'returns_secret', service: definition.name } };
}

/** The denial for callers who may not read the targets, and so must not learn of other hosts. */
export function withoutNearest(denial: TargetDenial): TargetDenial {
  return denial.code === 'no_target' ? { ...denial, nearest: null } : denial;
}

/** Shorter texts are not redacted, because they would redact much of any response. */
const MIN_REDACTED_BYTES = 4;

/** Whether a response that contains the secret part of the value can be redacted. */
export function canRedact(value: Secret, placement: Placement): boolean {
  const text = value.reveal();
  const isPair = placement.kind === 'basic' && placement.username === null;
  const secret = isPair ? text.slice(text.indexOf(':') + 1) : text;
  return new TextEncoder().encode(secret.replaceAll(/[\r\n]/g, '')).length >= MIN_REDACTED_BYTES;
}
