/**
 * The port of an unattended kind of slot, and the kinds whose secret is on this machine. These are the root key file,
 * whose 32 bytes are the secret, and a systemd credential, which `LoadCredentialEncrypted=` of a unit decrypts into a
 * directory that only the server can read. SOURCE: systemd.exec(5), "Credentials".
 */
import { statSync } from 'node:fs';
import { parseRootKey } from '../../crypto/vault-keys.ts';
import { errnoSuffix, StartupError } from '../../platform/errors.ts';
import { childPath } from '../../platform/paths.ts';
import { readSecretBytes } from '../../platform/private-files.ts';
import type { SlotParameters, VaultId } from '../../vault/keys/keyset.ts';
import type { NewSlotSecret } from '../../vault/ports.ts';
import type { Configuration } from '../configuration.ts';
import { type RootKeyFile, readRootKey } from '../open-keys.ts';

export interface SlotKindPort {
  /** `key` is the name that the administrator gave. @throws SlotKindError */
  create(key: string | null, vaultId: VaultId): Promise<NewSlotSecret>;
  /** @throws SlotKindError */
  open(parameters: SlotParameters, vaultId: VaultId): Promise<Uint8Array>;
}

/**
 * Why a kind has no secret. The message is one sentence for the operator, without its full stop and without the sent
 * data.
 */
export class SlotKindError extends Error {}

/** The text of a file with one secret, which `what` describes. @throws SlotKindError */
export function readSlotFile(what: string, file: string): string {
  try {
    return readSecretBytes(file).toString('latin1');
  } catch (error) {
    const cause = error instanceof StartupError ? error.cause : error;
    const reason = cause === undefined ? 'is too long for a secret' : `cannot be read${errnoSuffix(cause)}`;
    throw new SlotKindError(`${what} ${reason}: ${file}`);
  }
}

/** The name of a key or a credential, from a request or from the database. @throws SlotKindError with the rule */
export function checkedKey(key: unknown, pattern: RegExp, rule: string): string {
  if (typeof key === 'string' && pattern.test(key)) return key;
  throw new SlotKindError(`key: ${rule}`);
}

const CREDENTIAL = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const CREDENTIAL_RULE = 'must name the credential: 1 to 64 of A-Z a-z 0-9 . _ -';

/** The slot of the root key file. `found` is the file as it was read at startup. */
export function fileSlots(
  configuration: Pick<Configuration, 'dataDir' | 'rootKeyFile'>,
  found: RootKeyFile,
): SlotKindPort {
  // A pipe can be read only once. A regular file is read again, because it may have been lost or replaced since
  // startup.
  const wasPipe = isPipe(found.path);
  const read = (mayCreate: boolean): Uint8Array => {
    const { path, secret, problem } = wasPipe ? found : readAgain(mayCreate);
    if (secret === null) throw new SlotKindError(withoutFullStop(problem ?? `the root key is missing: ${path}`));
    return secret;
  };
  const readAgain = (mayCreate: boolean): RootKeyFile => {
    try {
      return readRootKey(configuration, mayCreate, () => undefined);
    } catch (error) {
      if (error instanceof StartupError) throw new SlotKindError(withoutFullStop(error.message));
      const verb = mayCreate ? 'read or written' : 'read';
      throw new SlotKindError(`the root key file cannot be ${verb}${errnoSuffix(error)}: ${found.path}`);
    }
  };
  return {
    async create(key) {
      if (key !== null) throw new SlotKindError('key: is not allowed for this kind');
      return { secret: read(true), parameters: {} };
    },
    open: async () => read(false),
  };
}

/** Whether the path is a pipe. False for a path that cannot be followed; reading it reports why. */
function isPipe(path: string): boolean {
  try {
    return !statSync(path).isFile();
  } catch {
    return false;
  }
}

const withoutFullStop = (sentence: string): string => sentence.replace(/\.$/, '');

/** The slots of systemd. `directory` is `$CREDENTIALS_DIRECTORY`; undefined if systemd did not start the server. */
export function systemdSlots(directory: string | undefined): SlotKindPort {
  const read = (name: string): Uint8Array => {
    if (directory === undefined)
      throw new SlotKindError('CREDENTIALS_DIRECTORY is not set: systemd passed no credential');
    const secret = parseRootKey(readSlotFile(`the credential ${name}`, childPath(directory, name)));
    if (secret === null) throw new SlotKindError(`the credential ${name} must contain 32 bytes as base64, on one line`);
    return secret;
  };
  return {
    async create(key) {
      const credential = checkedKey(key, CREDENTIAL, CREDENTIAL_RULE);
      return { secret: read(credential), parameters: { credential } };
    },
    async open({ credential }) {
      return read(checkedKey(credential, CREDENTIAL, CREDENTIAL_RULE));
    },
  };
}
