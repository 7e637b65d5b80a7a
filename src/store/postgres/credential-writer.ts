/** Writes credentials and their versions. */
import type { Credential, CredentialVersion } from '../../core/credential.ts';
import type { CredentialId, CredentialType } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { Authenticated } from '../store.ts';
import type { Connection } from './connection.ts';

type Statements = readonly Promise<unknown>[];

/** Inserts or updates. A new credential gets a count row. */
export function putCredential(connection: Connection, credential: Authenticated<Credential>): Statements {
  const { id, path, type, description, createdAt, updatedAt, version, mac } = credential;
  return [
    connection.query`INSERT INTO credentials (id, path, type, description, created_at, updated_at, version, mac)
      VALUES (${id}, ${path}, ${type}, ${description}, ${createdAt}, ${updatedAt}, ${version}, ${mac})
      ON CONFLICT (id) DO UPDATE SET type = excluded.type, description = excluded.description,
        updated_at = excluded.updated_at, version = excluded.version, mac = excluded.mac`,
    connection.query`INSERT INTO access_counts (credential_id, count) VALUES (${id}, 0) ON CONFLICT DO NOTHING`,
  ];
}

export function removeCredential(connection: Connection, id: CredentialId): Statements {
  return [
    // ORDER: take the counting lock first; the counting job holds many row locks, and the reverse order could deadlock.
    connection.query`SELECT 1 FROM access_count_progress WHERE id = 1 FOR UPDATE`,
    connection.query`DELETE FROM credentials WHERE id = ${id}`,
    connection.query`DELETE FROM credential_versions WHERE credential_id = ${id}`,
    connection.query`DELETE FROM access_counts WHERE credential_id = ${id}`,
  ];
}

export function addVersion(
  connection: Connection,
  id: CredentialId,
  { version, type, createdAt }: Omit<CredentialVersion, 'content'>,
  sealed: Uint8Array,
): Promise<unknown> {
  return connection.query`INSERT INTO credential_versions (credential_id, version, type, created_at, sealed)
    VALUES (${id}, ${version}, ${type}, ${createdAt}, ${sealed})`;
}

/** Deletes versions up to and including `through`. */
export function pruneVersions(connection: Connection, id: CredentialId, through: number): Promise<unknown> {
  return connection.query`DELETE FROM credential_versions WHERE credential_id = ${id} AND version <= ${through}`;
}

/** The statements that storing a credential needs. */
export function prepareCredentialWrites(connection: Connection): Statements {
  const id = '' as CredentialId;
  const type = '' as CredentialType;
  const path = '' as CredentialPath;
  const credential = { id, path, type, description: '', createdAt: 0, updatedAt: 0, version: 1, mac: '' };
  return [
    ...putCredential(connection, credential),
    addVersion(connection, id, { version: 1, type, createdAt: 0 }, new Uint8Array()),
    pruneVersions(connection, id, 0),
  ];
}
