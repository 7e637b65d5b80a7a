/** Rejecting an agent at a route that is the administrator's. */

import type { EventType } from '../core/audit.ts';
import { ApiError } from '../core/errors.ts';
import { parseAgentName, parsePolicyName } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import { adminRead } from '../core/operations/admin-read.ts';
import type { Vault } from './vault.ts';

/** `name` is the agent or policy in the address, not yet parsed. Resolves for the administrator. @throws ACCESS_DENIED, recorded */
export async function refuseAgent(vault: Vault, context: Context, event: EventType, name?: string): Promise<void> {
  await vault.ledger.submit(adminRead(context, event, resourceOf(event, name), () => null));
}

/** As the operation itself names it; `*` where the address names nothing, or nothing that could exist. */
function resourceOf(event: EventType, name: string | undefined): string {
  const [kind] = event.split('.');
  if (name === undefined) return '*';
  try {
    return `${kind}:${kind === 'agent' ? parseAgentName(name) : parsePolicyName(name)}`;
  } catch (error) {
    if (error instanceof ApiError) return '*';
    throw error;
  }
}
