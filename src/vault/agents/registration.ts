/**
 * Registers and deregisters agents, with the files of generated keys. SOURCE: docs/api.md, "Agents"; docs/decisions.md,
 * "Agents and sessions".
 */

import type { AgentId, AgentName, PublicKey } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import { newId } from '../../crypto/primitives.ts';
import { generateAgentKeys, parsePublicKey } from '../../crypto/signatures.ts';
import { ApiError } from '../../engine/errors.ts';
import type { Vault } from '../vault.ts';
import type { Agent, Registration, Rotation } from './agent.ts';
import {
  deregisterAgent as deregister,
  findAgentToRotate,
  registerAgent as register,
  rotateAgentKey,
} from './agent-operations.ts';

export async function registerAgent(vault: Vault, context: Context, registration: Registration): Promise<Agent> {
  const { ledger, agentKeys } = vault;
  const { name, description } = registration;
  const id = newId() as AgentId;
  const toOperation = (publicKey: PublicKey) => register(context, { id, name, description, publicKey });
  if (registration.publicKey !== null) return ledger.submit(toOperation(parsePublicKey(registration.publicKey)));
  const { publicKey, privateKeyPem } = await generateAgentKeys();
  const operation = toOperation(publicKey);
  // A caller that will be rejected leaves no file, even temporarily.
  const { kind } = context.auth;
  if (kind !== 'admin' && kind !== 'operator') return ledger.submit(operation);
  return withStagedKey(vault, { id, name, privateKeyPem }, async () => {
    const agent = await ledger.submit(operation);
    if (agent.id === id) await agentKeys.commit(id, name);
    else await commitRetriedKey(vault, agent, id);
    return agent;
  });
}

/** Stages the file of the key for the work, which commits it. */
async function withStagedKey(
  { agentKeys }: Vault,
  { id, name, privateKeyPem }: { id: AgentId; name: AgentName; privateKeyPem: string },
  work: () => Promise<Agent>,
): Promise<Agent> {
  await agentKeys.stage(id, name, privateKeyPem);
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.code !== 'UNAVAILABLE') await agentKeys.abort(id, name);
    else agentKeys.recoverLater(id, name);
    throw error;
  }
}

/** The new key is the given one, or one that the server generates, which replaces the file of the previous one. */
export async function rotateAgent(
  vault: Vault,
  context: Context,
  name: AgentName,
  { publicKey: given, graceSeconds }: Rotation,
): Promise<Agent> {
  const { ledger, agentKeys } = vault;
  const rotate = (publicKey: PublicKey) => ledger.submit(rotateAgentKey(context, name, { publicKey, graceSeconds }));
  if (given !== null) return rotate(parsePublicKey(given));
  // ORDER: a caller that will be rejected leaves no file, and an unknown agent has no directory.
  const { id } = await ledger.read(findAgentToRotate(context, name));
  const { publicKey, privateKeyPem } = await generateAgentKeys();
  await agentKeys.abort(id, name);
  return withStagedKey(vault, { id, name, privateKeyPem }, async () => {
    const agent = await rotate(publicKey);
    await agentKeys.commit(id, name);
    return agent;
  });
}

/**
 * For a repeated request: the first request registered the agent with the key generated for it. That key is still
 * staged if the outcome of its commit was unknown. It is not committed for an agent deregistered since, whose name
 * another agent may have.
 */
async function commitRetriedKey({ ledger, agentKeys }: Vault, { id, name }: Agent, unused: AgentId): Promise<void> {
  await agentKeys.abort(unused, name);
  if (ledger.memory.control.agentById(id) !== null) await agentKeys.commit(id, name);
}

export async function deregisterAgent(vault: Vault, context: Context, name: AgentName): Promise<void> {
  const id = await vault.ledger.submit(deregister(context, name));
  await vault.agentKeys.remove(id, name);
}
