/**
 * The state that a batch decides on: the control state, and the rows loaded by key for the batch's operations. The
 * changes of each outcome are applied here immediately, so that an operation sees the changes of the earlier ones.
 */

import type { Approval, ApprovalId, ApprovalKey } from '../vault/approvals/approval.ts';
import type { Credential, CredentialVersion } from '../vault/credentials/credential.ts';
import type { KeySlot, SlotId } from '../vault/keys/keyset.ts';
import { applyRevocation, type Lease } from '../vault/leases/lease.ts';
import type { Session } from '../vault/sessions/session.ts';
import type { TargetBinding } from '../vault/use/target.ts';
import { type Change, type HeldChange, isHeldChange, type Put, type Remove } from './change.ts';
import type { ControlState } from './control.ts';
import type { IdempotencyId, IdempotencyRecord } from './idempotency.ts';
import type { IdentityLookup } from './identity.ts';
import type { IpNetwork } from './ip-network.ts';
import type { AgentId, ChallengeId, CredentialId, LeaseId, TokenHash } from './names.ts';
import type { CredentialPath } from './path.ts';
import { type HeldResource, type KeyOf, type KeysOf, RESOURCES, type Resource, type RowOf } from './resources.ts';

/** A resource whose rows are loaded for a batch. */
export type LoadedResource = Exclude<Resource, HeldResource>;

/** The keys of the rows that an operation reads. */
export interface ReadSet extends KeysOf {
  readonly credential?: CredentialPath;
  /** Loads the value of this version, or of the newest. */
  readonly version?: number | 'newest';
  /** Loads the times of all versions. */
  readonly history?: true;
  readonly lease?: LeaseId;
  readonly leaseToken?: TokenHash;
  readonly challenge?: ChallengeId;
  readonly keySlots?: true;
  readonly approvalKey?: ApprovalKey;
}

export interface VersionInfo {
  readonly version: number;
  readonly createdAt: number;
}

const keyIn = (resource: LoadedResource, row: object): unknown =>
  (row as Readonly<Record<string, unknown>>)[RESOURCES[resource].key];

/** The rows that the store found for the keys of a batch. */
export class LoadedRows {
  /** The rows that were found, by key. Rows without a valid MAC are skipped, except credentials. */
  readonly rows = {
    session: new Map<TokenHash, Session>(),
    credential: new Map<CredentialPath, Credential>(),
    targets: new Map<CredentialPath, TargetBinding>(),
    approval: new Map<ApprovalId, Approval>(),
    reply: new Map<IdempotencyId, IdempotencyRecord>(),
  } satisfies { readonly [R in LoadedResource]: Map<string, RowOf[R]> };
  /** The credentials whose rows have an invalid MAC. */
  readonly altered = new Set<CredentialPath>();
  readonly histories = new Map<CredentialId, VersionInfo[]>();
  readonly leases = new Map<LeaseId, Lease>();
  readonly spentChallenges = new Set<ChallengeId>();
  /** Slots that are not in force, or whose rows were altered, are skipped. */
  readonly keySlots = new Map<SlotId, KeySlot>();
  keySlotsInForce: readonly SlotId[] = [];
  /** WHY lists: a credential has few versions, so a linear scan is faster than building a composite key. */
  readonly #versions = new Map<CredentialId, CredentialVersion[]>();

  put<R extends LoadedResource>(resource: R, row: RowOf[R]): void {
    const rows: Map<unknown, unknown> = this.rows[resource];
    rows.set(keyIn(resource, row), row);
  }

  remove<R extends LoadedResource>(resource: R, row: KeyOf[R]): void {
    const rows: Map<unknown, unknown> = this.rows[resource];
    rows.delete(keyIn(resource, row));
  }

  version(id: CredentialId, number: number): CredentialVersion | null {
    return this.#versions.get(id)?.find(({ version }) => version === number) ?? null;
  }

  putVersion(id: CredentialId, version: CredentialVersion): void {
    const others = this.#versions.get(id);
    if (others === undefined) this.#versions.set(id, [version]);
    else others.push(version);
  }
}

export interface VaultSettings {
  /** Whether the administrator may read values. */
  readonly adminMayRetrieve: boolean;
  readonly versionsKept: number;
  /** The networks that targets may name; null or absent for all. */
  readonly targetNetworks?: readonly IpNetwork[] | null;
}

export class BatchState implements IdentityLookup {
  readonly control: ControlState;
  readonly loaded: LoadedRows;
  readonly settings: VaultSettings;

