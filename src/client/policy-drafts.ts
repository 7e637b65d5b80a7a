/** Policies of the interface as the core has them, and back. */
import { fromLimitFields, type Policy, type PolicyDraft, toLimitFields } from '../core/policy.ts';
import type { PolicyReplacement, Policy as PolicyText } from './types.ts';

/**
 * A policy from a list of the server. WHY not parsed: a newer server may have actions that this code does not
 * know.
 */
export function toPolicy({ max_ttl: maxTtlSeconds, created_at, limits: given, ...policy }: PolicyText): Policy {
  const limits = given === undefined ? null : fromLimitFields(given);
  const fields = {
    ...policy,
    maxTtlSeconds,
    limits,
    approval: policy['approval'] ?? null,
    createdAt: Date.parse(created_at),
  };
  return fields as unknown as Policy;
}

export function toReplacement({
  principal,
  resources,
  actions,
  maxTtlSeconds,
  limits,
  approval,
}: PolicyDraft): PolicyReplacement {
  const fields = { principal, resources: [...resources], actions: [...actions], max_ttl: maxTtlSeconds };
  return {
    ...fields,
    ...(limits === null ? {} : { limits: toLimitFields(limits) }),
    ...(approval === null ? {} : { approval }),
  };
}
