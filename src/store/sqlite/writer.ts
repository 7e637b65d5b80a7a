/** Writing a turn's batch in one transaction. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Credential, CredentialVersion } from '../../core/credential.ts';
import type { Batch, StoredChange } from '../port.ts';
import { inTransaction } from './database.ts';
import { LeaseSpanWriter } from './leasespans.ts';

/**
 * A larger value would make the rows around it lie far apart, and be written again with every count of accesses.
 */
const MAX_INLINE_BYTES = 1024;

export class BatchWriter {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();
  readonly #insertEntry: StatementSync;
  readonly #insertLease: StatementSync;
  readonly #leaseSpans: LeaseSpanWriter;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#insertEntry = database.prepare('INSERT INTO audit_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
    this.#insertLease = database.prepare('INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)');
    this.#leaseSpans = new LeaseSpanWriter(database);
  }

  /** All or nothing; written when it returns, and not yet synced. */
  commit(batch: Batch): void {
    try {
      inTransaction(this.#database, () => this.#write(batch));
    } catch (error) {
      this.#leaseSpans.forget();
      throw error;
    }
  }

  #write({ entries, head, changes, counts }: Batch): void {
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
    for (const change of changes) this.#apply(change);
    if (counts !== null) {
      const add = this.#statement('UPDATE credentials SET access_count = access_count + ? WHERE id = ?');
      for (const [id, count] of counts.added) add.run(count, id);
    }
    this.#statement(
      `INSERT INTO audit_head VALUES (1, :seq, :hmac, :mac, :epoch, coalesce(:counted, 0))
       ON CONFLICT (id) DO UPDATE SET seq = :seq, hmac = :hmac, mac = :mac, epoch = :epoch,
         counted_through_seq = coalesce(:counted, counted_through_seq)`,
    ).run({ ...head, counted: counts?.throughSeq ?? null });
  }

  #apply(change: StoredChange): void {
    switch (change.kind) {
      case 'putAgent': {
        const { id, name, description, publicKey, registeredAt, mac } = change.agent;
        // WHY REPLACE: a row that was altered outside is not used, and its name may be registered anew.
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
      case 'spendChallenge':
        this.#run('INSERT INTO spent_challenges VALUES (?, ?)', change.id, change.expiresAt);
        return;
      case 'putCredential':
        this.#putCredential(change.credential);
        return;
      case 'removeCredential':
        this.#run('DELETE FROM credentials WHERE id = ?', change.id);
        this.#run('DELETE FROM credential_versions WHERE credential_id = ?', change.id);
        return;
      case 'addVersion':
        this.#addVersion(change.credentialId, change.version, change.sealed);
        return;
      case 'dropVersions':
        this.#run(
          'DELETE FROM credential_versions WHERE credential_id = ? AND version <= ?',
          change.credentialId,
          change.through,
        );
        this.#run(
          'UPDATE credentials SET newest_sealed = NULL WHERE id = ? AND version <= ? AND newest_sealed IS NOT NULL',
          change.credentialId,
          change.through,
        );
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
        this.#leaseSpans.add(lease.agentName, lease.seq);
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
      case 'markRevoked': {
        const { seq, agentId, credentialId, revokedAt } = change.mark;
        this.#run(
          'INSERT INTO revocation_marks VALUES (?, ?, ?, ?)',
          seq,
          agentId ?? '',
          credentialId ?? '',
          revokedAt,
        );
        return;
      }
    }
  }

  #putCredential({ id, path, type, description, createdAt, updatedAt, version }: Credential): void {
    // What was the newest goes to the older ones.
    this.#run(
      `INSERT INTO credential_versions SELECT id, version, type, newest_at, newest_sealed FROM credentials
       WHERE id = ? AND (version <> ? OR type <> ?) AND newest_sealed IS NOT NULL`,
      id,
      version,
      type,
    );
    this.#run(
      `INSERT INTO credentials VALUES (?, ?, ?, ?, ?, ?, ?, 0, NULL, NULL)
       ON CONFLICT (id) DO UPDATE SET type = excluded.type, description = excluded.description,
         updated_at = excluded.updated_at, version = excluded.version,
         newest_sealed = iif(version = excluded.version AND type = excluded.type, newest_sealed, NULL)`,
      id,
      path,
      type,
      description,
      createdAt,
      updatedAt,
      version,
    );
  }

  #addVersion(id: string, { version, type, createdAt }: Omit<CredentialVersion, 'content'>, sealed: Uint8Array): void {
    if (sealed.length <= MAX_INLINE_BYTES) {
      const { changes } = this.#statement(
        'UPDATE credentials SET newest_at = ?, newest_sealed = ? WHERE id = ? AND version = ? AND type = ?',
      ).run(createdAt, sealed, id, version, type);
      if (changes !== 0) return;
    }
    this.#run('INSERT INTO credential_versions VALUES (?, ?, ?, ?, ?)', id, version, type, createdAt, sealed);
  }

  #run(sql: string, ...values: (string | number | Uint8Array | null)[]): void {
    this.#statement(sql).run(...values);
  }

  #statement(sql: string): StatementSync {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}
