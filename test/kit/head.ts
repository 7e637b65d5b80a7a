import type { KeyObject } from 'node:crypto';
import { headMac } from '../../src/crypto/chain.ts';
import { CompactRange } from '../../src/crypto/tree.ts';
import type { Head } from '../../src/store/stored-data.ts';
import { GENESIS_MAC } from '../../src/vault/audit/audit-entry.ts';

/** The head record of a log whose entries have the MACs, as a holder of the audit key can write it. */
export function headOf(auditKey: KeyObject, macs: readonly string[], epoch = 0): Head {
  const tree = CompactRange.empty();
  for (const mac of macs) tree.append(mac, []);
  const hmac = macs.at(-1) ?? GENESIS_MAC;
  const fields = { seq: macs.length, hmac, epoch, tree: tree.toString(), control: GENESIS_MAC };
  return { ...fields, mac: headMac(auditKey, fields) };
}
