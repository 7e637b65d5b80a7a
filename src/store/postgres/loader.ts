/**
 * Loads the read sets of a transaction, with one statement per kind of row, and the rows held in memory that other
 * nodes changed. Such rows and removals store the epoch of the batch that wrote them.
 */
import type { LoadedResource, ReadSet } from '../../core/batch-state.ts';
import type { ChallengeId, CredentialId, CredentialType } from '../../core/names.ts';
import {
  HELD_RESOURCES,
  type HeldResource,
  isRecorded,
  type KeyedResource,
  type RowOf,
  recordedSubject,
} from '../../core/resources.ts';
import { MAX_APPROVALS_OF_KEY } from '../approval-lists.ts';
import { newestState, subjectIn, toStates } from '../recorded-states.ts';
import { CREDENTIALS, KEY_SLOTS, LEASES, RESOURCE_TABLES } from '../schema.ts';
import { type Row, raw, type Statement, sql } from '../statement.ts';
import type { Authenticated, ControlChanges, HeldPut, HeldRemove, LoadedFromStore } from '../stored-data.ts';
import type { Table } from '../table.ts';
import type { Connection } from './connection.ts';
import { numberArray, textArray } from './dialect.ts';

/** The numbers that stand for the newest version of a credential, and for no version. */
const NEWEST = 0;
const NONE = -1;

/** The columns of the rows, and the state that the newest entry about each row records. */
function withState(resource: LoadedResource): Statement {
  const { list } = RESOURCE_TABLES[resource];
  return isRecorded(resource) ? sql`${list}, ${newestState(subjectIn(resource))} AS recorded_state` : list;
}

function selectByKey(resource: KeyedResource): Statement {
  const { name, key } = RESOURCE_TABLES[resource];
  return sql`SELECT ${withState(resource)} FROM ${raw(`${name} WHERE ${key[0]}`)}`;
}

/** Each query ends with the column that the keys of the read sets are compared with. */
const SELECTIONS = {
  session: selectByKey('session'),
  targets: selectByKey('targets'),
  reply: selectByKey('reply'),
  lease: sql`SELECT ${LEASES.list} FROM effective_leases WHERE id`,
  leaseToken: sql`SELECT ${LEASES.list} FROM effective_leases WHERE token_hash`,
  challenge: raw('SELECT id FROM spent_challenges WHERE id'),
} satisfies Record<Exclude<KeyedResource, 'approval'> | 'lease' | 'leaseToken' | 'challenge', Statement>;
const ALL_KEY_SLOTS = sql`SELECT ${KEY_SLOTS.list} FROM key_slots`;
const CREDENTIAL_COLUMNS = sql`${CREDENTIALS.listOf('c.')}, ${newestState(subjectIn('credential', 'c'))} AS recorded_state`;
const APPROVAL_COLUMNS = withState('approval');
const NEWEST_APPROVALS = raw(`ORDER BY id DESC LIMIT ${MAX_APPROVALS_OF_KEY}`);

/** Loads each row once, in one round trip. Call before awaiting anything in the transaction. */
export async function loadRows(connection: Connection, reads: readonly ReadSet[]): Promise<LoadedFromStore> {
  const find = async (key: keyof typeof SELECTIONS) => {
    const keys = new Set<string>(reads.flatMap((read) => read[key] ?? []));
    return keys.size === 0 ? [] : connection.query`${SELECTIONS[key]} = ANY(${textArray(keys)}::text[])`;
  };
  const [credentials, histories, targets, session, reply, approval, leases, leasesOfTokens, challenges, keySlots] =
    await Promise.all([
      loadCredentials(connection, reads),
      loadHistories(connection, reads),
      find('targets'),
      find('session'),
      find('reply'),
      loadApprovals(connection, reads),
      find('lease'),
      find('leaseToken'),
      find('challenge'),
      reads.some((read) => read.keySlots) ? connection.execute(ALL_KEY_SLOTS) : [],
    ]);
  const byId = new Map(credentials.map((row) => [row['id'], row]));
  const versions = new Map(
    credentials.flatMap((row) => (row['sealed'] === null ? [] : [[`${row['number']} ${row['id']}`, row]])),
  );
  const states = new Map<string, string>();
  const decode = <R extends LoadedResource>(resource: R, rows: Iterable<Row>): Authenticated<RowOf[R]>[] => {
    const table: Table<Authenticated<RowOf[R]>> = RESOURCE_TABLES[resource];
    return Array.from(rows, (row) => {
      const decoded = table.decode(row);
      const state = row['recorded_state'];
      const subject = recordedSubject(resource, decoded);
      if (subject !== null && typeof state === 'string') states.set(subject, state);
      return decoded;
    });
  };
  return {
    rows: {
      credential: decode('credential', byId.values()),
      targets: decode('targets', targets),
      session: decode('session', session),
      reply: decode('reply', reply),
      approval: decode('approval', approval),
    },
    versions: Array.from(versions.values(), toLoadedVersion),
    histories: gatherHistories(histories),
    leases: [...leases, ...leasesOfTokens].map((row) => LEASES.decode(row)),
    states,
    keySlots: keySlots.map((row) => KEY_SLOTS.decode(row)),
    spentChallenges: challenges.map(({ id }) => String(id) as ChallengeId),
  };
}

