/** Loads the read sets of a transaction, and caches recently retrieved credentials. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { LRUCache } from 'lru-cache';
import type { ReadSet } from '../../core/batch-state.ts';
import type { CredentialId } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import { KEYED_RESOURCES, type KeyedResource, recordedSubject, subjectOf } from '../../core/resources.ts';
import type { Credential, CredentialVersion } from '../../vault/credentials/credential.ts';
import { MAX_APPROVALS_OF_KEY } from '../approval-lists.ts';
import { CREDENTIAL_VERSIONS, CREDENTIALS, KEY_SLOTS, LEASES, RESOURCE_TABLES } from '../schema.ts';
import type { Row } from '../statement.ts';
import type { Authenticated, LoadedFromStore, WriteSet } from '../stored-data.ts';
import type { Table } from '../table.ts';
import type { CountRowId } from './access-counts.ts';
import { readAll } from './statements.ts';

/** A credential by its path, with its newest version if that row stores it, for `toCredentialWithNewest`. */
const CREDENTIAL_WITH_NEWEST = `SELECT ${CREDENTIALS.list.parts.join('')}, count_id, newest_at, newest_sealed
  FROM credentials WHERE path = ?`;

/** A version of a credential, from either table; bind both parameters twice. */
const VERSION = `SELECT version, type, created_at, sealed FROM credential_versions
  WHERE credential_id = ? AND version = ?
  UNION ALL SELECT version, type, newest_at, newest_sealed FROM credentials
  WHERE id = ? AND version = ? AND newest_sealed IS NOT NULL`;

/** The times at which the versions of a credential were stored; bind the parameter twice. */
const HISTORY = `SELECT version, created_at FROM credential_versions WHERE credential_id = ?
  UNION ALL SELECT version, newest_at FROM credentials WHERE id = ? AND newest_sealed IS NOT NULL ORDER BY version`;

type OwnColumns = [countId: number, newestAt: number | null, sealed: Uint8Array | null];

/** `newest` is null if the row does not store it. */
function toCredentialWithNewest(row: unknown): CachedCredential {
  const values = row as unknown[];
  const credential = CREDENTIALS.decodeArray(values);
  const [countId, newestAt, sealed] = values.slice(CREDENTIALS.columns.length) as OwnColumns;
  const { version, type } = credential;
  return {
    credential,
    countId,
    newest: newestAt === null || sealed === null ? null : { version, type, createdAt: newestAt, content: sealed },
  };
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] extends readonly (infer Item)[] ? Item[] : T[Key] };
type Found = Mutable<Omit<LoadedFromStore, 'rows'>> & { readonly rows: Mutable<LoadedFromStore['rows']> };

interface LoadedCredential extends RecordedCredential {
  /** The versions that were queried, whether found or not. */
  readonly versions: Set<number>;
  hasHistory: boolean;
}

export interface LoadResult {
  readonly found: LoadedFromStore;
  /** The count rows of the loaded credentials. */
  readonly countIds: ReadonlyMap<CredentialId, CountRowId>;
}

export class RowLoader {
  readonly #database: DatabaseSync;
  readonly #cache: CredentialCache;
  readonly #newest: StatementSync;
  readonly #version: StatementSync;
  readonly #history: StatementSync;
  readonly #byKey: Readonly<Record<KeyedResource, StatementSync>>;
  readonly #lease: StatementSync;
  readonly #leaseOfToken: StatementSync;
  readonly #spent: StatementSync;
  readonly #state: StatementSync;
  readonly #keySlots: StatementSync;
  readonly #approvalsOfKey: StatementSync;

