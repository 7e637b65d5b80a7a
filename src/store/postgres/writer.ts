/** Writes a batch in one round trip with the commit: changes in order, rows of one kind together, and the head last. */
import type { AuditEntry } from '../../core/audit.ts';
import type { Lease } from '../../core/lease.ts';
import type { Row } from '../decode-rows.ts';
import type { Head, StoredChange, WriteSet } from '../store.ts';
import type { Connection } from './connection.ts';
import {
  addVersion,
  prepareCredentialWrites,
  pruneVersions,
  putCredential,
  removeCredential,
} from './credential-writer.ts';

type OfKind<Kind extends StoredChange['kind']> = Extract<StoredChange, { kind: Kind }>;

/** New rows that are collected until a change of another kind follows. */
const BATCHED_KINDS: ReadonlySet<StoredChange['kind']> = new Set(['addLease', 'putSession', 'consumeChallenge']);

export class BatchWriter {
  readonly #connection: Connection;
  readonly #batch: WriteSet;
  readonly #written: Promise<unknown>[] = [];
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
    if (entries.length > 0) this.#write(insertEntries(this.#connection, entries));
    this.#write(writeHead(this.#connection, head, before));
    this.#write(this.#connection.query`COMMIT`);
    const ended = await Promise.allSettled(this.#written);
    const failed = ended.find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Sends in call order; `commit` awaits all statements. */
  #write(statement: Promise<unknown>): void {
    statement.catch(() => undefined);
    this.#written.push(statement);
  }

