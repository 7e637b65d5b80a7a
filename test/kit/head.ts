import type { KeyObject } from 'node:crypto';
import { headMac } from '../../src/crypto/chain.ts';
import type { Head } from '../../src/store/store.ts';

/** A head record as an earlier version wrote it, without a tree. */
export function headWithoutTree(auditKey: KeyObject, seq: number, hmac: string, epoch = 0): Head {
  const fields = { seq, hmac, epoch, tree: null, control: null };
  return { ...fields, mac: headMac(auditKey, fields) };
}
