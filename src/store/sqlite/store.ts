/** The store on one SQLite file. The process owns the file: a turn needs no lock but the transaction of its commit. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { AgentId, TokenHash } from '../../core/names.ts';
import type { Keys } from '../../core/workspace.ts';
import type { AuditFilter, CredentialQuery, Head, LeaseQuery, LogLocation, Store, Turn } from '../port.ts';
import { inTransaction, openDatabase, toFailure } from './database.ts';
import { Lists } from './lists.ts';
import { KeyLoader } from './loader.ts';
import { Log } from './log.ts';
import { toAgent, toPolicy, toSession } from './rows.ts';
import { Sweeper } from './sweeper.ts';
import { BatchWriter } from './writer.ts';

export class SqliteStore implements Store {
  readonly logLocation: LogLocation;
  readonly #database: DatabaseSync;
  readonly #loader: KeyLoader;
  readonly #writer: BatchWriter;
  readonly #lists: Lists;
  readonly #log: Log;
  readonly #sweeper: Sweeper;
  readonly #session: StatementSync;
  #turnClosed: Promise<void> = Promise.resolve();

  /** Opens the file, making it where it is missing. @throws StoreFailure */
  constructor(file: string) {
    this.logLocation = { kind: 'sqlite', file };
    this.#database = openDatabase(file);
    try {
      this.#loader = new KeyLoader(this.#database);
      this.#writer = new BatchWriter(this.#database);
      this.#lists = new Lists(this.#database);
      this.#log = new Log(this.#database);
      this.#sweeper = new Sweeper(this.#database);
      this.#session = this.#database.prepare('SELECT * FROM sessions WHERE token_hash = ?');
    } catch (error) {
      this.#database.close();
      throw toFailure(error);
    }
  }

  readKeyCheck() {
    return run(() => {
      const row = this.#database.prepare('SELECT key_check FROM vault').get();
      return row === undefined ? null : String(row['key_check']);
    });
  }

  initialise(keyCheck: string, { seq, hmac, mac, epoch }: Head, now: number) {
    return run(() =>
      inTransaction(this.#database, () => {
        this.#database.prepare('INSERT INTO vault VALUES (1, ?, ?, ?)').run(keyCheck, now, now);
        this.#database.prepare('INSERT INTO audit_head VALUES (1, ?, ?, ?, ?, 0)').run(seq, hmac, mac, epoch);
      }),
    );
  }

  readHead() {
    return run(() => this.#log.head());
  }

  isEmpty() {
    return run(() => {
      const tables = ['audit_entries', 'agents', 'policies', 'sessions', 'credentials', 'leases', 'revocation_marks'];
      return tables.every((table) => this.#database.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() === undefined);
    });
  }

  readAgents() {
    return run(() => this.#database.prepare('SELECT * FROM agents').all().map(toAgent));
  }

  readPolicies() {
    return run(() => this.#database.prepare('SELECT * FROM policies').all().map(toPolicy));
  }

  readUncounted() {
    return run(() => this.#log.uncounted());
  }

  readSession(tokenHash: TokenHash) {
    return run(() => {
      const row = this.#session.get(tokenHash);
      return row === undefined ? null : toSession(row);
    });
  }

  isAgentRevoked(agentId: AgentId) {
    return run(() => {
      const marks = this.#database.prepare("SELECT 1 FROM revocation_marks WHERE agent_id = ? AND credential_id = ''");
      return marks.get(agentId) !== undefined;
    });
  }

  /** Waits for the turn before: the ledger never does, it opens one at a time. */
  async openTurn(keys: readonly Keys[], now: number): Promise<Turn> {
    const before = this.#turnClosed;
    const { promise, resolve: close } = Promise.withResolvers<void>();
    this.#turnClosed = promise;
    await before;
    try {
      const found = this.#loader.load(keys, now);
      return {
        found,
        commit: (batch) => run(() => this.#writer.commit(batch)).finally(close),
        abandon: async () => close(),
      };
    } catch (error) {
      close();
      throw toFailure(error);
    }
  }

  listCredentials(query: CredentialQuery, after: string, offset: number, limit: number) {
    return run(() => this.#lists.credentials(query, after, offset, limit));
  }

  countCredentials(query: CredentialQuery) {
    return run(() => this.#lists.countCredentials(query));
  }

  listLeases(query: LeaseQuery, beforeSeq: number, offset: number, limit: number) {
    return run(() => this.#lists.leases(query, beforeSeq, offset, limit));
  }

  countLeases(query: LeaseQuery) {
    return run(() => this.#lists.countLeases(query));
  }

  readEntries(fromSeq: number, toSeq: number, limit: number) {
    return run(() => this.#log.entries(fromSeq, toSeq, limit));
  }

  matchEntries(filter: AuditFilter, fromSeq: number, toSeq: number) {
    return run(() => this.#log.matching(filter, fromSeq, toSeq));
  }

  findSeqAt(timestamp: string) {
    return run(() => this.#log.findSeqAt(timestamp));
  }

  readSeenTime() {
    return run(() => Number(this.#database.prepare('SELECT seen_at FROM vault').get()?.['seen_at'] ?? 0));
  }

  sweep(now: number, limit: number) {
    return run(() => this.#sweeper.sweep(now, limit));
  }

  close() {
    return run(() => this.#database.close());
  }
}

/** SQLite answers at once; what it throws becomes a rejection with the port's failure. */
function run<T>(work: () => T): Promise<T> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(toFailure(error));
  }
}
