/** The keys of a vault that a service has created, whether it runs or not. */
import type { VaultKeys } from '../../src/crypto/vault-keys.ts';
import { type Configuration, readConfiguration } from '../../src/server/configuration.ts';
import { readVaultKeys } from '../../src/server/offline-keys.ts';
import { databaseUrlOf } from './stores.ts';

export async function vaultKeysOf(dataDir: string): Promise<VaultKeys> {
  const url = await databaseUrlOf(dataDir);
  const environment = url === null ? {} : { LEASEHOLD_DATABASE_URL: url };
  return readVaultKeys(readConfiguration(['--data-dir', dataDir], environment) as Configuration);
}
