/** Refusing an agent what is the administrator's, where its request was too malformed for the operation to do it. */

import type { EventType } from '../core/audit.ts';
import type { Context } from '../core/operation.ts';
import { adminRead } from '../core/operations/adminread.ts';
import type { Vault } from './vault.ts';

/** Resolves for the administrator. @throws ACCESS_DENIED for an agent, recorded */
export async function refuseAgent(vault: Vault, context: Context, event: EventType): Promise<void> {
  await vault.ledger.submit(adminRead(context, event, '*', () => null));
}
