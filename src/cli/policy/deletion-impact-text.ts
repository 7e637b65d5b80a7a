/** What a deletion takes away, for people. */
import type { Policy } from '../../core/policy.ts';
import type { Loss } from './deletion-impact.ts';

export const LOSS_COLUMNS = ['action', 'resource', 'result', 'through', 'max_ttl'];
const MOST_NAMED = 10;

/** `agents`: the registered ones that the policy names. */
export function lossLines({ name, principal }: Policy, losses: readonly Loss[], agents: readonly string[]): string[] {
  const named = agents.slice(0, MOST_NAMED).join(', ');
  const more = agents.length > MOST_NAMED ? `, and ${agents.length - MOST_NAMED} more` : '';
  const who = agents.length === 0 ? 'nobody who is registered now' : `${named}${more}`;
  return [
    `Without ${name}, ${principal} (${who}):`,
    ...losses.map(lossLine),
    'Leases that were given stay until they end; leasehold lease revoke ends them.',
  ];
}

function lossLine({ action, resource, result, through, max_ttl }: Loss): string {
  const others = through.join(', ');
  switch (result) {
    case 'lost':
      return `  loses ${action} on ${resource}`;
    case 'partly lost':
      return `  loses ${action} on ${resource}, but for what ${others} grants of it`;
    case 'kept':
      return `  keeps ${action} on ${resource}, through ${others}, for up to ${max_ttl} s`;
  }
}
