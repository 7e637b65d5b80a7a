/** The head record of a new vault: an empty log, no agents and no policies. */
import { GENESIS_MAC } from '../core/audit.ts';
import { headMac } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { SetDigest } from '../crypto/set-digest.ts';
import type { Head } from '../store/store.ts';

export function initialHead(keys: Pick<VaultKeys, 'audit' | 'row'>): Head {
  const fields = { seq: 0, hmac: GENESIS_MAC, epoch: 0, tree: '', control: new SetDigest(keys.row).toString() };
  return { ...fields, mac: headMac(keys.audit, fields) };
}
