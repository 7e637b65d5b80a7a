/** The statements that write credentials and their counts. */
import type { Credential } from '../../core/credential.ts';
import type { CredentialId } from '../../core/names.ts';
import { CREDENTIALS } from '../schema.ts';
import { type Statement, sql } from '../statement.ts';
import type { Authenticated } from '../store.ts';
import { upsertItems } from './insert-rows.ts';

/** Inserts or updates. A new credential gets a count row. */
export function putCredential(credential: Authenticated<Credential>): readonly Statement[] {
  return [
    upsertItems(CREDENTIALS, [credential]),
    sql`INSERT INTO access_counts (credential_id, count) VALUES (${credential.id}, 0) ON CONFLICT DO NOTHING`,
  ];
}

export function removeCredential(id: CredentialId): readonly Statement[] {
  return [
    // ORDER: take the counting lock first; the counting job holds many row locks, and the reverse order could deadlock.
    sql`SELECT 1 FROM access_count_progress WHERE id = 1 FOR UPDATE`,
    sql`DELETE FROM credentials WHERE id = ${id}`,
    sql`DELETE FROM credential_versions WHERE credential_id = ${id}`,
    sql`DELETE FROM access_counts WHERE credential_id = ${id}`,
  ];
}
