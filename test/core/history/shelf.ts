/** A store in arrays: keeps rows, and finds the rows that a batch's keys name. It decides nothing. */

import { LoadedRows, type ReadSet } from '../../../src/core/batch-state.ts';
import type { Change, Put, Remove } from '../../../src/core/change.ts';
import type { IdempotencyRecord } from '../../../src/core/idempotency.ts';
import type { ChallengeId, CredentialId } from '../../../src/core/names.ts';
import type { Operation } from '../../../src/core/operation.ts';
import type { CountedCredential, CredentialVersion } from '../../../src/vault/credentials/credential.ts';
import { applyRevocation, type BulkRevocation, type Lease } from '../../../src/vault/leases/lease.ts';
import type { Session } from '../../../src/vault/sessions/session.ts';

interface VersionRow {
  readonly credentialId: CredentialId;
  readonly version: CredentialVersion;
}

export class Shelf {
  credentials: CountedCredential[] = [];
  versions: VersionRow[] = [];
  sessions: Session[] = [];
  readonly spent: ChallengeId[] = [];
  replies: IdempotencyRecord[] = [];
  #leases: Lease[] = [];
  readonly #marks: BulkRevocation[] = [];

  /** Every lease after all bulk revocations, oldest first. */
  leases(): Lease[] {
    return this.#leases.map((lease) => this.#marks.reduce(applyRevocation, lease));
  }

  /** How many leases the bulk revocation ended, whatever followed. */
  countEnded(mark: BulkRevocation): number {
    const earlier = this.#marks.filter(({ seq }) => seq < mark.seq);
    const before = this.#leases.map((lease) => earlier.reduce(applyRevocation, lease));
    return before.filter((lease) => applyRevocation(lease, mark) !== lease).length;
  }

  versionsOf(id: CredentialId): CredentialVersion[] {
    return this.versions.filter(({ credentialId }) => credentialId === id).map(({ version }) => version);
  }

  /** The rows that the operations of a batch need. */
  load(operations: readonly Operation<unknown>[]): LoadedRows {
    const loaded = new LoadedRows();
    const leases = this.leases();
    for (const { reads } of operations) {
      const credential = this.credentials.find(({ path }) => path === reads.credential);
      if (credential !== undefined) this.#loadCredential(loaded, credential, reads);
      for (const session of this.sessions) {
        if (session.tokenHash === reads.session) loaded.rows.session.set(session.tokenHash, session);
      }
      for (const lease of leases) if (lease.id === reads.lease) loaded.leases.set(lease.id, lease);
      for (const id of this.spent) if (id === reads.challenge) loaded.spentChallenges.add(id);
      for (const reply of this.replies) if (reply.id === reads.reply) loaded.rows.reply.set(reply.id, reply);
    }
    return loaded;
  }

  #loadCredential(loaded: LoadedRows, { accessCount, ...credential }: CountedCredential, keys: ReadSet): void {
    const { id, path } = credential;
    loaded.rows.credential.set(path, credential);
    const number = keys.version === 'newest' ? credential.version : keys.version;
    for (const version of this.versionsOf(id)) if (version.version === number) loaded.putVersion(id, version);
    if (keys.history === undefined) return;
    const history = this.versionsOf(id).map(({ version, createdAt }) => ({ version, createdAt }));
    loaded.histories.set(id, history);
  }

  apply(change: Change): void {
    switch (change.kind) {
      case 'put':
        this.#put(change);
        return;
      case 'remove':
        this.#remove(change);
        return;
      case 'consumeChallenge':
        this.spent.push(change.id);
        return;
      case 'incrementAccessCount':
        this.credentials = this.credentials.map((credential) =>
          credential.id === change.credentialId
            ? { ...credential, accessCount: credential.accessCount + 1 }
            : credential,
        );
        return;
      case 'addVersion':
        this.versions.push({ credentialId: change.credential.id, version: change.version });
        return;
      case 'pruneVersions':
        this.versions = this.versions.filter(
          ({ credentialId, version }) => credentialId !== change.credentialId || version.version > change.through,
        );
        return;
      case 'addLease':
        this.#leases.push(change.lease);
        return;
      case 'renewLease': {
        const { expiresAt, policyName } = change;
        this.#changeLease(change.id, { expiresAt, policyName });
        return;
      }
      case 'revokeLease':
        this.#changeLease(change.id, { revokedAt: change.revokedAt });
        return;
      case 'revokeMatching':
        this.#marks.push(change.revocation);
        return;
      case 'addExposure':
      case 'addApprovalRequest':
      case 'putKeySlot':
      case 'removeKeySlot':
      case 'editKeyset':
      case 'reencrypt':
        // No operation of a history uses a credential, needs an approval, or changes a key.
        return;
    }
  }

  /** The rows of other resources are held in memory for as long as a history lasts, or no history has them. */
  #put({ resource, row }: Put): void {
    if (resource === 'session') this.sessions.push(row);
    else if (resource === 'reply') this.replies = [...this.replies.filter(({ id }) => id !== row.id), row];
    else if (resource === 'credential') {
      const before = this.credentials.find(({ id }) => id === row.id);
      this.credentials = this.credentials.filter(({ id }) => id !== row.id);
      this.credentials.push({ ...row, accessCount: before?.accessCount ?? 0 });
    }
  }

  #remove({ resource, row }: Remove): void {
    if (resource === 'session') this.sessions = this.sessions.filter(({ tokenHash }) => tokenHash !== row.tokenHash);
    else if (resource === 'credential') {
      this.credentials = this.credentials.filter(({ id }) => id !== row.id);
      this.versions = this.versions.filter(({ credentialId }) => credentialId !== row.id);
    }
  }

  #changeLease(id: string, fields: Partial<Lease>): void {
    this.#leases = this.#leases.map((lease) => (lease.id === id ? { ...lease, ...fields } : lease));
  }
}
