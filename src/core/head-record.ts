/** The head record, which says where the audit log ends. SOURCE: docs/formats.md, "The audit log". */

const HEAD_FORMAT = 'leasehold-head-v2';
const HEAD_FORMAT_WITHOUT_TREE = 'leasehold-head-v1';

/** The fields of the head record that its MAC covers. */
export interface HeadFields {
  readonly seq: number;
  readonly hmac: string;
  /** Counts the batches that changed the control state. */
  readonly epoch: number;
  /** The compact range of the Merkle tree, which has `seq` leaves. Null in a record of an earlier version. */
  readonly tree: string | null;
  /** The digest of the control state. Null until it is first computed. */
  readonly control: string | null;
}

/**
 * The text whose UTF-8 bytes the head record's MAC covers. A record of an earlier version has no tree, and its MAC does
 * not cover the epoch.
 */
export function canonicalHead({ seq, hmac, epoch, tree, control }: HeadFields): string {
  return JSON.stringify(
    tree === null ? [HEAD_FORMAT_WITHOUT_TREE, seq, hmac] : [HEAD_FORMAT, seq, hmac, epoch, tree, control],
  );
}

/** The head record as one line of words; an empty or a missing word is a hyphen. */
export function headWords({ seq, hmac, mac, epoch, tree, control }: HeadFields & { readonly mac: string }): string {
  return [seq, hmac, mac, epoch, tree || '-', control ?? '-'].join(' ');
}
