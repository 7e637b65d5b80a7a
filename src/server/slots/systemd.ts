/**
 * The slot of a systemd credential: `LoadCredentialEncrypted=` of a unit decrypts it into a directory that only the
 * service can read. SOURCE: systemd.exec(5), "Credentials".
 */
import { parseRootKey } from '../../crypto/keys.ts';
import { childPath } from '../../platform/child-path.ts';
import { checkedKey, readSlotFile, SlotKindError, type SlotKindPort } from './slot-kind.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const NAME_RULE = 'must name the credential: 1 to 64 of A-Z a-z 0-9 . _ -';

/** `directory` is `$CREDENTIALS_DIRECTORY`; undefined if systemd did not start the service. */
export function systemdSlots(directory: string | undefined): SlotKindPort {
  /** @throws SlotKindError */
  const read = (name: string): Uint8Array => {
    if (directory === undefined)
      throw new SlotKindError('CREDENTIALS_DIRECTORY is not set: systemd passed no credential');
    const secret = parseRootKey(readSlotFile(`the credential ${name}`, childPath(directory, name)));
    if (secret === null) throw new SlotKindError(`the credential ${name} must contain 32 bytes as base64, on one line`);
    return secret;
  };
  return {
    async create(key) {
      const credential = checkedKey(key, NAME, NAME_RULE);
      return { secret: read(credential), parameters: { credential } };
    },
    async open({ credential }) {
      return read(checkedKey(credential, NAME, NAME_RULE));
    },
  };
}
