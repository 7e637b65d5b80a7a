/** Agents with their own keys, registered and logged in without HTTP. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { AgentName, PublicKey } from '../../src/core/names.ts';
import type { Context } from '../../src/core/operation.ts';
import { parsePublicKey } from '../../src/crypto/signatures.ts';
import { hashToken } from '../../src/crypto/tokens.ts';
import type { Agent } from '../../src/vault/agents/agent.ts';
import { registerAgent } from '../../src/vault/agents/registration.ts';
import { issueChallenge, login } from '../../src/vault/sessions/login.ts';
import { authenticate, type Vault } from '../../src/vault/vault.ts';
import { admin } from './fixture.ts';

export interface AgentKey {
  readonly publicKey: PublicKey;
  readonly privateKey: KeyObject;
}

export function newAgentKey(): AgentKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = Buffer.from(publicKey.export({ format: 'der', type: 'spki' })).subarray(-32);
  return { publicKey: parsePublicKey(raw.toString('base64')), privateKey };
}

export const toName = (text: string): AgentName => text as AgentName;

export function enrol(vault: Vault, name: string, key: AgentKey): Promise<Agent> {
  return registerAgent(vault, admin(), { name: toName(name), description: '', publicKey: key.publicKey });
}

/** Requests a challenge and signs the bytes that `toSign` returns for the nonce. */
export async function logIn(
  vault: Vault,
  name: string,
  { privateKey }: Pick<AgentKey, 'privateKey'>,
  toSign = (nonce: Buffer): Buffer => nonce,
  remoteAddr = '192.0.2.1',
) {
  const { challengeId, nonce } = await issueChallenge(vault, toName(name));
  const signature = sign(null, toSign(nonce), privateKey);
  const { requestId } = admin();
  return login(vault, { requestId, remoteAddr }, { challengeId, agentName: toName(name), signature });
}

/** The agent in a new request, with the token. */
export async function as(vault: Vault, token: string): Promise<Context> {
  const found = authenticate(vault, token);
  return { ...admin(), auth: typeof found === 'function' ? await found() : found };
}

/** The agent in a new request whose token was not authenticated yet. */
export function unchecked(token: string, name: string): Context {
  return { ...admin(), auth: { kind: 'session', tokenHash: hashToken(token), agentName: toName(name) } };
}
