/** Loads the read sets of a transaction, with one statement per kind of row. */
import type { ReadSet } from '../../core/batch-state.ts';
import type { ChallengeId, CredentialId, CredentialType } from '../../core/names.ts';
import { CREDENTIAL_VERSIONS, CREDENTIALS, IDEMPOTENCY_RECORDS, LEASES, SESSIONS } from '../schema.ts';
import type { Row } from '../statement.ts';
import type { LoadedFromStore } from '../store.ts';
import { numberArray, textArray } from './array-literals.ts';
import type { Connection } from './connection.ts';

/** The keys by kind, without duplicates. */
interface Wanted {
  readonly sessions: Set<string>;
  readonly leases: Set<string>;
  readonly challenges: Set<string>;
  readonly idempotencyRecords: Set<string>;
  /** All paths; `newest` and `histories` are subsets of them. */
  readonly paths: Set<string>;
  readonly newest: Set<string>;
  readonly histories: Set<string>;
  /** By path and version number. */
  readonly versions: Map<string, { readonly path: string; readonly version: number }>;
}

function collectKeys(reads: readonly ReadSet[]): Wanted {
  const wanted: Wanted = {
    sessions: new Set(),
    leases: new Set(),
    challenges: new Set(),
    idempotencyRecords: new Set(),
    paths: new Set(),
    newest: new Set(),
    histories: new Set(),
    versions: new Map(),
  };
  for (const { credential, version, history, session, lease, challenge, idempotency } of reads) {
    if (session !== undefined) wanted.sessions.add(session);
    if (lease !== undefined) wanted.leases.add(lease);
    if (challenge !== undefined) wanted.challenges.add(challenge);
    if (idempotency !== undefined) wanted.idempotencyRecords.add(idempotency);
    if (credential === undefined) continue;
    wanted.paths.add(credential);
    if (history === true) wanted.histories.add(credential);
    if (version === 'newest') wanted.newest.add(credential);
    else if (version !== undefined) wanted.versions.set(`${version} ${credential}`, { path: credential, version });
  }
  return wanted;
}

/** Loads each row once, in one round trip. Call before awaiting anything in the transaction. */
export async function loadRows(connection: Connection, reads: readonly ReadSet[]): Promise<LoadedFromStore> {
  const wanted = collectKeys(reads);
  const [credentials, versions, histories, sessions, leases, challenges, idempotencyRecords] = await Promise.all([
    loadCredentials(connection, wanted),
    loadVersions(connection, wanted),
    loadHistories(connection, wanted),
    wanted.sessions.size === 0
      ? []
      : connection.query`SELECT ${SESSIONS.list} FROM sessions WHERE token_hash = ANY(${textArray(wanted.sessions)}::text[])`,
    wanted.leases.size === 0
      ? []
      : connection.query`SELECT ${LEASES.list} FROM effective_leases WHERE id = ANY(${textArray(wanted.leases)}::text[])`,
    wanted.challenges.size === 0
      ? []
      : connection.query`SELECT id FROM spent_challenges WHERE id = ANY(${textArray(wanted.challenges)}::text[])`,
    wanted.idempotencyRecords.size === 0
      ? []
      : connection.query`SELECT ${IDEMPOTENCY_RECORDS.list} FROM idempotency_records WHERE id = ANY(${textArray(wanted.idempotencyRecords)}::text[])`,
  ]);
  const newest = credentials.filter(({ sealed }) => sealed !== null && sealed !== undefined);
  const others = versions.filter(({ credential_id: id, version }) =>
    newest.every((row) => row['id'] !== id || row['version'] !== version),
  );
  return {
    credentials: credentials.map((row) => CREDENTIALS.decode(row)),
    versions: [...newest.map(toNewestVersion), ...others.map(toLoadedVersion)],
    histories: gatherHistories(histories),
    sessions: sessions.map((row) => SESSIONS.decode(row)),
    leases: leases.map((row) => LEASES.decode(row)),
    idempotencyRecords: idempotencyRecords.map((row) => IDEMPOTENCY_RECORDS.decode(row)),
    spentChallenges: challenges.map(({ id }) => String(id) as ChallengeId),
  };
}

async function loadCredentials(connection: Connection, { paths, newest }: Wanted): Promise<readonly Row[]> {
  const without = [...paths].filter((path) => !newest.has(path));
  const [some, others] = await Promise.all([
    newest.size === 0
      ? []
      : connection.query`
          SELECT ${CREDENTIALS.listOf('c.')}, v.type AS version_type, v.created_at AS version_at, v.sealed FROM credentials c
          LEFT JOIN credential_versions v ON v.credential_id = c.id AND v.version = c.version
          WHERE c.path = ANY(${textArray(newest)}::text[])`,
    without.length === 0
      ? []
      : connection.query`SELECT ${CREDENTIALS.list} FROM credentials WHERE path = ANY(${textArray(without)}::text[])`,
  ]);
  return [...some, ...others];
}

async function loadVersions(connection: Connection, { versions }: Wanted): Promise<readonly Row[]> {
  if (versions.size === 0) return [];
  const wanted = [...versions.values()];
  return connection.query`
    SELECT ${CREDENTIAL_VERSIONS.listOf('v.')} FROM unnest(${textArray(wanted.map(({ path }) => path))}::text[],
                           ${numberArray(wanted.map(({ version }) => version))}::bigint[]) AS w (path, version)
    JOIN credentials c ON c.path = w.path COLLATE "C"
    JOIN credential_versions v ON v.credential_id = c.id AND v.version = w.version`;
}

async function loadHistories(connection: Connection, { histories }: Wanted): Promise<readonly Row[]> {
  if (histories.size === 0) return [];
  return connection.query`
    SELECT c.id, v.version, v.created_at FROM credentials c
    LEFT JOIN credential_versions v ON v.credential_id = c.id
    WHERE c.path = ANY(${textArray(histories)}::text[]) ORDER BY c.id, v.version`;
}

/** Each credential's versions, oldest first. */
function gatherHistories(rows: readonly Row[]): LoadedFromStore['histories'] {
  const byId = new Map<CredentialId, { version: number; createdAt: number }[]>();
  for (const row of rows) {
    const id = String(row['id']) as CredentialId;
    const versions = byId.get(id) ?? [];
    byId.set(id, versions);
    if (row['version'] !== null) {
      versions.push({ version: Number(row['version']), createdAt: Number(row['created_at']) });
    }
  }
  return Array.from(byId, ([credentialId, versions]) => ({ credentialId, versions }));
}

/** From a credential's row; a retrieval needs it, and `Table.decode` would need another row. */
function toNewestVersion(row: Row): LoadedFromStore['versions'][number] {
  const { id, version, version_type: type, version_at: createdAt, sealed } = row;
  const content = sealed instanceof Uint8Array ? sealed : new Uint8Array();
  return {
    credentialId: String(id) as CredentialId,
    version: { version: Number(version), type: String(type) as CredentialType, createdAt: Number(createdAt), content },
  };
}

function toLoadedVersion(row: Row): LoadedFromStore['versions'][number] {
  const { credentialId, sealed, ...version } = CREDENTIAL_VERSIONS.decode(row);
  return { credentialId, version: { ...version, content: sealed } };
}
