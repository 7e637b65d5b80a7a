/** Writes a batch in one round trip with the commit: changes in order, rows of one kind together, and the head last. */

import { type ChangeTarget, writeChange } from '../changes.ts';
import { StoreError } from '../errors.ts';
import {
  AGENTS,
  AUDIT_ENTRIES,
  AUDIT_TREE,
  CREDENTIAL_VERSIONS,
  CREDENTIALS,
  LEASES,
  OPERATORS,
  POLICIES,
  SESSIONS,
  SPENT_CHALLENGES,
} from '../schema.ts';
import { type Row, type Statement, sql } from '../statement.ts';
import type { Head, StoredChange, WriteSet } from '../store.ts';
import type { Table } from '../table.ts';
import type { Connection } from './connection.ts';
import { insertItems, upsertItems } from './insert-rows.ts';

export class PostgresBatchWriter implements ChangeTarget {
  readonly #connection: Connection;
  readonly #batch: WriteSet;
  readonly #sent: Promise<unknown>[] = [];
  /** New rows by table, which are written together before the next statement. */
  readonly #inserts = new Map<Table<object>, object[]>();

  constructor(connection: Connection, batch: WriteSet) {
    this.#connection = connection;
    this.#batch = batch;
  }

  /** @throws the error of the first statement that failed */
  async commit(before: Head | null): Promise<void> {
    const { entries, changes, treeNodes, head } = this.#batch;
    for (const change of changes) this.#apply(change);
    for (const entry of entries) this.insert(AUDIT_ENTRIES, entry);
    this.#flush();
    if (treeNodes.length > 0) this.write(upsertItems(AUDIT_TREE, treeNodes));
    const written = writeHead(this.#connection, head, before);
    this.#sent.push(written);
    this.write(sql`COMMIT`);
    const ended = await Promise.allSettled(this.#sent);
    const failed = ended.find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    assertWritten(await written);
  }

  /** Sends in call order; `commit` awaits all statements. */
  write(statement: Statement): void {
    this.#flush();
    this.#sent.push(this.#connection.execute(statement));
  }

  insert<T extends object>(table: Table<T>, item: T): void {
    const items = this.#inserts.get(table) ?? [];
    items.push(item);
    this.#inserts.set(table, items);
  }

  replace<T extends object>(table: Table<T>, item: T): void {
    this.write(upsertItems(table, [item]));
  }

  #flush(): void {
    for (const [table, items] of this.#inserts) this.#sent.push(this.#connection.execute(insertItems(table, items)));
    this.#inserts.clear();
  }

  #apply(change: StoredChange): void {
    const { epoch } = this.#batch.head;
    switch (change.kind) {
      case 'addLease':
        this.insert(LEASES, change.lease);
        return;
      case 'putAgent': {
        const { id, name } = change.agent;
        // Replaces a row that was altered outside: it is not used, and its name can be registered again.
        this.write(sql`
          WITH removed AS (DELETE FROM agents WHERE id = ${id} OR lower(name) = lower(${name}) RETURNING id, name)
          INSERT INTO control_removals (epoch, agent_id, name) SELECT ${epoch}::bigint, id, name FROM removed WHERE id <> ${id}
          ON CONFLICT DO NOTHING`);
        this.write(insertItems(AGENTS, [change.agent], epoch));
        return;
      }
      case 'removeAgent':
        this.write(sql`DELETE FROM agents WHERE id = ${change.id}`);
        this.write(recordRemoval(epoch, change.id, change.name));
        return;
      case 'putOperator':
        this.write(
          sql`DELETE FROM operators WHERE id = ${change.operator.id} OR lower(name) = lower(${change.operator.name})`,
        );
        this.write(insertItems(OPERATORS, [change.operator], epoch));
        return;
      case 'removeOperator':
        this.write(sql`DELETE FROM operators WHERE name = ${change.name}`);
        this.write(recordRemoval(epoch, '', change.name));
        return;
      case 'putPolicy':
        this.write(sql`DELETE FROM policies WHERE name = ${change.policy.name}`);
        this.write(insertItems(POLICIES, [change.policy], epoch));
        return;
      case 'removePolicy':
        this.write(sql`DELETE FROM policies WHERE name = ${change.name}`);
        this.write(recordRemoval(epoch, '', change.name));
        return;
      case 'putCredential':
        this.replace(CREDENTIALS, change.credential);
        this.write(sql`INSERT INTO access_counts (credential_id, count) VALUES (${change.credential.id}, 0)
          ON CONFLICT DO NOTHING`);
        return;
      case 'removeCredential':
        // ORDER: take the counting lock first; the counting job holds many row locks, and the reverse order could
        // deadlock.
        this.write(sql`SELECT 1 FROM access_count_progress WHERE id = 1 FOR UPDATE`);
        this.write(sql`DELETE FROM credentials WHERE id = ${change.id}`);
        this.write(sql`DELETE FROM credential_versions WHERE credential_id = ${change.id}`);
        this.write(sql`DELETE FROM access_counts WHERE credential_id = ${change.id}`);
        return;
      case 'addVersion': {
        const { credentialId, version, sealed } = change;
        this.insert(CREDENTIAL_VERSIONS, { ...version, credentialId, sealed });
        return;
      }
      case 'pruneVersions':
        this.write(sql`DELETE FROM credential_versions
          WHERE credential_id = ${change.credentialId} AND version <= ${change.through}`);
        return;
      default:
        writeChange(change, this);
    }
  }
}

function recordRemoval(epoch: number, agentId: string, name: string): Statement {
  return sql`INSERT INTO control_removals (epoch, agent_id, name) VALUES (${epoch}, ${agentId}, ${name})
    ON CONFLICT DO NOTHING`;
}

/** Resolves to one row, or to none if the head is not the one of the beginning. */
function writeHead(
  connection: Connection,
  { seq, hmac, mac, epoch, tree, control }: Head,
  before: Head | null,
): Promise<readonly Row[]> {
  if (before === null) {
    return connection.query`INSERT INTO audit_head (id, seq, hmac, mac, epoch, tree, control)
      VALUES (1, ${seq}, ${hmac}, ${mac}, ${epoch}, ${tree}, ${control}) RETURNING 1 AS written`;
  }
  return connection.query`UPDATE audit_head
    SET seq = ${seq}, hmac = ${hmac}, mac = ${mac}, epoch = ${epoch}, tree = ${tree}, control = ${control}
    WHERE id = 1 AND seq = ${before.seq} AND hmac = ${before.hmac} AND epoch = ${before.epoch} RETURNING 1 AS written`;
}

/**
 * The lock on the head keeps it unchanged. If the lock did not hold, the entries have sequence numbers that exist, and
 * their primary key aborts the transaction; a batch without entries ends here, with the head of the other node.
 */
function assertWritten(rows: readonly Row[]): void {
  if (rows.length === 1) return;
  throw new StoreError('unknown', 'PostgreSQL: the head of the log changed during a transaction that had locked it');
}

/** Prepares the statements of retrievals, logins and stores. */
export function prepareWrites(connection: Connection): Promise<unknown> {
  const head: Head = { seq: 0, hmac: '', mac: '', epoch: 0, tree: '', control: '' };
  const tables: readonly Table<object>[] = [AUDIT_ENTRIES, LEASES, SESSIONS, SPENT_CHALLENGES, CREDENTIAL_VERSIONS];
  return Promise.all([
    ...tables.map((table) => connection.execute(insertItems(table, []))),
    connection.execute(upsertItems(CREDENTIALS, [])),
    writeHead(connection, head, head),
    connection.query`COMMIT`,
  ]);
}
