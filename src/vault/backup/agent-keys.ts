/**
 * Encrypts the private keys of agents for a backup. WHY with the vault's data key, within an encrypted file: the
 * holder of a backup without the root key must not be able to log in as an agent.
 */
import type { EncryptedAgentKey } from '../../backup/records.ts';
import type { AgentId, CredentialId, CredentialType, PublicKey } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import { decodeStrictBase64 } from '../../crypto/primitives.ts';
import { decryptValue, encryptValue } from '../../crypto/value-encryption.ts';
import type { VaultKeys } from '../../crypto/vault-keys.ts';
import { type AssociatedData, Secret } from '../credentials/credential.ts';
import type { AgentKey } from '../ports.ts';

/** A key that may belong to an agent in the snapshot: the process that reads the snapshot decides. */
export interface CandidateKey extends EncryptedAgentKey {
  readonly publicKey: PublicKey;
  /** Whether the file was there before the snapshot and after it. */
  readonly isStable: boolean;
}

/** No credential has this associated data: its versions begin at 1, and the id is an agent's. */
function associatedData(id: AgentId): AssociatedData {
  return {
    credentialId: id as string as CredentialId,
    path: `agents/${id}` as CredentialPath,
    type: 'agent-private-key' as CredentialType,
    version: 0,
  };
}

/**
 * Encrypts the keys that were read before the snapshot and after it. WHY both: a rotation may replace the file of a key
 * that the snapshot has, on either side of it.
 */
export function encryptAgentKeys(
  keys: VaultKeys,
  before: readonly AgentKey[],
  after: readonly AgentKey[],
): CandidateKey[] {
  const nameOf = ({ id, publicKey }: AgentKey): string => `${id} ${publicKey}`;
  const early = new Set(before.map(nameOf));
  const late = new Set(after.map(nameOf));
  const distinct = new Map([...before, ...after].map((key) => [nameOf(key), key]));
  return [...distinct].map(([name, { id, publicKey, privateKeyPem }]) => {
    const sealed = Buffer.from(encryptValue(keys, new Secret(privateKeyPem), associatedData(id))).toString('base64');
    return { id, publicKey, sealed, isStable: early.has(name) && late.has(name) };
  });
}

/** Null if it does not authenticate. */
export function decryptAgentKey(keys: VaultKeys, id: AgentId, encrypted: string): Secret | null {
  const bytes = decodeStrictBase64(encrypted);
  return bytes === null ? null : decryptValue(keys, bytes, associatedData(id));
}
