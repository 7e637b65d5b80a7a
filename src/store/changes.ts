/** Writes the changes that all stores write in the same way. */

import { addExposure } from './exposures.ts';
import { APPROVAL_REQUESTS, BULK_REVOCATIONS, KEY_SLOTS, RESOURCE_TABLES, SPENT_CHALLENGES } from './schema.ts';
import { raw, type Statement, sql } from './statement.ts';
import type { StoredChange } from './stored-data.ts';
import type { Table } from './table.ts';

export interface ChangeTarget {
  write(statement: Statement): void;
  insert<T extends object>(table: Table<T>, item: T): void;
  /** Replaces a row with the same key. */
  replace<T extends object>(table: Table<T>, item: T): void;
}

type SharedKind =
  | 'put'
  | 'remove'
  | 'consumeChallenge'
  | 'addApprovalRequest'
  | 'renewLease'
  | 'revokeLease'
  | 'revokeMatching'
  | 'addExposure'
  | 'putKeySlot'
  | 'removeKeySlot'
  | 'putKeyset'
  | 'countEncryptions'
  | 'reencrypt';

export function writeChange(change: Extract<StoredChange, { kind: SharedKind }>, target: ChangeTarget): void {
  switch (change.kind) {
    case 'put':
      target.replace<object>(RESOURCE_TABLES[change.resource], change.row);
      return;
    case 'remove': {
      const table: Table<object> = RESOURCE_TABLES[change.resource];
      target.write(sql`DELETE FROM ${raw(table.name)} WHERE ${table.whereKeyOf(change.row)}`);
      return;
    }
    case 'consumeChallenge':
      target.insert(SPENT_CHALLENGES, change);
      return;
    case 'addApprovalRequest':
      target.insert(APPROVAL_REQUESTS, change.request);
      return;
    case 'renewLease':
      target.write(sql`UPDATE leases SET expires_at = ${change.expiresAt}, policy_name = ${change.policyName}
        WHERE id = ${change.id}`);
      return;
    case 'revokeLease':
      target.write(sql`UPDATE leases SET revoked_at = ${change.revokedAt} WHERE id = ${change.id}`);
      return;
    case 'addExposure':
      target.write(addExposure(change.exposure));
      return;
    case 'putKeySlot':
      target.write(sql`DELETE FROM key_slots WHERE id = ${change.slot.id} OR name = ${change.slot.name}`);
      target.insert(KEY_SLOTS, change.slot);
      return;
    case 'removeKeySlot':
      target.write(sql`DELETE FROM key_slots WHERE id = ${change.id}`);
      return;
    case 'putKeyset': {
      const { version, rootVersion, sealed } = change.keyset;
      target.write(sql`UPDATE keyset SET version = ${version}, root_version = ${rootVersion}, sealed = ${sealed}`);
      return;
    }
    case 'reencrypt':
      target.write(sql`UPDATE credential_versions SET sealed = ${change.sealed}
        WHERE credential_id = ${change.credentialId} AND version = ${change.version} AND sealed = ${change.from}`);
      return;
    case 'countEncryptions':
      target.write(sql`INSERT INTO data_key_seals (key_id, seals) VALUES (${change.keyId}, ${change.seals})
        ON CONFLICT (key_id) DO UPDATE SET seals = data_key_seals.seals + excluded.seals`);
      return;
    // revokeMatching
    default: {
      const { agentId, credentialId, kind, ...revocation } = change.revocation;
      target.insert(BULK_REVOCATIONS, {
        ...revocation,
        agentId: agentId ?? '',
        credentialId: credentialId ?? '',
        kind: kind ?? '',
      });
    }
  }
}