/** Each wanted version of a credential with its credential, or the credential without a version. */
async function loadCredentials(connection: Connection, reads: readonly ReadSet[]): Promise<readonly Row[]> {
  const wanted = new Map<string, { readonly path: string; readonly version: number }>();
  for (const { credential: path, version: named } of reads) {
    if (path === undefined) continue;
    const version = named === 'newest' ? NEWEST : (named ?? NONE);
    wanted.set(`${version} ${path}`, { path, version });
  }
  if (wanted.size === 0) return [];
  const keys = [...wanted.values()];
  return connection.query`
    SELECT ${CREDENTIAL_COLUMNS}, v.version AS number, v.type AS stored_type, v.created_at AS stored_at, v.sealed
    FROM unnest(${textArray(keys.map(({ path }) => path))}::text[],
                ${numberArray(keys.map(({ version }) => version))}::bigint[]) AS w (path, version)
    JOIN credentials c ON c.path = w.path COLLATE "C"
    LEFT JOIN credential_versions v ON v.credential_id = c.id
      AND v.version = CASE w.version WHEN ${NEWEST}::bigint THEN c.version ELSE w.version END`;
}

async function loadApprovals(connection: Connection, reads: readonly ReadSet[]): Promise<readonly Row[]> {
  const ids = new Set(reads.flatMap(({ approval }) => approval ?? []));
  const keys = new Set(reads.flatMap(({ approvalKey }) => approvalKey ?? []));
  if (ids.size === 0 && keys.size === 0) return [];
  return connection.query`SELECT ${APPROVAL_COLUMNS} FROM approvals
    WHERE id = ANY(${textArray(ids)}::text[]) OR id IN (
      SELECT found.id FROM unnest(${textArray(keys)}::text[]) AS wanted (key)
      CROSS JOIN LATERAL (SELECT id FROM approvals WHERE key = wanted.key COLLATE "C"
        ${NEWEST_APPROVALS}) AS found)`;
}

async function loadHistories(connection: Connection, reads: readonly ReadSet[]): Promise<readonly Row[]> {
  const paths = new Set(reads.flatMap(({ credential, history }) => (history && credential ? [credential] : [])));
  if (paths.size === 0) return [];
  return connection.query`
    SELECT c.id, v.version, v.created_at FROM credentials c
    LEFT JOIN credential_versions v ON v.credential_id = c.id
    WHERE c.path = ANY(${textArray(paths)}::text[]) ORDER BY c.id, v.version`;
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

function toLoadedVersion({ id, number, stored_type: type, stored_at: createdAt, sealed }: Row) {
  const content = sealed instanceof Uint8Array ? sealed : new Uint8Array();
  return {
    credentialId: String(id) as CredentialId,
    version: { version: Number(number), type: String(type) as CredentialType, createdAt: Number(createdAt), content },
  };
}

/** A node that missed more epochs reloads everything. Removals are kept for longer. */
const MAX_EPOCHS_BEHIND = 10_000;
export const EPOCHS_RETAINED = 2 * MAX_EPOCHS_BEHIND;

/** Null if the node is too far behind and must reload everything. @throws errors of the driver */
export async function readControl(
  connection: Connection,
  afterEpoch: number,
  epoch: number,
): Promise<ControlChanges | null> {
  if (epoch - afterEpoch > MAX_EPOCHS_BEHIND || epoch < afterEpoch) return null;
  // WHY no upper limit: a row that was altered outside may have any epoch, and must be denied.
  const isMissed = sql`epoch > ${afterEpoch}::bigint`;
  const subjects = HELD_RESOURCES.map(
    (resource) => sql`SELECT ${subjectIn(resource)} FROM ${raw(RESOURCE_TABLES[resource].name)} WHERE ${isMissed}
      UNION SELECT ${subjectIn(resource, 'control_removals')} FROM control_removals WHERE resource = ${resource} AND ${isMissed}`,
  ).reduce((all, each) => sql`${all} UNION ${each}`);
  const [removed, states, ...changed] = await Promise.all([
    connection.query`SELECT resource, id, name FROM control_removals WHERE ${isMissed}`,
    connection.query`SELECT changed.subject, ${newestState(raw('changed.subject'))} AS state
      FROM (${subjects}) AS changed (subject)`,
    ...HELD_RESOURCES.map((resource) => readChanged(connection, resource, isMissed)),
  ]);
  const removals = removed.flatMap(({ resource: given, id, name }): HeldRemove[] => {
    // Only a row that was written outside Leasehold has another word.
    const resource = HELD_RESOURCES.find((each) => each === given);
    const row = { id: String(id), name: String(name) };
    return resource === undefined ? [] : [{ kind: 'remove', resource, row } as HeldRemove];
  });
  return { removals, puts: changed.flat(), states: new Map(toStates(states)) };
}

async function readChanged(connection: Connection, resource: HeldResource, isMissed: Statement): Promise<HeldPut[]> {
  const table: Table<object> = RESOURCE_TABLES[resource];
  const rows = await connection.query`SELECT ${table.list} FROM ${raw(table.name)} WHERE ${isMissed}`;
  return rows.map((row) => ({ kind: 'put', resource, row: table.decode(row) }) as HeldPut);
}