  constructor(database: DatabaseSync, cache: CredentialCache) {
    this.#database = database;
    this.#cache = cache;
    this.#newest = database.prepare(CREDENTIAL_WITH_NEWEST);
    this.#newest.setReturnArrays(true);
    this.#version = database.prepare(VERSION);
    this.#history = database.prepare(HISTORY);
    const byKey = (resource: KeyedResource): StatementSync => {
      const { name, key } = RESOURCE_TABLES[resource];
      return database.prepare(`SELECT * FROM ${name} WHERE ${key[0]} = ?`);
    };
    this.#byKey = {
      session: byKey('session'),
      targets: byKey('targets'),
      approval: byKey('approval'),
      reply: byKey('reply'),
    };
    this.#lease = database.prepare('SELECT * FROM effective_leases WHERE id = ?');
    this.#leaseOfToken = database.prepare('SELECT * FROM effective_leases WHERE token_hash = ?');
    this.#spent = database.prepare('SELECT 1 FROM spent_challenges WHERE id = ?');
    this.#state = database.prepare('SELECT state FROM audit_entries WHERE subject = ? ORDER BY seq DESC LIMIT 1');
    this.#keySlots = database.prepare('SELECT * FROM key_slots');
    this.#approvalsOfKey = database.prepare(
      `SELECT * FROM approvals WHERE key = ? ORDER BY id DESC LIMIT ${MAX_APPROVALS_OF_KEY}`,
    );
  }

  load(reads: readonly ReadSet[]): LoadResult {
    // WHY a transaction: otherwise each statement locks and unlocks the file, which takes two system calls.
    this.#database.exec('BEGIN');
    try {
      this.#cache.refresh();
      return this.#load(reads);
    } finally {
      // SQLite has rolled back after an I/O error.
      if (this.#database.isTransaction) this.#database.exec('COMMIT');
    }
  }

  #load(reads: readonly ReadSet[]): LoadResult {
    const states = new Map<string, string>();
    const found: Found = {
      states,
      rows: { session: [], credential: [], targets: [], approval: [], reply: [] },
      versions: [],
      histories: [],
      leases: [],
      spentChallenges: [],
      keySlots: [],
    };
    const credentials = new Map<CredentialPath, LoadedCredential | null>();
    const seen = new Set<string>();
    const isNew = (key: string): boolean => !seen.has(key) && seen.add(key) !== undefined;
    for (const read of reads) {
      if (read.credential !== undefined) this.#loadCredential(read.credential, read, credentials, found, states);
      for (const resource of KEYED_RESOURCES) {
        const key = read[resource];
        if (key !== undefined && isNew(`${resource} ${key}`)) {
          this.#add(resource, readAll(this.#byKey[resource], key), found, states);
        }
      }
      if (read.approvalKey !== undefined && isNew(`approvals ${read.approvalKey}`)) {
        const rows = readAll(this.#approvalsOfKey, read.approvalKey);
        this.#add(
          'approval',
          rows.filter(({ id }) => isNew(`approval ${id}`)),
          found,
          states,
        );
      }
      if (read.lease !== undefined && isNew(`lease ${read.lease}`)) {
        const [row] = readAll(this.#lease, read.lease);
        if (row !== undefined) found.leases.push(LEASES.decode(row));
      }
      if (read.leaseToken !== undefined && isNew(`token ${read.leaseToken}`)) {
        const [row] = readAll(this.#leaseOfToken, read.leaseToken);
        if (row !== undefined) found.leases.push(LEASES.decode(row));
      }
      if (read.challenge !== undefined && this.#spent.get(read.challenge) !== undefined) {
        found.spentChallenges.push(read.challenge);
      }
      if (read.keySlots && isNew('key slots')) {
        found.keySlots.push(...readAll(this.#keySlots).map((row) => KEY_SLOTS.decode(row)));
      }
    }
    const countIds = new Map<CredentialId, CountRowId>();
    for (const credential of credentials.values())
      if (credential !== null) countIds.set(credential.credential.id, credential.countId);
    return { found, countIds };
  }

  /** Adds the rows, and the states that the audit log records for them. */
  #add(resource: KeyedResource, rows: readonly Row[], found: Found, states: Map<string, string>): void {
    const table: Table<object> = RESOURCE_TABLES[resource];
    const added: object[] = found.rows[resource];
    for (const row of rows.map((each) => table.decode(each))) {
      added.push(row);
      const subject = recordedSubject(resource, row);
      if (subject !== null) this.#loadState(subject, states);
    }
  }

  #loadCredential(
    path: CredentialPath,
    { version, history }: ReadSet,
    loaded: Map<CredentialPath, LoadedCredential | null>,
    found: Found,
    states: Map<string, string>,
  ): void {
    let known = loaded.get(path);
    if (known === undefined) {
      const credential = this.#find(path);
      known = credential === null ? null : { ...credential, versions: new Set(), hasHistory: false };
      loaded.set(path, known);
      if (known !== null) {
        found.rows.credential.push(known.credential);
        if (known.state !== null) states.set(known.subject, known.state);
      }
    }
    if (known === null) return;
    const { credential, newest, versions } = known;
    const { id } = credential;
    const wanted = version === 'newest' ? credential.version : version;
    if (wanted !== undefined && !versions.has(wanted)) {
      versions.add(wanted);
      const content = wanted === credential.version ? newest : this.#findVersion(id, wanted);
      if (content !== null) found.versions.push({ credentialId: id, version: content });
    }
    if (history && !known.hasHistory) {
      known.hasHistory = true;
      const infos = readAll(this.#history, id, id).map((row) => ({
        version: Number(row['version']),
        createdAt: Number(row['created_at']),
      }));
      found.histories.push({ credentialId: id, versions: infos });
    }
  }

  #findVersion(id: CredentialId, number: number): CredentialVersion | null {
    const [row] = readAll(this.#version, id, number, id, number);
    if (row === undefined) return null;
    const { version, type, createdAt, sealed } = CREDENTIAL_VERSIONS.decode(row);
    return { version, type, createdAt, content: sealed };
  }

  /** Reads the newest version, which nearly every operation needs, in the same query. */
  #find(path: CredentialPath): RecordedCredential | null {
    const cached = this.#cache.get(path);
    if (cached !== null) return cached;
    const [row] = readAll(this.#newest, path);
    if (row === undefined) return null;
    const { credential, countId, newest } = toCredentialWithNewest(row);
    const subject = subjectOf('credential', { path });
    const state = this.#findState(subject);
    const value = newest ?? this.#findVersion(credential.id, credential.version);
    const read = { credential, countId, newest: value, subject, state };
    this.#cache.maybeAdmit(path, read);
    return read;
  }

  #loadState(subject: string, states: Map<string, string>): void {
    const state = this.#findState(subject);
    if (state !== null) states.set(subject, state);
  }

  #findState(subject: string): string | null {
    const state = this.#state.get(subject)?.['state'];
    return typeof state === 'string' ? state : null;
  }
}

