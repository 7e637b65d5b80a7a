/** Writes a batch in one transaction. Entries and leases, the most frequent rows, are bound position by position. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { CredentialId } from '../../core/names.ts';
import { type AuditEntry, RARE_FIELDS } from '../../vault/audit/audit-entry.ts';
import type { Credential, CredentialVersion } from '../../vault/credentials/credential.ts';
import type { Lease } from '../../vault/leases/lease.ts';
import { writeChange } from '../changes.ts';
import { AUDIT_ENTRIES, AUDIT_TREE, CREDENTIAL_VERSIONS, CREDENTIALS, LEASES } from '../schema.ts';
import { raw, sql } from '../statement.ts';
import type { Authenticated, StoredChange, WriteSet } from '../stored-data.ts';
import type { AccessCounts, CountRowId } from './access-counts.ts';
import { inTransaction } from './database.ts';
import { LeaseBlockWriter } from './lease-blocks.ts';
import { insertText, Statements } from './statements.ts';

/** The columns of an entry without those that are null in most entries. */
const PLAIN_COLUMNS = AUDIT_ENTRIES.columns.filter(({ name }) => !RARE_FIELDS.some((field) => field === name));
const PLAIN_FIELDS = PLAIN_COLUMNS.map(({ name }) => name as keyof AuditEntry);

export class SqliteBatchWriter {
  readonly #database: DatabaseSync;
  readonly #counts: AccessCounts;
  readonly #statements: Statements;
  readonly #credentials: CredentialWriter;
  readonly #insertEntry: StatementSync;
  readonly #insertLease: StatementSync;
  readonly leaseBlocks: LeaseBlockWriter;

