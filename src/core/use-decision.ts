/**
 * Whether a use that a policy grants may be made: by the targets of the credential, by the catalogue's list of
 * endpoints that return other secrets, and by the value, which must be long enough to be redacted. Pure.
 * SOURCE: docs/decisions.md, "Brokered use".
 */
import { findService } from './catalogue/catalogue.ts';
import { mintsSecret } from './catalogue/minting.ts';
import type { Secret } from './credential.ts';
import {
  findTarget,
  nearestTarget,
  originOf,
  type Placement,
  type Target,
  type Usage,
  type UseRequest,
} from './target.ts';

export type TargetDecision =
  | { readonly allowed: true; readonly target: Target }
  /**
   * `reason` names what the request lacks, and no other host; `explanation` names the nearest target, for callers who
   * may read the targets.
   */
  | { readonly allowed: false; readonly reason: string; readonly explanation: string };

export function decideTarget(
  { targets, service }: Pick<Usage, 'targets' | 'service'>,
  request: UseRequest,
): TargetDecision {
  const target = findTarget(targets, request);
  if (target === null) return noTarget(targets, request);
  const definition = service === null ? null : findService(service);
  if (definition === null) return { allowed: true, target };
  const isOwnHost = definition.targets.some(({ origin }) => origin === originOf(target));
  if (!mintsSecret(definition, request, isOwnHost)) return { allowed: true, target };
  const reason = `the endpoint may return another secret of ${definition.name}, which would outlive the lease`;
  return { allowed: false, reason, explanation: reason };
}

function noTarget(targets: readonly Target[], request: UseRequest): TargetDecision {
  const nearest = nearestTarget(targets, request);
  const reason = `no target of the credential has this ${nearest?.lacks ?? 'host'}`;
  if (nearest === null) return { allowed: false, reason, explanation: reason };
  const { methods, paths } = nearest.target;
  const nearestText = `${originOf(nearest.target)} with ${methods.join(', ')} on ${paths.join(', ')}`;
  return { allowed: false, reason, explanation: `${reason}; the nearest is ${nearestText}` };
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
