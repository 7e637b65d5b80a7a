/** Writes a batch in one round trip with the commit: changes in order, rows of one kind together, and the head last. */
import type { Lease } from '../../core/lease.ts';
import { StoreError } from '../errors.ts';
import {
  AGENTS,
  AUDIT_ENTRIES,
  BULK_REVOCATIONS,
  CREDENTIAL_VERSIONS,
  IDEMPOTENCY_RECORDS,
  LEASES,
  POLICIES,
  SESSIONS,
  SPENT_CHALLENGES,
  USAGES,
} from '../schema.ts';
import { type Row, type Statement, sql } from '../statement.ts';
import type { Head, StoredChange, WriteSet } from '../store.ts';
import type { Connection } from './connection.ts';
import { putCredential, removeCredential } from './credential-writer.ts';
import { insertItems, upsertItems } from './insert-rows.ts';

type OfKind<Kind extends StoredChange['kind']> = Extract<StoredChange, { kind: Kind }>;

/** New rows that are collected until a change of another kind follows. */
const BATCHED_KINDS: ReadonlySet<StoredChange['kind']> = new Set(['addLease', 'putSession', 'consumeChallenge']);

export class PostgresBatchWriter {
  readonly #connection: Connection;
  readonly #batch: WriteSet;
  readonly #sent: Promise<unknown>[] = [];
  #leases: Lease[] = [];
  #sessions: OfKind<'putSession'>['session'][] = [];
  #challenges: OfKind<'consumeChallenge'>[] = [];

  constructor(connection: Connection, batch: WriteSet) {
    this.#connection = connection;
    this.#batch = batch;
  }

  /** @throws the error of the first statement that failed */
  async commit(before: Head | null): Promise<void> {
    const { entries, changes, head } = this.#batch;
    for (const change of changes) this.#apply(change);
    this.#flush();
    if (entries.length > 0) this.#write(insertItems(AUDIT_ENTRIES, entries));
    const written = writeHead(this.#connection, head, before);
    this.#sent.push(written);
    this.#write(sql`COMMIT`);
    const ended = await Promise.allSettled(this.#sent);
    const failed = ended.find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    assertWritten(await written);
  }

  /** Sends in call order; `commit` awaits all statements. */
  #write(statement: Statement): void {
    this.#sent.push(this.#connection.execute(statement));
  }

  #flush(): void {
    if (this.#leases.length > 0) this.#write(insertItems(LEASES, this.#leases));
    if (this.#sessions.length > 0) this.#write(insertItems(SESSIONS, this.#sessions));
    if (this.#challenges.length > 0) this.#write(insertItems(SPENT_CHALLENGES, this.#challenges));
    this.#leases = [];
    this.#sessions = [];
    this.#challenges = [];
  }

  #apply(change: StoredChange): void {
    const { epoch } = this.#batch.head;
    if (!BATCHED_KINDS.has(change.kind)) this.#flush();
    switch (change.kind) {
      case 'addLease':
        this.#leases.push(change.lease);
        return;
      case 'putSession':
        this.#sessions.push(change.session);
        return;
      case 'consumeChallenge':
        this.#challenges.push(change);
        return;
      case 'putAgent': {
        const { id, name } = change.agent;
        // Replaces a row that was altered outside: it is not used, and its name can be registered again.
        this.#write(sql`
          WITH removed AS (DELETE FROM agents WHERE id = ${id} OR lower(name) = lower(${name}) RETURNING id, name)
          INSERT INTO control_removals (epoch, agent_id, name) SELECT ${epoch}::bigint, id, name FROM removed WHERE id <> ${id}
          ON CONFLICT DO NOTHING`);
        this.#write(insertItems(AGENTS, [change.agent], epoch));
        return;
      }
      case 'removeAgent':
        this.#write(sql`DELETE FROM agents WHERE id = ${change.id}`);
        this.#write(recordRemoval(epoch, change.id, change.name));
        return;
      case 'putPolicy':
        this.#write(sql`DELETE FROM policies WHERE name = ${change.policy.name}`);
        this.#write(insertItems(POLICIES, [change.policy], epoch));
        return;
      case 'removePolicy':
        this.#write(sql`DELETE FROM policies WHERE name = ${change.name}`);
        this.#write(recordRemoval(epoch, '', change.name));
        return;
      case 'removeSession':
        this.#write(sql`DELETE FROM sessions WHERE token_hash = ${change.tokenHash}`);
        return;
      case 'saveIdempotencyRecord':
        // Replaces a record that expired or was altered outside.
        this.#write(upsertItems(IDEMPOTENCY_RECORDS, [change.record]));
        return;
      case 'putUsage':
        this.#write(sql`DELETE FROM usages WHERE path = ${change.usage.path}`);
        this.#write(insertItems(USAGES, [change.usage]));
        return;
      case 'removeUsage':
        this.#write(sql`DELETE FROM usages WHERE path = ${change.path}`);
        return;
      case 'putCredential':
        for (const statement of putCredential(change.credential)) this.#write(statement);
        return;
      case 'removeCredential':
        for (const statement of removeCredential(change.id)) this.#write(statement);
        return;
      case 'addVersion': {
        const { credentialId, version, sealed } = change;
        this.#write(insertItems(CREDENTIAL_VERSIONS, [{ ...version, credentialId, sealed }]));
        return;
      }
      case 'pruneVersions':
        this.#write(sql`DELETE FROM credential_versions
          WHERE credential_id = ${change.credentialId} AND version <= ${change.through}`);
        return;
      case 'renewLease':
        this.#write(sql`UPDATE leases SET expires_at = ${change.expiresAt}, policy_name = ${change.policyName}
          WHERE id = ${change.id}`);
        return;
      case 'revokeLease':
        this.#write(sql`UPDATE leases SET revoked_at = ${change.revokedAt} WHERE id = ${change.id}`);
        return;
      case 'revokeMatching': {
        const { agentId, credentialId, kind, ...revocation } = change.revocation;
        const scope = { agentId: agentId ?? '', credentialId: credentialId ?? '', kind: kind ?? '' };
        this.#write(insertItems(BULK_REVOCATIONS, [{ ...revocation, ...scope }]));
        return;
      }
    }
  }
}

/** For other nodes. */
function recordRemoval(epoch: number, agentId: string, name: string): Statement {
  return sql`INSERT INTO control_removals (epoch, agent_id, name) VALUES (${epoch}, ${agentId}, ${name})
    ON CONFLICT DO NOTHING`;
}

/** Resolves to one row, or to none if the head is not the one of the beginning. */
function writeHead(
  connection: Connection,
  { seq, hmac, mac, epoch }: Head,
  before: Head | null,
): Promise<readonly Row[]> {
  if (before === null) {
    return connection.query`INSERT INTO audit_head (id, seq, hmac, mac, epoch)
      VALUES (1, ${seq}, ${hmac}, ${mac}, ${epoch}) RETURNING 1 AS written`;
  }
  return connection.query`UPDATE audit_head SET seq = ${seq}, hmac = ${hmac}, mac = ${mac}, epoch = ${epoch}
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