  constructor(database: DatabaseSync, counts: AccessCounts) {
    this.#database = database;
    this.#counts = counts;
    this.#statements = new Statements(database);
    this.#credentials = new CredentialWriter(this.#statements, counts);
    this.#insertEntry = database.prepare(insertText({ name: AUDIT_ENTRIES.name, columns: PLAIN_COLUMNS }));
    this.#insertLease = database.prepare(insertText(LEASES));
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
    const { entries, head, treeNodes, changes, accesses } = batch;
    const countedThroughSeq = this.#counts.step();
    const added = this.#countable(accesses, countIds);
    for (const entry of entries) this.#addEntry(entry);
    for (const change of changes) this.#apply(change, batch);
    for (const node of treeNodes) this.#statements.replace(AUDIT_TREE, node);
    this.#statements.write(sql`INSERT OR REPLACE INTO audit_head
      VALUES (1, ${head.seq}, ${head.hmac}, ${head.mac}, ${head.epoch}, ${countedThroughSeq},
        ${head.tree}, ${head.control})`);
    return added;
  }

  #addEntry(entry: AuditEntry): void {
    if (RARE_FIELDS.some((field) => (entry[field] ?? null) !== null)) this.#statements.insert(AUDIT_ENTRIES, entry);
    else this.#insertEntry.run(...PLAIN_FIELDS.map((field) => entry[field] ?? null));
  }

  #addLease(lease: Lease): void {
    this.#insertLease.run(
      lease.seq,
      lease.id,
      lease.kind,
      lease.agentId,
      lease.credentialId,
      lease.agentName,
      lease.path,
      lease.version,
      lease.policyName,
      lease.issuedAt,
      lease.expiresAt,
      lease.revokedAt,
      lease.tokenHash,
    );
  }

  /** Retrievals of credentials that have a count row; those of a credential of this batch are in its row. */
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
      case 'put':
        // A row that was altered outside is not used, so a new row with its key or name replaces it.
        if (change.resource === 'credential') this.#credentials.put(change.row, batch);
        else writeChange(change, this.#statements);
        return;
      case 'remove':
        if (change.resource === 'credential') this.#credentials.remove(change.row.id);
        else writeChange(change, this.#statements);
        return;
      case 'addVersion':
        this.#credentials.addVersion(change.credentialId, change.version, change.sealed);
        return;
      case 'pruneVersions':
        this.#credentials.pruneVersions(change.credentialId, change.through);
        return;
      case 'reencrypt':
        this.#credentials.reencrypt(change);
        writeChange(change, this.#statements);
        return;
      case 'addLease':
        this.#addLease(change.lease);
        this.leaseBlocks.add(change.lease.agentName, change.lease.seq);
        return;
      default:
        writeChange(change, this.#statements);
    }
  }
}

/** A larger limit would spread the rows over too many pages. */
const MAX_INLINE_BYTES = 1024;

/** Writes credentials, their versions and their count rows, within a transaction. */
export class CredentialWriter {
  readonly #statements: Statements;
  readonly #counts: AccessCounts;

  constructor(statements: Statements, counts: AccessCounts) {
    this.#statements = statements;
    this.#counts = counts;
  }

  countRowOf(id: CredentialId): CountRowId | null {
    const [row] = this.#statements.read(sql`SELECT count_id FROM credentials WHERE id = ${id}`);
    return row === undefined ? null : Number(row['count_id']);
  }

  /** Inserts or updates. A new credential receives its count row, with its retrievals in this batch. */
  put(credential: Authenticated<Credential>, { accesses, head }: WriteSet): void {
    const { id, type, version } = credential;
    if (this.countRowOf(id) === null) {
      this.insert(credential, this.#counts.insert(accesses.get(id) ?? 0, head.seq));
      return;
    }
    // Moves the version that is replaced to the table of all versions.
    this.#statements.write(sql`INSERT INTO credential_versions (credential_id, version, type, created_at, sealed)
      SELECT id, version, type, newest_at, newest_sealed FROM credentials
      WHERE id = ${id} AND (version <> ${version} OR type <> ${type}) AND newest_sealed IS NOT NULL`);
    const values = CREDENTIALS.encode(credential);
    const kept = sql`newest_sealed = iif(version = ${version} AND type = ${type}, newest_sealed, NULL)`;
    // WHY without the path: SQLite would delete the row and insert it again.
    const assigned = CREDENTIALS.columns.reduce(
      (all, { name }, at) =>
        name === 'id' || name === 'path' ? all : sql`${all}, ${raw(name)} = ${values[at] ?? null}`,
      kept,
    );
    this.#statements.write(sql`UPDATE credentials SET ${assigned} WHERE id = ${id}`);
  }

  insert(credential: Authenticated<Credential>, countId: CountRowId): void {
    const { name, list, columns } = CREDENTIALS;
    const places = columns.map(() => '?').join(', ');
    this.#statements
      .prepare(`INSERT INTO ${name} (${list.parts.join('')}, count_id) VALUES (${places}, ?)`)
      .run(...CREDENTIALS.encode(credential), countId);
  }

  remove(id: CredentialId): void {
    const countId = this.countRowOf(id);
    this.#statements.write(sql`DELETE FROM credentials WHERE id = ${id}`);
    this.#statements.write(sql`DELETE FROM credential_versions WHERE credential_id = ${id}`);
    if (countId !== null) this.#counts.remove(countId);
  }

  addVersion(id: CredentialId, version: Omit<CredentialVersion, 'content'>, sealed: Uint8Array): void {
    const { version: number, type, createdAt } = version;
    if (sealed.length <= MAX_INLINE_BYTES) {
      const changes =
        this.#statements.write(sql`UPDATE credentials SET newest_at = ${createdAt}, newest_sealed = ${sealed}
        WHERE id = ${id} AND version = ${number} AND type = ${type}`);
      if (changes !== 0) return;
    }
    this.#statements.insert(CREDENTIAL_VERSIONS, { credentialId: id, version: number, type, createdAt, sealed });
  }

  /** The newest version, if the credential's row holds it. */
  reencrypt({ credentialId, version, from, sealed }: Extract<StoredChange, { kind: 'reencrypt' }>): void {
    this.#statements.write(sql`UPDATE credentials SET newest_sealed = ${sealed}
      WHERE id = ${credentialId} AND version = ${version} AND newest_sealed = ${from}`);
  }

  pruneVersions(id: CredentialId, through: number): void {
    this.#statements.write(sql`DELETE FROM credential_versions WHERE credential_id = ${id} AND version <= ${through}`);
    this.#statements.write(sql`UPDATE credentials SET newest_sealed = NULL
      WHERE id = ${id} AND version <= ${through} AND newest_sealed IS NOT NULL`);
  }
}
