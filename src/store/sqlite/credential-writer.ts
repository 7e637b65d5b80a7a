/** Writes credentials, their versions and their count rows, within the transaction of a batch. */

import type { CredentialId } from '../../core/names.ts';
import type { Credential, CredentialVersion } from '../../vault/credentials/credential.ts';
import { CREDENTIAL_VERSIONS, CREDENTIALS } from '../schema.ts';
import { raw, sql } from '../statement.ts';
import type { Authenticated, StoredChange, WriteSet } from '../store.ts';
import type { AccessCounts, CountRowId } from './access-counts.ts';
import type { Statements } from './statements.ts';

/** A larger limit would spread the rows over too many pages. */
const MAX_INLINE_BYTES = 1024;

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

  /** Inserts or updates. A new credential gets its count row, with its retrievals in this batch. */
  put(credential: Authenticated<Credential>, { accesses, head }: WriteSet): void {
    const { id, type, version } = credential;
    if (this.countRowOf(id) === null) {
      this.insert(credential, this.#counts.insert(accesses.get(id) ?? 0, head.seq));
      return;
    }
    // Moves the previous newest version to the older ones.
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
