/**
 * What an outcome changes, as plain data: the closed union that the ledger applies in memory and commits to the store.
 */
import type { Agent, Session } from './agent.ts';
import type { Approval, ApprovalRequest } from './approval.ts';
import type { AssociatedData, Credential, CredentialVersion, Sealed } from './credential.ts';
import type { IdempotencyRecord } from './idempotency.ts';
import type { KeySlot, KeysetEdit, SlotId } from './keyset.ts';
import type { BulkRevocation, Exposure, Lease } from './lease.ts';
import type {
  AgentId,
  AgentName,
  ChallengeId,
  CredentialId,
  LeaseId,
  OperatorName,
  PolicyName,
  TokenHash,
} from './names.ts';
import type { Operator } from './operator.ts';
import type { CredentialPath } from './path.ts';
import type { Policy } from './policy.ts';
import type { Usage } from './target.ts';

/** Changes that are stored as they are. */
export type DirectChange =
  | { readonly kind: 'removeAgent'; readonly id: AgentId; readonly name: AgentName }
  | { readonly kind: 'removePolicy'; readonly name: PolicyName }
  | { readonly kind: 'removeOperator'; readonly name: OperatorName }
  | { readonly kind: 'removeSession'; readonly tokenHash: TokenHash; readonly issuedAt: number }
  | { readonly kind: 'consumeChallenge'; readonly id: ChallengeId; readonly expiresAt: number }
  | { readonly kind: 'removeCredential'; readonly id: CredentialId; readonly path: CredentialPath }
  /** Deletes the versions up to and including `through`. */
  | { readonly kind: 'pruneVersions'; readonly credentialId: CredentialId; readonly through: number }
  | { readonly kind: 'removeUsage'; readonly path: CredentialPath }
  | { readonly kind: 'addLease'; readonly lease: Lease }
  | { readonly kind: 'renewLease'; readonly id: LeaseId; readonly expiresAt: number; readonly policyName: string }
  | { readonly kind: 'revokeLease'; readonly id: LeaseId; readonly revokedAt: number }
  | { readonly kind: 'revokeMatching'; readonly revocation: BulkRevocation }
  /** Adds to the stored exposure of the same version, kind and agent. */
  | { readonly kind: 'addExposure'; readonly exposure: Exposure }
  /** What the approver reads; it never changes. */
  | { readonly kind: 'addApprovalRequest'; readonly request: ApprovalRequest }
  | { readonly kind: 'removeKeySlot'; readonly id: SlotId };

export type Change =
  | DirectChange
  // Rows on which decisions depend are stored with a MAC.
  | { readonly kind: 'putAgent'; readonly agent: Agent }
  | { readonly kind: 'putPolicy'; readonly policy: Policy }
  | { readonly kind: 'putOperator'; readonly operator: Operator }
  | { readonly kind: 'putSession'; readonly session: Session }
  | { readonly kind: 'putApproval'; readonly approval: Approval }
  | { readonly kind: 'putCredential'; readonly credential: Credential }
  | { readonly kind: 'putUsage'; readonly usage: Usage }
  /** Replaces an expired record with the same id. */
  | { readonly kind: 'saveIdempotencyRecord'; readonly record: IdempotencyRecord }
  /** The store gets the value sealed. */
  | { readonly kind: 'addVersion'; readonly credential: Credential; readonly version: CredentialVersion }
  /** Creates the slot, or replaces it; the store gets the root key sealed to it. */
  | { readonly kind: 'putKeySlot'; readonly slot: KeySlot }
  /** Takes effect from the next operation of the batch on; the store gets the keyset sealed. */
  | { readonly kind: 'editKeyset'; readonly edit: KeysetEdit }
  /** The store gets the value sealed under the current data key, if the row still has this content. */
  | { readonly kind: 'reencrypt'; readonly bound: AssociatedData; readonly content: Sealed }
  /** The batch adds these up per credential. */
  | { readonly kind: 'incrementAccessCount'; readonly credentialId: CredentialId };

/** Whether the change alters what nodes hold in memory (agents, operators, policies): it increments the epoch. */
export function changesControlState(change: Change): boolean {
  return (
    change.kind === 'putAgent' ||
    change.kind === 'removeAgent' ||
    change.kind === 'putPolicy' ||
    change.kind === 'removePolicy' ||
    change.kind === 'putOperator' ||
    change.kind === 'removeOperator' ||
    change.kind === 'editKeyset'
  );
}