// Recently retrieved credentials, with their newest values as stored (encrypted), to save queries. A write of this
// process drops its entries before the commit; a write of another process clears the cache.

interface CachedCredential {
  readonly credential: Authenticated<Credential>;
  readonly countId: CountRowId;
  readonly newest: CredentialVersion | null;
}

/** A credential with what the newest entry about it records; null if none does. */
export interface RecordedCredential extends CachedCredential {
  readonly subject: string;
  readonly state: string | null;
}

const MAX_BYTES = 8 * 1024 * 1024;
/** A larger one would evict a hundred others. */
const MAX_ENTRY_BYTES = 80 * 1024;
/** Approximate size of an entry without its value. */
const ENTRY_BYTES = 400;
/** WHY not all: with random access to a million credentials, admission costs more than it saves. */
const ADMISSION_RATE = 0.25;

export class CredentialCache {
  /** WHY `maxSize` without `max`: see ledger/budgets.ts. */
  readonly #byPath = new LRUCache<CredentialPath, RecordedCredential>({
    maxSize: MAX_BYTES,
    maxEntrySize: MAX_ENTRY_BYTES,
    sizeCalculation: ({ newest }) => ENTRY_BYTES + (newest?.content instanceof Uint8Array ? newest.content.length : 0),
  });
  /** Changes with every commit of another connection. SOURCE: sqlite.org/pragma.html#pragma_data_version */
  readonly #dataVersion: StatementSync;
  #seenVersion: unknown = null;

  constructor(database: DatabaseSync) {
    this.#dataVersion = database.prepare('PRAGMA data_version');
  }

  /** Call before the lookups of a transaction. */
  refresh(): void {
    const version = this.#dataVersion.get()?.['data_version'];
    if (version !== this.#seenVersion) this.#byPath.clear();
    this.#seenVersion = version;
  }

  get(path: CredentialPath): RecordedCredential | null {
    return this.#byPath.get(path) ?? null;
  }

  /** Frequent credentials are admitted soon. */
  maybeAdmit(path: CredentialPath, credential: RecordedCredential): void {
    if (Math.random() < ADMISSION_RATE) this.put(path, credential);
  }

  put(path: CredentialPath, credential: RecordedCredential): void {
    this.#byPath.set(path, credential);
  }

  /** Call before the batch is written: drops what it changes. */
  invalidate({ changes }: WriteSet): void {
    const dropped = new Set<CredentialId>();
    for (const change of changes) {
      if (change.kind === 'put' || change.kind === 'remove') {
        if (change.resource !== 'credential') continue;
        this.#byPath.delete(change.row.path);
        if (change.kind === 'put') dropped.add(change.row.id);
      } else if (change.kind === 'reencrypt') this.#byPath.delete(change.path);
      // The ledger changes versions only together with their credential.
      else if (change.kind === 'addVersion' || change.kind === 'pruneVersions') {
        if (!dropped.has(change.credentialId)) this.#byPath.clear();
      }
    }
  }
}
