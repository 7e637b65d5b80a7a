/** Compares two policies: the fields that a replacement changes, and whether each grants more than before. */

import { covers, entriesOf, isInRequests, isRecord } from '../../engine/field.ts';
import { Policy, type PolicyDraft } from './policy.ts';

export interface FieldChange {
  /** The name of the field in requests. */
  readonly field: string;
  /** The value is an empty list where the field is not given. */
  readonly from: Shown;
  readonly to: Shown;
  /** Whether the policy grants more after the change. */
  readonly widens: boolean;
}

type Shown = string | number | readonly string[];

const COMPARED = entriesOf(Policy.fields).filter(
  ({ property, field }) => property !== Policy.key && isInRequests(field),
);

/** Empty when the policies are equivalent; the order of a list has no effect. */
export function compare(before: PolicyDraft, after: PolicyDraft): FieldChange[] {
  const [from, to] = [shownFields(before), shownFields(after)];
  return COMPARED.map((compared) => ({
    field: compared.wire,
    from: from[compared.wire] ?? [],
    to: to[compared.wire] ?? [],
    widens: !fieldCovers(compared, before, after),
  })).filter((change) => setOf(change.from).symmetricDifference(setOf(change.to)).size > 0);
}

const setOf = (shown: Shown): Set<unknown> => new Set<unknown>([shown].flat());

function fieldCovers({ property, field }: (typeof COMPARED)[number], outer: PolicyDraft, inner: PolicyDraft): boolean {
  const name = property as keyof PolicyDraft;
  return covers(field, outer[name], inner[name]);
}

/** The given fields except the name, keyed by their names in requests. A record is a list of `field value`. */
export function shownFields(draft: PolicyDraft): Readonly<Record<string, Shown>> {
  const given = Policy.toInput(draft) as Readonly<Record<string, unknown>>;
  const shown = COMPARED.flatMap(({ wire }): [string, Shown][] => {
    const value = given[wire];
    if (value === undefined) return [];
    return [
      [wire, isRecord(value) ? Object.entries(value).map(([name, each]) => `${name} ${each}`) : (value as Shown)],
    ];
  });
  return Object.fromEntries(shown);
}

/**
 * `adds`: grants at least what was granted, for shorter or equal leases. `removes`: grants at most what was granted,
 * for any time. `swaps`: neither. WHY not symmetric: the most restrictive policy decides, so a shorter lease tightens,
 * and a plan needs an unambiguous order.
 */
export function directionOf(before: PolicyDraft, after: PolicyDraft): 'adds' | 'removes' | 'swaps' {
  if (grantsAllOf(after, before) && after.maxTtlSeconds <= before.maxTtlSeconds) return 'adds';
  if (grantsAllOf(before, after)) return 'removes';
  return 'swaps';
}

/** Whether `outer` grants all that `inner` grants, however long the leases. */
export function grantsAllOf(outer: PolicyDraft, inner: PolicyDraft): boolean {
  return COMPARED.every((compared) => compared.property === 'maxTtlSeconds' || fieldCovers(compared, outer, inner));
}