  #flush(): void {
    if (this.#leases.length > 0) this.#write(insertLeases(this.#connection, this.#leases));
    if (this.#sessions.length > 0) this.#write(insertSessions(this.#connection, this.#sessions));
    if (this.#challenges.length > 0) this.#write(insertChallenges(this.#connection, this.#challenges));
    this.#leases = [];
    this.#sessions = [];
    this.#challenges = [];
  }

  #apply(change: StoredChange): void {
    const connection = this.#connection;
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
        const { id, name, description, publicKey, registeredAt, mac } = change.agent;
        // Replaces a row that was altered outside: it is not used, and its name can be registered again.
        this.#write(connection.query`
          WITH removed AS (DELETE FROM agents WHERE id = ${id} OR lower(name) = lower(${name}) RETURNING id, name)
          INSERT INTO control_removals (epoch, agent_id, name) SELECT ${epoch}::bigint, id, name FROM removed WHERE id <> ${id}
          ON CONFLICT DO NOTHING`);
        this.#write(connection.query`INSERT INTO agents (id, name, description, public_key, registered_at, mac, epoch)
          VALUES (${id}, ${name}, ${description}, ${publicKey}, ${registeredAt}, ${mac}, ${epoch})`);
        return;
      }
      case 'removeAgent':
        this.#write(connection.query`DELETE FROM agents WHERE id = ${change.id}`);
        this.#write(recordRemoval(connection, epoch, change.id, change.name));
        return;
      case 'putPolicy': {
        const { name, principal, resources, actions, maxTtlSeconds, createdAt, mac } = change.policy;
        const [onResources, ofActions] = [JSON.stringify(resources), JSON.stringify(actions)];
        this.#write(connection.query`DELETE FROM policies WHERE name = ${name}`);
        this.#write(connection.query`INSERT INTO policies (name, principal, resources, actions, max_ttl, created_at, mac, epoch)
          VALUES (${name}, ${principal}, ${onResources}, ${ofActions}, ${maxTtlSeconds}, ${createdAt}, ${mac}, ${epoch})`);
        return;
      }
      case 'removePolicy':
        this.#write(connection.query`DELETE FROM policies WHERE name = ${change.name}`);
        this.#write(recordRemoval(connection, epoch, '', change.name));
        return;
      case 'removeSession':
        this.#write(connection.query`DELETE FROM sessions WHERE token_hash = ${change.tokenHash}`);
        return;
      case 'saveIdempotencyRecord': {
        const { id, agentId, requestMac, reply, expiresAt, mac } = change.reply;
        // Replaces a record that expired or was altered outside.
        this.#write(connection.query`INSERT INTO idempotency_records (id, agent_id, request_mac, reply, expires_at, mac)
          VALUES (${id}, ${agentId}, ${requestMac}, ${reply}, ${expiresAt}, ${mac})
          ON CONFLICT (id) DO UPDATE SET agent_id = excluded.agent_id, request_mac = excluded.request_mac,
            reply = excluded.reply, expires_at = excluded.expires_at, mac = excluded.mac`);
        return;
      }
      case 'putCredential':
        for (const statement of putCredential(connection, change.credential)) this.#write(statement);
        return;
      case 'removeCredential':
        for (const statement of removeCredential(connection, change.id)) this.#write(statement);
        return;
      case 'addVersion':
        this.#write(addVersion(connection, change.credentialId, change.version, change.sealed));
        return;
      case 'pruneVersions':
        this.#write(pruneVersions(connection, change.credentialId, change.through));
        return;
      case 'renewLease':
        this.#write(connection.query`UPDATE leases SET expires_at = ${change.expiresAt}, policy_name = ${change.policyName}
          WHERE id = ${change.id}`);
        return;
      case 'revokeLease':
        this.#write(connection.query`UPDATE leases SET revoked_at = ${change.revokedAt} WHERE id = ${change.id}`);
        return;
      case 'revokeMatching': {
        const { seq, agentId, credentialId, revokedAt } = change.mark;
        this.#write(connection.query`INSERT INTO bulk_revocations (seq, agent_id, credential_id, revoked_at)
          VALUES (${seq}, ${agentId ?? ''}, ${credentialId ?? ''}, ${revokedAt})`);
        return;
      }
    }
  }
}

/** For other nodes. */
function recordRemoval(connection: Connection, epoch: number, agentId: string, name: string): Promise<unknown> {
  return connection.query`INSERT INTO control_removals (epoch, agent_id, name) VALUES (${epoch}, ${agentId}, ${name})
    ON CONFLICT DO NOTHING`;
}

function insertEntries(connection: Connection, entries: readonly AuditEntry[]): Promise<unknown> {
  return connection.query`INSERT INTO audit_entries (seq, id, timestamp, event_type, agent_name, resource, action, result,
      policy_name, lease_id, reason, request_id, remote_addr, hmac)
    SELECT * FROM json_to_recordset(${JSON.stringify(entries)}::text::json) AS e (seq bigint, id text, timestamp text,
      event_type text, agent_name text, resource text, action text, result text, policy_name text, lease_id text, reason text,
      request_id text, remote_addr text, hmac text)`;
}

function insertLeases(connection: Connection, leases: readonly Lease[]): Promise<unknown> {
  return connection.query`INSERT INTO leases (seq, id, agent_id, credential_id, agent_name, path, version, policy_name, issued_at,
      expires_at, revoked_at)
    SELECT * FROM json_to_recordset(${JSON.stringify(leases)}::text::json) AS l (seq bigint, id text, "agentId" text,
      "credentialId" text, "agentName" text, path text, version bigint, "policyName" text, "issuedAt" bigint, "expiresAt" bigint,
      "revokedAt" bigint)`;
}

function insertSessions(connection: Connection, sessions: readonly object[]): Promise<unknown> {
  return connection.query`INSERT INTO sessions (token_hash, agent_id, issued_at, expires_at, mac)
    SELECT * FROM json_to_recordset(${JSON.stringify(sessions)}::text::json) AS s ("tokenHash" text, "agentId" text,
      "issuedAt" bigint, "expiresAt" bigint, mac text)`;
}

function insertChallenges(connection: Connection, challenges: readonly object[]): Promise<unknown> {
  return connection.query`INSERT INTO spent_challenges (id, expires_at)
    SELECT * FROM json_to_recordset(${JSON.stringify(challenges)}::text::json) AS c (id text, "expiresAt" bigint)`;
}

/**
 * Fails with a division by zero if the head has changed since the beginning, which means that the lock did not hold.
 */
function writeHead(
  connection: Connection,
  { seq, hmac, mac, epoch }: Head,
  before: Head | null,
): Promise<readonly Row[]> {
  if (before === null) {
    return connection.query`INSERT INTO audit_head (id, seq, hmac, mac, epoch) VALUES (1, ${seq}, ${hmac}, ${mac}, ${epoch})`;
  }
  return connection.query`WITH written AS (
      UPDATE audit_head SET seq = ${seq}, hmac = ${hmac}, mac = ${mac}, epoch = ${epoch}
      WHERE id = 1 AND seq = ${before.seq} AND hmac = ${before.hmac} AND epoch = ${before.epoch} RETURNING 1
    ) SELECT 1 / count(*)::integer FROM written`;
}

/** Prepares the statements of retrievals, logins and stores. */
export function prepareWrites(connection: Connection): Promise<unknown> {
  const head: Head = { seq: 0, hmac: '', mac: '', epoch: 0 };
  return Promise.all([
    insertEntries(connection, []),
    insertLeases(connection, []),
    insertSessions(connection, []),
    insertChallenges(connection, []),
    ...prepareCredentialWrites(connection),
    writeHead(connection, head, head),
    connection.query`COMMIT`,
  ]);
}
