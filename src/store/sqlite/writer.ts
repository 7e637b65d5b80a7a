/** Writes a batch in one transaction. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { CredentialId } from '../../core/names.ts';
import type { StoredChange, WriteSet } from '../store.ts';
import type { AccessCounts, CountRowId } from './access-counts.ts';
import { CredentialWriter } from './credential-writer.ts';
import { inTransaction } from './database.ts';
import { LeaseBlockWriter } from './lease-blocks.ts';
import { Statements } from './statements.ts';

export class BatchWriter {
  readonly #database: DatabaseSync;
  readonly #counts: AccessCounts;
  readonly #statements: Statements;
  readonly #credentials: CredentialWriter;
  readonly #insertEntry: StatementSync;
  readonly #insertLease: StatementSync;
  readonly #leaseBlocks: LeaseBlockWriter;

  constructor(database: DatabaseSync, counts: AccessCounts) {
    this.#database = database;
    this.#counts = counts;
    this.#statements = new Statements(database);
    this.#credentials = new CredentialWriter(this.#statements, counts);
    this.#insertEntry = database.prepare('INSERT INTO audit_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
    this.#insertLease = database.prepare('INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)');
    this.#leaseBlocks = new LeaseBlockWriter(database);
  }

  /** All or nothing; written when it returns, and not yet synced. `countIds`: of credentials that the turn loaded. */
  commit(batch: WriteSet, countIds: ReadonlyMap<CredentialId, CountRowId>): void {
    try {
      const added = inTransaction(this.#database, () => this.#write(batch, countIds));
      this.#counts.committed(added, batch.head.seq);
    } catch (error) {
      this.#leaseBlocks.reset();
      throw error;
    }
  }

  #write(batch: WriteSet, countIds: ReadonlyMap<CredentialId, CountRowId>): [CountRowId, number][] {
    const { entries, head, changes, accesses } = batch;
    const countedThroughSeq = this.#counts.step();
    const added = this.#countable(accesses, countIds);
    for (const entry of entries) {
      this.#insertEntry.run(
        entry.seq,
        entry.id,
        entry.timestamp,
        entry.event_type,
        entry.agent_name,
        entry.resource,
        entry.action,
        entry.result,
        entry.policy_name,
        entry.lease_id,
        entry.reason,
        entry.request_id,
        entry.remote_addr,
        entry.hmac,
      );
    }
    for (const change of changes) this.#apply(change, batch);
    this.#run(
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
      case 'putAgent': {
        const { id, name, description, publicKey, registeredAt, mac } = change.agent;
        // WHY REPLACE: a row that was altered outside is not used, and its name can be registered again.
        this.#run(
          'INSERT OR REPLACE INTO agents VALUES (?, ?, ?, ?, ?, ?)',
          id,
          name,
          description,
          publicKey,
          registeredAt,
          mac,
        );
        return;
      }
      case 'removeAgent':
        this.#run('DELETE FROM agents WHERE id = ?', change.id);
        return;
      case 'putPolicy': {
        const { name, principal, resources, actions, maxTtlSeconds, createdAt, mac } = change.policy;
        const lists = [JSON.stringify(resources), JSON.stringify(actions)] as const;
        this.#run(
          'INSERT OR REPLACE INTO policies VALUES (?, ?, ?, ?, ?, ?, ?)',
          name,
          principal,
          ...lists,
          maxTtlSeconds,
          createdAt,
          mac,
        );
        return;
      }
      case 'removePolicy':
        this.#run('DELETE FROM policies WHERE name = ?', change.name);
        return;
      case 'putSession': {
        const { tokenHash, agentId, issuedAt, expiresAt, mac } = change.session;
        this.#run('INSERT INTO sessions VALUES (?, ?, ?, ?, ?)', tokenHash, agentId, issuedAt, expiresAt, mac);
        return;
      }
      case 'removeSession':
        this.#run('DELETE FROM sessions WHERE token_hash = ?', change.tokenHash);
        return;
      case 'consumeChallenge':
        this.#run('INSERT INTO spent_challenges VALUES (?, ?)', change.id, change.expiresAt);
        return;
      case 'saveIdempotencyRecord': {
        const { id, agentId, requestMac, reply, expiresAt, mac } = change.reply;
        this.#run(
          'INSERT OR REPLACE INTO idempotency_records VALUES (?, ?, ?, ?, ?, ?)',
          id,
          agentId,
          requestMac,
          reply,
          expiresAt,
          mac,
        );
        return;
      }
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
      case 'addLease': {
        const { lease } = change;
        this.#insertLease.run(
          lease.seq,
          lease.id,
          lease.agentId,
          lease.credentialId,
          lease.agentName,
          lease.path,
          lease.version,
          lease.policyName,
          lease.issuedAt,
          lease.expiresAt,
        );
        this.#leaseBlocks.add(lease.agentName, lease.seq);
        return;
      }
      case 'renewLease':
        this.#run(
          'UPDATE leases SET expires_at = ?, policy_name = ? WHERE id = ?',
          change.expiresAt,
          change.policyName,
          change.id,
        );
        return;
      case 'revokeLease':
        this.#run('UPDATE leases SET revoked_at = ? WHERE id = ?', change.revokedAt, change.id);
        return;
      case 'revokeMatching': {
        const { seq, agentId, credentialId, revokedAt } = change.mark;
        this.#run(
          'INSERT INTO bulk_revocations VALUES (?, ?, ?, ?)',
          seq,
          agentId ?? '',
          credentialId ?? '',
          revokedAt,
        );
        return;
      }
    }
  }

  #run(sql: string, ...values: (string | number | Uint8Array | null)[]): void {
    this.#statements.prepare(sql).run(...values);
  }
}
