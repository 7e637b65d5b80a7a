/** Walks through every sealed value, a few credentials at a time. */
import type { CredentialId, CredentialType } from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import type { Dialect } from './dialect.ts';
import type { ListStep } from './queries.ts';
import { nextKey } from './state-scan.ts';
import { type Procedure, type Row, raw, sql } from './statement.ts';

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