  constructor(control: ControlState, loaded: LoadedRows, settings: VaultSettings) {
    this.control = control;
    this.loaded = loaded;
    this.settings = settings;
  }

  session(tokenHash: TokenHash): Session | null {
    return this.loaded.rows.session.get(tokenHash) ?? null;
  }

  agentById(id: AgentId) {
    return this.control.agentById(id);
  }

  operatorById(id: AgentId) {
    return this.control.operatorById(id);
  }

  credential(path: CredentialPath): Credential | null {
    return this.loaded.rows.credential.get(path) ?? null;
  }

  /**
   * Whether the credential's row has an invalid MAC, because it was edited outside Leasehold. Such a row grants
   * nothing.
   */
  isAltered(path: CredentialPath): boolean {
    return this.loaded.altered.has(path);
  }

  lease(id: LeaseId): Lease | null {
    return this.loaded.leases.get(id) ?? null;
  }

  leaseByToken(tokenHash: TokenHash): Lease | null {
    return this.loaded.leases.values().find((lease) => lease.tokenHash === tokenHash) ?? null;
  }

  /** Null if the row belongs to a previous credential of the same path. */
  binding({ id, path }: Credential): TargetBinding | null {
    const binding = this.loaded.rows.targets.get(path);
    return binding?.credentialId === id ? binding : null;
  }

  idempotencyRecord(id: IdempotencyId): IdempotencyRecord | null {
    return this.loaded.rows.reply.get(id) ?? null;
  }

  approval(id: ApprovalId): Approval | null {
    return this.loaded.rows.approval.get(id) ?? null;
  }

  /** Newest first. */
  approvalsOf(key: ApprovalKey): Approval[] {
    return [...this.loaded.rows.approval.values()]
      .filter((approval) => approval.key === key)
      .sort((a, b) => (a.id < b.id ? 1 : -1));
  }

  /** The slots in force whose rows are missing or altered, so that a new root key could not be wrapped for them. */
  lostKeySlots(): readonly SlotId[] {
    const { keySlots, keySlotsInForce } = this.loaded;
    return keySlotsInForce.filter((id) => !keySlots.has(id));
  }

  /** The key slots, sorted by name. */
  keySlots(): KeySlot[] {
    return [...this.loaded.keySlots.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  apply(change: Change): void {
    const { loaded } = this;
    switch (change.kind) {
      case 'put':
      case 'remove':
        if (isHeldChange(change)) this.control.apply(change);
        else this.#applyRow(change);
        return;
      case 'consumeChallenge':
        loaded.spentChallenges.add(change.id);
        return;
      case 'addVersion': {
        const { credential, version } = change;
        loaded.putVersion(credential.id, version);
        const history = loaded.histories.get(credential.id) ?? [];
        loaded.histories.set(credential.id, [...history, { version: version.version, createdAt: version.createdAt }]);
        return;
      }
      case 'pruneVersions':
        // `isKept` already rejects the numbers of dropped versions.
        return;
      case 'putKeySlot':
        loaded.keySlots.set(change.slot.id, change.slot);
        return;
      case 'removeKeySlot':
        loaded.keySlots.delete(change.id);
        return;
      case 'editKeyset':
      case 'reencrypt':
        // The batch holds the keys; a value stays the same.
        return;
      case 'incrementAccessCount':
      case 'addExposure':
      case 'addApprovalRequest':
        // Access counts, exposures and requests are read from the store, after the batch.
        return;
      case 'addLease':
        // No caller knows the new lease's id before this batch is committed, so no operation of the batch reads it.
        return;
      case 'renewLease':
        this.#changeLease(change.id, (lease) => ({
          ...lease,
          expiresAt: change.expiresAt,
          policyName: change.policyName,
        }));
        return;
      case 'revokeLease':
        this.#changeLease(change.id, (lease) => ({ ...lease, revokedAt: change.revokedAt }));
        return;
      case 'revokeMatching':
        for (const [id, lease] of loaded.leases) loaded.leases.set(id, applyRevocation(lease, change.revocation));
        return;
    }
  }

  #applyRow(change: Exclude<Put | Remove, HeldChange>): void {
    if (change.kind === 'put') this.loaded.put(change.resource, change.row);
    else {
      this.loaded.remove(change.resource, change.row);
      if (change.resource === 'credential') this.loaded.altered.delete(change.row.path);
    }
  }

  #changeLease(id: LeaseId, change: (lease: Lease) => Lease): void {
    const lease = this.loaded.leases.get(id);
    if (lease !== undefined) this.loaded.leases.set(id, change(lease));
  }
}
