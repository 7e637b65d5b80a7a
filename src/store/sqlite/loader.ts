/** Loading what a turn's keys name. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Credential } from '../../core/credential.ts';
import type { Keys } from '../../core/workspace.ts';
import type { Found } from '../port.ts';
import { type Row, toCredential, toLease, toNewestVersion, toSession, toVersion } from './rows.ts';

/** A list that a turn's keys fill: the port's are read-only. */
type Filling<T> = { -readonly [Key in keyof T]: T[Key] extends readonly (infer Item)[] ? Item[] : T[Key] };

export class KeyLoader {
  readonly #database: DatabaseSync;
  readonly #newest: StatementSync;
  readonly #credential: StatementSync;
  readonly #version: StatementSync;
  readonly #history: StatementSync;
  readonly #session: StatementSync;
  readonly #lease: StatementSync;
  readonly #spent: StatementSync;
  readonly #activeLeases: StatementSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#newest = database.prepare(
      `SELECT c.*, v.type AS version_type, v.created_at AS version_created_at, v.sealed FROM credentials c
       LEFT JOIN credential_versions v ON v.credential_id = c.id AND v.version = c.version WHERE c.path = ?`,
    );
    this.#credential = database.prepare('SELECT * FROM credentials WHERE path = ?');
    this.#version = database.prepare('SELECT * FROM credential_versions WHERE credential_id = ? AND version = ?');
    this.#history = database.prepare(
      'SELECT version, created_at FROM credential_versions WHERE credential_id = ? ORDER BY version',
    );
    this.#session = database.prepare('SELECT * FROM sessions WHERE token_hash = ?');
    this.#lease = database.prepare('SELECT * FROM leases_now WHERE id = ?');
    this.#spent = database.prepare('SELECT 1 FROM spent_challenges WHERE id = ?');
    this.#activeLeases = database.prepare(
      `SELECT count(*) AS n FROM leases_now
       WHERE expires_at > :now AND revoked_at IS NULL
         AND (:agentName IS NULL OR agent_name = :agentName) AND (:path IS NULL OR path = :path)`,
    );
  }

  /** Loads the union of the keys; each row once. */
  load(keys: readonly Keys[], now: number): Found {
    // WHY a transaction: outside of one, each statement takes and drops the file's lock, two system calls.
    this.#database.exec('BEGIN');
    try {
      return this.#load(keys, now);
    } finally {
      this.#database.exec('COMMIT');
    }
  }

  #load(keys: readonly Keys[], now: number): Found {
    const found: Filling<Found> = {
      credentials: [],
      versions: [],
      histories: [],
      sessions: [],
      leases: [],
      spentChallenges: [],
      activeLeases: 0,
    };
    const credentials = new Map<string, Credential | null>();
    const seen = new Set<string>();
    const isNew = (key: string): boolean => !seen.has(key) && seen.add(key) !== undefined;
    for (const key of keys) {
      if (key.credential !== undefined) this.#loadCredential(key, credentials, found, isNew);
      if (key.session !== undefined && isNew(`session ${key.session}`)) {
        const row = this.#session.get(key.session);
        if (row !== undefined) found.sessions.push(toSession(row));
      }
      if (key.lease !== undefined && isNew(`lease ${key.lease}`)) {
        const row = this.#lease.get(key.lease);
        if (row !== undefined) found.leases.push(toLease(row));
      }
      if (key.challenge !== undefined && this.#spent.get(key.challenge) !== undefined) {
        found.spentChallenges.push(key.challenge);
      }
      if (key.activeLeases !== undefined) {
        const { agentName, path } = key.activeLeases;
        found.activeLeases = Number(this.#activeLeases.get({ now, agentName, path })?.['n'] ?? 0);
      }
    }
    return found;
  }

  #loadCredential(
    key: Keys,
    credentials: Map<string, Credential | null>,
    found: Filling<Found>,
    isNew: (key: string) => boolean,
  ): void {
    const path = key.credential ?? '';
    let credential = credentials.get(path);
    if (credential === undefined) {
      // The newest version, which nearly everyone asks for, comes along in one look.
      const row = (key.version === 'newest' ? this.#newest : this.#credential).get(path);
      credential = row === undefined ? null : toCredential(row);
      credentials.set(path, credential);
      if (credential !== null) found.credentials.push(credential);
      if (row?.['sealed'] instanceof Uint8Array && credential !== null) {
        isNew(`version ${credential.id} ${credential.version}`);
        found.versions.push({ credentialId: credential.id, version: toNewestVersion(row) });
      }
    }
    if (credential === null) return;
    const { id } = credential;
    if (key.version !== undefined) {
      const version = key.version === 'newest' ? credential.version : key.version;
      const row = isNew(`version ${id} ${version}`) ? this.#version.get(id, version) : undefined;
      if (row !== undefined) found.versions.push({ credentialId: id, version: toVersion(row) });
    }
    if (key.history && isNew(`history ${id}`)) {
      const versions = this.#history.all(id).map((row: Row) => ({
        version: Number(row['version']),
        createdAt: Number(row['created_at']),
      }));
      found.histories.push({ credentialId: id, versions });
    }
  }
}
