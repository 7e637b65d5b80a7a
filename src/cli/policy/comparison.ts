/** What a replacement changes of a policy, and in which of its fields it gives more than before. */
import type { PolicyDraft } from '../../core/policy.ts';
import { grantsAllOf, patternCovers, principalCovers } from './subsumption.ts';

type Field = 'principal' | 'resources' | 'actions' | 'max_ttl';

export interface FieldChange {
  readonly field: Field;
  readonly from: string | number | readonly string[];
  readonly to: string | number | readonly string[];
  /** Whether it names agents, paths or actions that it did not, or lends for longer. */
  readonly widens: boolean;
}

/** Empty where nothing that decides differs: the order of a list decides nothing. */
export function compare(before: PolicyDraft, after: PolicyDraft): FieldChange[] {
  const changes: FieldChange[] = [];
  if (before.principal !== after.principal) {
    const widens = !principalCovers(before.principal, after.principal);
    changes.push({ field: 'principal', from: before.principal, to: after.principal, widens });
  }
  if (!isSameSet(before.resources, after.resources)) {
    const widens = !after.resources.every((pattern) => before.resources.some((wider) => patternCovers(wider, pattern)));
    changes.push({ field: 'resources', from: before.resources, to: after.resources, widens });
  }
  if (!isSameSet(before.actions, after.actions)) {
    const widens = !after.actions.every((action) => before.actions.includes(action));
    changes.push({ field: 'actions', from: before.actions, to: after.actions, widens });
  }
  if (before.maxTtlSeconds !== after.maxTtlSeconds) {
    const widens = after.maxTtlSeconds > before.maxTtlSeconds;
    changes.push({ field: 'max_ttl', from: before.maxTtlSeconds, to: after.maxTtlSeconds, widens });
  }
  return changes;
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  const all = new Set(a);
  return all.size === new Set(b).size && b.every((item) => all.has(item));
}

/**
 * As sets of policies see a replacement: `adds` grants at least what was granted, for no longer; `removes` grants at most that, for
 * however long; `swaps` is neither. WHY not alike: of what grants more for longer and what grants less for shorter only one can
 * find its place in the order of a plan, and it is the one that tightens.
 */
export function directionOf(before: PolicyDraft, after: PolicyDraft): 'adds' | 'removes' | 'swaps' {
  if (grantsAllOf(after, before) && after.maxTtlSeconds <= before.maxTtlSeconds) return 'adds';
  if (grantsAllOf(before, after)) return 'removes';
  return 'swaps';
}
