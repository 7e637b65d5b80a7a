/** Writes a batch in one round trip with the commit: changes in order, rows of one kind together, and the head last. */

import { isHeldChange } from '../../core/change.ts';
import type { CredentialId } from '../../core/names.ts';
import { type ChangeTarget, writeChange } from '../changes.ts';
import { StoreError } from '../errors.ts';
import {
  AUDIT_ENTRIES,
  AUDIT_TREE,
  CREDENTIAL_VERSIONS,
  CREDENTIALS,
  LEASES,
  RESOURCE_TABLES,
  SESSIONS,
  SPENT_CHALLENGES,
} from '../schema.ts';
import { type Row, raw, type Statement, sql } from '../statement.ts';
import type { Head, HeldPut, HeldRemove, StoredChange, StoredPut, WriteSet } from '../stored-data.ts';
import type { Table } from '../table.ts';
import type { Connection } from './connection.ts';
import { insertHead } from './dialect.ts';
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
    switch (change.kind) {
      case 'put':
        this.#put(change);
        return;
      case 'remove':
        if (change.resource === 'credential') this.#removeCredential(change.row.id);
        else {
          writeChange(change, this);
          if (isHeldChange(change)) this.write(recordRemoval(this.#batch.head.epoch, change));
        }
        return;
      case 'addLease':
        this.insert(LEASES, change.lease);
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

  #put(change: StoredPut): void {
    if (isHeldPut(change)) {
      const { resource, row } = change;
      const { epoch } = this.#batch.head;
      const table: Table<object> = RESOURCE_TABLES[resource];
      this.write(removeSameNamed(change, epoch));
      this.write(insertItems(table, [row], epoch));
    } else if (change.resource === 'session' && change.row.endsAt === null) {
      // WHY not `replace`: the rows of new sessions are written together.
      this.insert(SESSIONS, change.row);
    } else writeChange(change, this);
    if (change.resource === 'credential') {
      this.write(sql`INSERT INTO access_counts (credential_id, count) VALUES (${change.row.id}, 0)
        ON CONFLICT DO NOTHING`);
    }
  }

  #removeCredential(id: CredentialId): void {
    // ORDER: take the counting lock first; the counting job holds many row locks, and the reverse order could
    // deadlock.
    this.write(sql`SELECT 1 FROM access_count_progress WHERE id = 1 FOR UPDATE`);
    this.write(sql`DELETE FROM credentials WHERE id = ${id}`);
    this.write(sql`DELETE FROM credential_versions WHERE credential_id = ${id}`);
    this.write(sql`DELETE FROM access_counts WHERE credential_id = ${id}`);
  }
}

function isHeldPut(change: StoredPut): change is HeldPut {
  return isHeldChange(change);
}

/**
 * Deletes the row with the key, and a row that was altered outside to have the same name in any case. An altered row is
 * not used, and its name can be registered again.
 */
function removeSameNamed({ resource, row }: HeldPut, epoch: number): Statement {
  if (resource === 'policy') return sql`DELETE FROM policies WHERE name = ${row.name}`;
  const table = raw(RESOURCE_TABLES[resource].name);
  return sql`
    WITH removed AS (
      DELETE FROM ${table} WHERE id = ${row.id} OR lower(name) = lower(${row.name}) RETURNING id, name)
    INSERT INTO control_removals (epoch, resource, id, name)
      SELECT ${epoch}::bigint, ${resource}, id, name FROM removed WHERE id <> ${row.id}
    ON CONFLICT DO NOTHING`;
}

function recordRemoval(epoch: number, { resource, row }: HeldRemove): Statement {
  const id = resource === 'policy' ? '' : row.id;
  return sql`INSERT INTO control_removals (epoch, resource, id, name) VALUES (${epoch}, ${resource}, ${id}, ${row.name})
    ON CONFLICT DO NOTHING`;
}

/** Resolves to one row, or to none if the head record is no longer `before`. */
function writeHead(connection: Connection, head: Head, before: Head | null): Promise<readonly Row[]> {
  if (before === null) return connection.query`${insertHead(head)} RETURNING 1 AS written`;
  const { seq, hmac, mac, epoch, tree, control } = head;
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
  throw new StoreError(
    'unknown',
    'PostgreSQL: the head of the audit log changed during a transaction that had locked it',
  );
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
