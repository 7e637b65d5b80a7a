/** Writes a batch in one transaction. */
import type { DatabaseSync } from 'node:sqlite';
import type { CredentialId } from '../../core/names.ts';
import {
  AGENTS,
  AUDIT_ENTRIES,
  BULK_REVOCATIONS,
  IDEMPOTENCY_RECORDS,
  LEASES,
  POLICIES,
  SESSIONS,
  SPENT_CHALLENGES,
  USAGES,
} from '../schema.ts';
import type { StoredChange, WriteSet } from '../store.ts';
import type { AccessCounts, CountRowId } from './access-counts.ts';
import { CredentialWriter } from './credential-writer.ts';
import { inTransaction } from './database.ts';
import { LeaseBlockWriter } from './lease-blocks.ts';
import { Statements } from './statements.ts';

export class SqliteBatchWriter {
  readonly #database: DatabaseSync;
  readonly #counts: AccessCounts;
  readonly #statements: Statements;
  readonly #credentials: CredentialWriter;
  readonly leaseBlocks: LeaseBlockWriter;

  constructor(database: DatabaseSync, counts: AccessCounts) {
    this.#database = database;
    this.#counts = counts;
    this.#statements = new Statements(database);
    this.#credentials = new CredentialWriter(this.#statements, counts);
    this.leaseBlocks = new LeaseBlockWriter(database);
  }

  /**
   * Writes all or nothing: written when it returns, and not yet synced. `countIds` are the count rows of the
   * credentials that the transaction loaded.
   */
  commit(batch: WriteSet, countIds: ReadonlyMap<CredentialId, CountRowId>): void {
    try {
      const added = inTransaction(this.#database, () => this.#write(batch, countIds));
      this.#counts.committed(added, batch.head.seq);
    } catch (error) {
      this.leaseBlocks.reset();
      throw error;
    }
  }

  #write(batch: WriteSet, countIds: ReadonlyMap<CredentialId, CountRowId>): [CountRowId, number][] {
    const { entries, head, changes, accesses } = batch;
    const countedThroughSeq = this.#counts.step();
    const added = this.#countable(accesses, countIds);
    for (const entry of entries) this.#statements.insert(AUDIT_ENTRIES, entry);
    for (const change of changes) this.#apply(change, batch);
    this.#statements.write(
      'INSERT OR REPLACE INTO audit_head VALUES (1, ?, ?, ?, ?, ?)',
      head.seq,
      head.hmac,
      head.mac,
      head.epoch,
      countedThroughSeq,
    );
    return added;
  }

  /** Retrievals of credentials that have a count row; a credential of this batch gets them with its row. */
  #countable(
    accesses: ReadonlyMap<CredentialId, number>,
    countIds: ReadonlyMap<CredentialId, CountRowId>,
  ): [CountRowId, number][] {
    const added: [CountRowId, number][] = [];
    for (const [id, count] of accesses) {
      const countId = countIds.get(id) ?? this.#credentials.countRowOf(id);
      if (countId !== null) added.push([countId, count]);
    }
    return added;
  }

  #apply(change: StoredChange, batch: WriteSet): void {
    switch (change.kind) {
      // WHY replace: a row that was altered outside is not used, and its name or id can be used again.
      case 'putAgent':
        this.#statements.replace(AGENTS, change.agent);
        return;
      case 'putPolicy':
        this.#statements.replace(POLICIES, change.policy);
        return;
      case 'saveIdempotencyRecord':
        this.#statements.replace(IDEMPOTENCY_RECORDS, change.record);
        return;
      case 'putUsage':
        this.#statements.replace(USAGES, change.usage);
        return;
      case 'removeUsage':
        this.#statements.write('DELETE FROM usages WHERE path = ?', change.path);
        return;
      case 'putSession':
        this.#statements.insert(SESSIONS, change.session);
        return;
      case 'consumeChallenge':
        this.#statements.insert(SPENT_CHALLENGES, change);
        return;
      case 'removeAgent':
        this.#statements.write('DELETE FROM agents WHERE id = ?', change.id);
        return;
      case 'removePolicy':
        this.#statements.write('DELETE FROM policies WHERE name = ?', change.name);
        return;
      case 'removeSession':
        this.#statements.write('DELETE FROM sessions WHERE token_hash = ?', change.tokenHash);
        return;
      case 'putCredential':
        this.#credentials.put(change.credential, batch);
        return;
      case 'removeCredential':
        this.#credentials.remove(change.id);
        return;
      case 'addVersion':
        this.#credentials.addVersion(change.credentialId, change.version, change.sealed);
        return;
      case 'pruneVersions':
        this.#credentials.pruneVersions(change.credentialId, change.through);
        return;
      case 'addLease':
        this.#statements.insert(LEASES, change.lease);
        this.leaseBlocks.add(change.lease.agentName, change.lease.seq);
        return;
      case 'renewLease': {
        const { id, expiresAt, policyName } = change;
        this.#statements.write(
          'UPDATE leases SET expires_at = ?, policy_name = ? WHERE id = ?',
          expiresAt,
          policyName,
          id,
        );
        return;
      }
      case 'revokeLease':
        this.#statements.write('UPDATE leases SET revoked_at = ? WHERE id = ?', change.revokedAt, change.id);
        return;
      case 'revokeMatching': {
        const { agentId, credentialId, kind, ...revocation } = change.revocation;
        this.#statements.insert(BULK_REVOCATIONS, {
          ...revocation,
          agentId: agentId ?? '',
          credentialId: credentialId ?? '',
          kind: kind ?? '',
        });
        return;
      }
    }
  }
}
