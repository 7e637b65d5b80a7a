/** Walks through the encrypted values, in steps of a bounded number of rows. */

import type { CredentialId, CredentialType } from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import type { AssociatedData, EncryptedValue } from '../vault/credentials/credential.ts';
import type { Dialect } from './dialect.ts';
import { nextKey } from './recorded-states.ts';
import { type ListStep, type Procedure, type Row, raw, sql } from './statement.ts';

export interface EncryptedVersion {
  readonly bound: AssociatedData;
  readonly content: EncryptedValue;
}

/** A place after a version of a credential, in the table with that number. */
export interface VersionCursor {
  readonly source: number;
  readonly credentialId: string;
  readonly version: number;
}

export const FIRST_VERSION: VersionCursor = { source: 0, credentialId: '', version: 0 };

/**
 * Reads `limit` rows after the cursor, and returns those under another key than `keyId`, which is hexadecimal. `next`
 * is null at the end.
 */
export function* listVersionsToReencrypt(
  { valueSources: sources }: Dialect,
  keyId: string,
  from: VersionCursor,
  limit: number,
): Procedure<ListStep<EncryptedVersion, VersionCursor>> {
  const source = sources[from.source];
  if (source === undefined) return { rows: [], next: null };
  const rows = yield sql`SELECT v.credential_id, v.version, v.type, v.sealed, c.path
    FROM ${raw(source)} AS v JOIN credentials c ON c.id = v.credential_id
    WHERE (v.credential_id, v.version) > (${from.credentialId}, ${from.version})
    ORDER BY v.credential_id, v.version LIMIT ${limit}`;
  const found: EncryptedVersion[] = [];
  for (const row of rows) {
    const content = row['sealed'];
    if (!(content instanceof Uint8Array) || Buffer.from(content.subarray(1, 5)).toString('hex') === keyId) continue;
    found.push({
      bound: {
        credentialId: String(row['credential_id']) as CredentialId,
        path: String(row['path']) as CredentialPath,
        type: String(row['type']) as CredentialType,
        version: Number(row['version']),
      },
      content,
    });
  }
  const last = rows.at(-1);
  const next =
    last === undefined || rows.length < limit
      ? { source: from.source + 1, credentialId: '', version: 0 }
      : { source: from.source, credentialId: String(last['credential_id']), version: Number(last['version']) };
  return { rows: found, next: next.source < sources.length ? next : null };
}

export interface ScannedCredential {
  readonly id: CredentialId;
  readonly path: CredentialPath;
  readonly type: CredentialType;
  readonly version: number;
  readonly values: readonly { readonly version: number; readonly type: CredentialType; readonly sealed: Uint8Array }[];
}

/** The credentials after the id (null: from the first), with all of their values, each a few MiB; at most `limit`. */
export function* scanValues(
  { newestValues }: Dialect,
  after: string | null,
  limit: number,
): Procedure<ListStep<ScannedCredential, string>> {
  const isAfter = after === null ? raw('true') : sql`id > ${after}`;
  const credentials = yield sql`SELECT id, path, type, version FROM credentials
    WHERE ${isAfter} ORDER BY id LIMIT ${limit}`;
  const [first, last] = [credentials.at(0)?.['id'], credentials.at(-1)?.['id']];
  if (first === undefined) return { rows: [], next: null };
  const range = [String(first), String(last)] as const;
  const others = yield sql`SELECT credential_id, version, type, sealed FROM credential_versions
    WHERE credential_id >= ${range[0]} AND credential_id <= ${range[1]}`;
  const newest = newestValues === null ? [] : yield newestValues(...range);
  const values = Map.groupBy([...others, ...newest], (row) => String(row['credential_id']));
  const rows = credentials.map((row) => ({
    id: String(row['id']) as CredentialId,
    path: String(row['path']) as CredentialPath,
    type: String(row['type']) as CredentialType,
    version: Number(row['version']),
    values: (values.get(String(row['id'])) ?? []).map(toValue),
  }));
  return { rows, next: nextKey(credentials, 'id', after, limit) };
}

function toValue({ version, type, sealed }: Row) {
  return {
    version: Number(version),
    type: String(type) as CredentialType,
    sealed: sealed instanceof Uint8Array ? sealed : new Uint8Array(),
  };
}
