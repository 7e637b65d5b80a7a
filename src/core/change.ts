/** The changes of an outcome as plain data, which the ledger applies in memory and commits to the store. */

import type { ApprovalRequest } from '../vault/approvals/approval.ts';
import type { AssociatedData, Credential, CredentialVersion, EncryptedValue } from '../vault/credentials/credential.ts';
import type { Exposure } from '../vault/exposure/exposure-record.ts';
import type { KeySlot, KeysetEdit, SlotId } from '../vault/keys/keyset.ts';
import type { BulkRevocation, Lease } from '../vault/leases/lease.ts';
import type { ChallengeId, CredentialId, LeaseId } from './names.ts';
import { type HeldResource, isHeld, type KeyOf, type Resource, type RowOf } from './resources.ts';

/** Creates the row, or replaces the one with the same key. */
export type Put = { [R in Resource]: { readonly kind: 'put'; readonly resource: R; readonly row: RowOf[R] } }[Resource];
export type Remove = {
  [R in Resource]: { readonly kind: 'remove'; readonly resource: R; readonly row: KeyOf[R] };
}[Resource];

export function putRow<R extends Resource>(resource: R, row: RowOf[R]): Put {
  return { kind: 'put', resource, row } as Put;
}

export function removeRow<R extends Resource>(resource: R, row: KeyOf[R]): Remove {
  return { kind: 'remove', resource, row } as Remove;
}

/** Changes that are stored as they are. */
export type DirectChange =
  | Remove
  | { readonly kind: 'consumeChallenge'; readonly id: ChallengeId; readonly expiresAt: number }
  /** Deletes the versions up to and including `through`. */
  | { readonly kind: 'pruneVersions'; readonly credentialId: CredentialId; readonly through: number }
  | { readonly kind: 'addLease'; readonly lease: Lease }
  | { readonly kind: 'renewLease'; readonly id: LeaseId; readonly expiresAt: number; readonly policyName: string }
  | { readonly kind: 'revokeLease'; readonly id: LeaseId; readonly revokedAt: number }
  | { readonly kind: 'revokeMatching'; readonly revocation: BulkRevocation }
  /** Adds to the stored exposure of the same version, kind and agent. */
  | { readonly kind: 'addExposure'; readonly exposure: Exposure }
  /** The text that the approver reads; it never changes. */
  | { readonly kind: 'addApprovalRequest'; readonly request: ApprovalRequest }
  | { readonly kind: 'removeKeySlot'; readonly id: SlotId };

export type Change =
  | DirectChange
  | Put
  /** The store receives the encrypted value. */
  | { readonly kind: 'addVersion'; readonly credential: Credential; readonly version: CredentialVersion }
  /** Creates the slot, or replaces it; the store receives the root key wrapped for it. */
  | { readonly kind: 'putKeySlot'; readonly slot: KeySlot }
  /** Takes effect from the next operation of the batch on; the store receives the encrypted keyset. */
  | { readonly kind: 'editKeyset'; readonly edit: KeysetEdit }
  /** The store receives the value encrypted with the current data key, if the row still has this content. */
  | { readonly kind: 'reencrypt'; readonly bound: AssociatedData; readonly content: EncryptedValue }
  /** The batch adds these up per credential. */
  | { readonly kind: 'incrementAccessCount'; readonly credentialId: CredentialId };

export type HeldChange = Extract<Put | Remove, { resource: HeldResource }>;

export function isHeldChange(change: Put | Remove): change is HeldChange {
  return isHeld(change.resource);
}

/** Whether the change alters what nodes hold in memory (including the keyset): it increments the epoch. */
export function changesControlState(change: Change): boolean {
  return change.kind === 'editKeyset' || ((change.kind === 'put' || change.kind === 'remove') && isHeldChange(change));
}
