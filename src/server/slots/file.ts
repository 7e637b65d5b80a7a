/** The slot of the root key file, whose 32 bytes are its secret. */
import { statSync } from 'node:fs';
import { errnoSuffix } from '../../platform/errno.ts';
import { StartupError } from '../../platform/errors.ts';
import type { Configuration } from '../configuration.ts';
import { type RootKeyFile, readRootKey } from '../root-key.ts';
import { SlotKindError, type SlotKindPort } from './slot-kind.ts';

/** `found` is the file as it was read at the start. */
export function fileSlots(
  configuration: Pick<Configuration, 'dataDir' | 'rootKeyFile'>,
  found: RootKeyFile,
): SlotKindPort {
  // A pipe can be read only once. A file is read again, because it may have been lost or replaced since the start.
  const wasPipe = isPipe(found.path);
  /** @throws SlotKindError */
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

/** False for a path that cannot be followed: reading it reports why. */
function isPipe(path: string): boolean {
  try {
    return !statSync(path).isFile();
  } catch {
    return false;
  }
}

const withoutFullStop = (sentence: string): string => sentence.replace(/\.$/, '');
