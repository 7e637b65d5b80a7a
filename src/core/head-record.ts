/** The head record, which says where the audit log ends. SOURCE: docs/formats.md, "The audit log". */

const HEAD_FORMAT = 'leasehold-head-v2';

/** The fields of the head record that its MAC covers. */
export interface HeadFields {
  readonly seq: number;
  readonly hmac: string;
  /** Counts the batches that changed the control state. */
  readonly epoch: number;
  /** The compact range of the Merkle tree, which has `seq` leaves. */
  readonly tree: string;
  /** The digest of the control state. */
  readonly control: string;
}

/** The text whose UTF-8 bytes the head record's MAC covers. */
export function canonicalHead({ seq, hmac, epoch, tree, control }: HeadFields): string {
  return JSON.stringify([HEAD_FORMAT, seq, hmac, epoch, tree, control]);
}

/** The head record as one line of words; an empty or a missing word is a hyphen. */
export function headWords({ seq, hmac, mac, epoch, tree, control }: HeadFields & { readonly mac: string }): string {
  return [seq, hmac, mac, epoch, tree || '-', control || '-'].join(' ');
}
