/**
 * Limits of a policy on the uses of each agent for which the policy decides. They are counted in each node's memory.
 * SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Brokered use".
 */
import { invalidRequest } from './errors.ts';

/** Null where the policy does not limit. The order of the properties is that of the stored text. */
export interface PolicyLimits {
  readonly usesPerHour: number | null;
  /** Of the bodies of requests and responses together. */
  readonly bytesPerHour: number | null;
  readonly concurrent: number | null;
}

export interface LimitFields {
  readonly uses_per_hour?: number | undefined;
  readonly bytes_per_hour?: number | undefined;
  readonly concurrent?: number | undefined;
}

export const LIMIT_FIELDS = ['uses_per_hour', 'bytes_per_hour', 'concurrent'] as const satisfies (keyof LimitFields)[];
export const MAX_LIMIT = 1_000_000_000_000;

/** @throws INVALID_REQUEST naming the field and the rule */
export function parseLimits(fields: LimitFields): PolicyLimits {
  if (LIMIT_FIELDS.every((field) => fields[field] === undefined)) {
    throw invalidRequest('limits', `must have one or more of ${LIMIT_FIELDS.join(', ')}`);
  }
  for (const field of LIMIT_FIELDS) {
    const value = fields[field] ?? 1;
    if (!Number.isInteger(value) || value < 1 || value > MAX_LIMIT) {
      throw invalidRequest(`limits.${field}`, `must be a whole number, 1 to ${MAX_LIMIT}`);
    }
  }
  return fromLimitFields(fields);
}

/** Without validation. */
export function fromLimitFields({ uses_per_hour, bytes_per_hour, concurrent }: LimitFields): PolicyLimits {
  return {
    usesPerHour: uses_per_hour ?? null,
    bytesPerHour: bytes_per_hour ?? null,
    concurrent: concurrent ?? null,
  };
}

/** The fields that are given, as the interface names them. */
export function toLimitFields({ usesPerHour, bytesPerHour, concurrent }: PolicyLimits) {
  return {
    ...(usesPerHour === null ? {} : { uses_per_hour: usesPerHour }),
    ...(bytesPerHour === null ? {} : { bytes_per_hour: bytesPerHour }),
    ...(concurrent === null ? {} : { concurrent }),
  };
}
