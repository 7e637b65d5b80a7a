/** The kinds of unattended slots, from the server's configuration. */
import { ApiError, invalidRequest, ruleBroken } from '../../engine/errors.ts';
import { parseField } from '../../engine/field.ts';
import { KeySlot, type SlotKind, type SlotParameters, type VaultId } from '../../vault/keys/keyset.ts';
import type { NewSlotSecret, SlotSecretResult, SlotSecrets } from '../../vault/ports.ts';
import type { Configuration } from '../configuration.ts';
import type { RootKeyFile } from '../open-keys.ts';
import { awsKmsSlots } from './aws-kms.ts';
import { fileSlots, SlotKindError, type SlotKindPort, systemdSlots } from './slot-kind.ts';
import { transitSlots } from './transit.ts';

const SECRET_BYTES = 32;

type SlotConfiguration = Pick<Configuration, 'transit' | 'awsKms' | 'credentialsDirectory' | 'dataDir' | 'rootKeyFile'>;

export function slotSecretsOf(configuration: SlotConfiguration, rootKeyFile: RootKeyFile): SlotSecrets {
  const { transit, awsKms, credentialsDirectory } = configuration;
  const kinds: Readonly<Partial<Record<SlotKind, SlotKindPort>>> = {
    file: fileSlots(configuration, rootKeyFile),
    systemd: systemdSlots(credentialsDirectory),
    transit: transitSlots(transit),
    'aws-kms': awsKmsSlots(awsKms),
  };
  return {
    async create(kind, key, vaultId) {
      const port = kinds[kind];
      if (port === undefined) throw invalidRequest('kind', 'the server cannot make a slot of this kind');
      const created = await create(port, key, vaultId);
      checkParameters(created);
      await assertOpens(port, created, vaultId);
      return created;
    },
    async open({ kind, parameters }, vaultId) {
      const port = kinds[kind];
      return port === undefined ? { problem: 'slots of this kind are manual' } : open(port, parameters, vaultId);
    },
  };
}

async function create(port: SlotKindPort, key: string | null, vaultId: VaultId): Promise<NewSlotSecret> {
  try {
    return await port.create(key, vaultId);
  } catch (error) {
    throw error instanceof SlotKindError ? new ApiError('INVALID_REQUEST', error.message) : error;
  }
}

/** Checks the parameters, which may contain a service's ciphertext, by the rule of the row. @throws INVALID_REQUEST */
function checkParameters({ parameters }: NewSlotSecret): void {
  const broken = ruleBroken(() => parseField(KeySlot.fields.parameters, parameters, 'parameters'));
  if (broken === null) return;
  throw new ApiError(
    'INVALID_REQUEST',
    `The slot was not added, because the key service returned a value that cannot be stored. ${broken}.`,
  );
}

/** Never rejects: another slot may open the vault, even if this one fails. */
async function open(port: SlotKindPort, parameters: SlotParameters, vaultId: VaultId): Promise<SlotSecretResult> {
  try {
    const secret = await port.open(parameters, vaultId);
    return secret.length === SECRET_BYTES ? { secret } : { problem: `the secret does not have ${SECRET_BYTES} bytes` };
  } catch (error) {
    if (error instanceof SlotKindError) return { problem: error.message };
    // WHY not the message: it may repeat the sent data.
    return { problem: `it failed unexpectedly (${error instanceof Error ? error.name : 'unknown error'})` };
  }
}

/**
 * Checks that the slot opens. WHY: a token may be allowed to encrypt but not to decrypt. Such a slot would be useless
 * after a restart. @throws INVALID_REQUEST
 */
async function assertOpens(port: SlotKindPort, created: NewSlotSecret, vaultId: VaultId): Promise<void> {
  const found = await open(port, created.parameters, vaultId);
  const problem = 'problem' in found ? found.problem : 'the secret is another one';
  if ('secret' in found && Buffer.from(found.secret).equals(created.secret)) return;
  throw new ApiError(
    'INVALID_REQUEST',
    'ciphertext' in created.parameters
      ? `The slot was not added. Its secret was encrypted but cannot be decrypted: ${problem}. Give the server the permission to decrypt with this key.`
      : `The slot was not added. Its secret cannot be read again: ${problem}.`,
  );
}
