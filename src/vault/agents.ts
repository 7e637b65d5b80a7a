/** Agents. SOURCE: interface 4.3; decisions, "Callers". */
import type { Agent, PublicKey } from '../core/agent.ts';
import { ApiError } from '../core/errors.ts';
import type { AgentId, AgentName } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import { adminRead } from '../core/operations/admin-read.ts';
import { deregisterAgent as deregister, registerAgent as register } from '../core/operations/agents.ts';
import { withIdempotency } from '../core/operations/idempotent.ts';
import { generateAgentKeys } from '../crypto/ed25519.ts';
import { newAgentId } from '../crypto/random.ts';
import { type Listing, type Page, sliceListing } from './paging.ts';
import type { Vault } from './vault.ts';

export interface Registration {
  readonly name: AgentName;
  readonly description: string;
  /** The agent's own key; null for a pair made here, whose private half is kept in a file. */
  readonly publicKey: PublicKey | null;
}

export async function registerAgent(vault: Vault, context: Context, registration: Registration): Promise<Agent> {
  const { ledger, agentKeys } = vault;
  const { name, description } = registration;
  const id = newAgentId();
  const toOperation = (publicKey: PublicKey) =>
    withIdempotency(context, register(context, { id, name, description, publicKey }));
  if (registration.publicKey !== null) return (await ledger.submit(toOperation(registration.publicKey))).reply;
  const { publicKey, privateKeyPem } = await generateAgentKeys();
  const request = toOperation(publicKey);
  // A caller who will be refused leaves no file, not even for a moment.
  if (context.authentication.kind !== 'admin') return (await ledger.submit(request)).reply;
  await agentKeys.prepare(id, name, privateKeyPem);
  try {
    const { reply } = await ledger.submit(request);
    if (reply.id === id) await agentKeys.publish(id, name);
    else await publishRetriedKey(vault, reply, id);
    return reply;
  } catch (error) {
    if (error instanceof ApiError && error.code !== 'UNAVAILABLE') await agentKeys.discard(id, name);
    else agentKeys.settleLater(id, name);
    throw error;
  }
}

/**
 * The agent was registered by the first of the requests, and has the key that was made for that one: it may still be pending where
 * nobody knew what came of the commit. Not published for an agent that is gone: its name may be another's.
 */
async function publishRetriedKey({ ledger, agentKeys }: Vault, { id, name }: Agent, unused: AgentId): Promise<void> {
  await agentKeys.discard(unused, name);
  if (ledger.memory.control.agentById(id) !== null) await agentKeys.publish(id, name);
}

export async function deregisterAgent(vault: Vault, context: Context, name: AgentName): Promise<void> {
  const { reply: id } = await vault.ledger.submit(deregister(context, name));
  await vault.agentKeys.remove(id, name);
}

export async function readAgent(vault: Vault, context: Context, name: AgentName): Promise<Agent> {
  const operation = adminRead(
    context,
    'agent.read',
    `agent:${name}`,
    ({ control }) => control.agentByName(name) ?? new ApiError('NOT_FOUND', 'The agent is not registered.'),
  );
  return (await vault.ledger.submit(operation)).reply;
}

/** By name. */
export async function listAgents(vault: Vault, context: Context, page: Page | null): Promise<Listing<Agent>> {
  const operation = adminRead(context, 'agent.list', '*', ({ control }) => control.agents());
  return sliceListing((await vault.ledger.submit(operation)).reply, page);
}
