/** The impact of deleting a policy: lost grants, and grants that other policies keep, possibly with longer leases. */

import type { Agent } from '../../client/types.ts';
import type { AgentName } from '../../core/names.ts';
import { type Policy, principalMatches } from '../../core/policy.ts';
import { type Grant, grantsAllOf, grantsOf, overlaps } from './comparison.ts';

export interface Loss {
  readonly action: string;
  readonly resource: string;
  /** `partly lost`: other policies grant a part of it. */
  readonly result: 'lost' | 'partly lost' | 'kept';
  /** The policies that grant it, or a part of it. */
  readonly through: readonly string[];
  /** The longest lease after the deletion, in seconds; null when all or a part of it is lost. */
  readonly max_ttl: number | null;
}

/** Each action of the policy on each of its patterns. */
export function lossesOf(policy: Policy, others: readonly Policy[]): Loss[] {
  return grantsOf(policy).map((grant) => lossOf(grant, policy, others));
}

function lossOf(grant: Grant, policy: Policy, others: readonly Policy[]): Loss {
  const { action, pattern } = grant;
  const alone = { ...policy, actions: [action], resources: [pattern] };
  const covering = others.filter((other) => grantsAllOf(other, alone));
  const overlapping = others.filter((other) => grantsOf(other).some((theirs) => overlaps(theirs, grant)));
  if (covering.length === 0) {
    const result = overlapping.length === 0 ? 'lost' : 'partly lost';
    return { action, resource: pattern, result, through: overlapping.map(({ name }) => name), max_ttl: null };
  }
  const max_ttl = Math.min(...covering.map(({ maxTtlSeconds }) => maxTtlSeconds));
  return { action, resource: pattern, result: 'kept', through: covering.map(({ name }) => name), max_ttl };
}

/** The registered agents that the policy names. */
export function namedAgents({ principal }: Policy, agents: readonly Agent[]): string[] {
  return agents.map(({ name }) => name).filter((name) => principalMatches(principal, name as AgentName));
}

export const LOSS_COLUMNS = ['action', 'resource', 'result', 'through', 'max_ttl'];
const MAX_NAMED = 10;

/** `agents`: the registered ones that the policy names. */
export function lossLines({ name, principal }: Policy, losses: readonly Loss[], agents: readonly string[]): string[] {
  const named = agents.slice(0, MAX_NAMED).join(', ');
  const more = agents.length > MAX_NAMED ? `, and ${agents.length - MAX_NAMED} more` : '';
  const who = agents.length === 0 ? 'no registered agent' : `${named}${more}`;
  return [
    `Without ${name}, ${principal} (${who}):`,
    ...losses.map(lossLine),
    'Existing leases stay valid until they expire; leasehold lease revoke ends them.',
  ];
}

function lossLine({ action, resource, result, through, max_ttl }: Loss): string {
  const others = through.join(', ');
  switch (result) {
    case 'lost':
      return `  loses ${action} on ${resource}`;
    case 'partly lost':
      return `  loses ${action} on ${resource}, except the part that ${others} grants`;
    case 'kept':
      return `  keeps ${action} on ${resource}, through ${others}, for up to ${max_ttl} s`;
  }
}
