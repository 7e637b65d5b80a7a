/**
 * Chooses the server for all connections of a process among the hosts of a list: the one that accepts writes and whose
 * log contains the logs of all others that respond. Rejects all of them rather than choose between two histories.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreError } from '../errors.ts';
import type { SeenEntry } from '../stored-data.ts';
import { Connection, READ_ONLY, withDeadline } from './connection.ts';
import { type DatabaseHost, describeHost, type PostgresAddress } from './database-url.ts';
import { toStoreError } from './errors.ts';
import { assertContains, LostEntryError } from './fence.ts';

/** How long others may answer after the first host that accepts writes. WHY: one that hangs must not delay failover. */
const GRACE_MS = 1000;
const ANSWER_TIMEOUT_MS = 5000;
/** A synchronous standby shows a commit shortly before its primary does. */
const STANDBY_TRIES = 10;
const STANDBY_RETRY_MS = 100;

/** A server of this process: a later promotion of the same database cluster has a higher timeline. */
export interface ChosenHost {
  readonly host: DatabaseHost;
  /** Identifies a database cluster and its copies. */
  readonly system: string;
  readonly timeline: number;
}

interface Candidate extends ChosenHost {
  readonly connection: Connection;
  readonly isWritable: boolean;
  /** The end of its log; null without a log. */
  readonly head: SeenEntry | null;
}

export interface Choice {
  readonly chosen: ChosenHost;
  /** Hosts that did not respond, so that their logs were not compared. */
  readonly unanswered: readonly string[];
}

/**
 * `seen` is the last entry that this process has seen, `used` the server that it has used last. @throws StoreError if
 * no host can be used
 */
export async function chooseHost(
  address: PostgresAddress,
  seen: SeenEntry | null,
  used: ChosenHost | null,
): Promise<Choice> {
  const { candidates, failures } = await examineAll(address);
  try {
    const writable = candidates.filter(({ isWritable }) => isWritable);
    const isReader = writable.length === 0 && address.sessionAttributes === 'any';
    const usable = isReader ? candidates : writable;
    if (usable.length === 0) throw noneUsable(candidates, failures);
    const current = usable.filter((candidate) => !isFormer(candidate, used));
    const [former] = usable;
    if (current.length === 0 && former !== undefined) throw onlyFormer(former);
    const best = await findLongest(await containing(current, seen, failures));
    const others = candidates.filter((each) => !usable.includes(each));
    for (const standby of others) await assertNotBehind(best, standby);
    const { host, system, timeline } = best;
    return { chosen: { host, system, timeline }, unanswered: failures.map((failure) => describeHost(failure.host)) };
  } catch (error) {
    throw toStoreError(error);
  } finally {
    for (const { connection } of candidates) connection.close();
  }
}

interface Failure {
  readonly host: DatabaseHost;
  readonly error: unknown;
}

async function examineAll(address: PostgresAddress) {
  const found: Candidate[] = [];
  const failures: Failure[] = [];
  const pending = new Set(address.hosts);
  let isOver = false;
  const hasWritable = Promise.withResolvers<void>();
  const examineOne = async (host: DatabaseHost): Promise<void> => {
    try {
      const candidate = await examine(address, host);
      if (isOver) return candidate.connection.close();
      found.push(candidate);
      if (candidate.isWritable) hasWritable.resolve();
    } catch (error) {
      if (!isOver) failures.push({ host, error });
    } finally {
      if (!isOver) pending.delete(host);
    }
  };
  const all = Promise.all(address.hosts.map(examineOne));
  await Promise.race([all, hasWritable.promise.then(() => sleep(GRACE_MS))]);
  isOver = true;
  for (const host of pending) failures.push({ host, error: new StoreError('unavailable', 'PostgreSQL: no response') });
  const order = (host: DatabaseHost): number => address.hosts.indexOf(host);
  const candidates = found.sort((a, b) => order(a.host) - order(b.host));
  return { candidates, failures: failures.sort((a, b) => order(a.host) - order(b.host)) };
}

/** Connects to a primary or a standby, and reads the end of its log. @throws StoreError */
async function examine(address: PostgresAddress, host: DatabaseHost): Promise<Candidate> {
  const connection = await Connection.open({ ...address, sessionAttributes: 'any' }, 'reading', host);
  try {
    return await inTime(connection, describe(connection, host));
  } catch (error) {
    connection.close();
    throw toStoreError(error);
  }
}

/** WHY for each query: a host that stops to answer would otherwise keep the choice, and all that waits for it. */
const inTime = <T>(connection: Connection, answer: Promise<T>): Promise<T> =>
  withDeadline(connection, ANSWER_TIMEOUT_MS, answer, 'do not count');

async function describe(connection: Connection, host: DatabaseHost): Promise<Candidate> {
  const [row] = await connection.query`
    SELECT pg_is_in_recovery() AS is_standby, current_setting('transaction_read_only') AS is_read_only,
      (SELECT system_identifier::text FROM pg_control_system()) AS system,
      CASE WHEN pg_is_in_recovery() THEN 0
        ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END AS timeline,
      (SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'leasehold' AND c.relname = 'audit_head') AS has_log`;
  const [head] = row?.['has_log'] === true ? await connection.query`SELECT seq, hmac FROM audit_head WHERE id = 1` : [];
  return {
    host,
    connection,
    isWritable: row?.['is_standby'] === false && row['is_read_only'] === 'off',
    system: String(row?.['system']),
    timeline: Number(row?.['timeline']),
    head: head === undefined ? null : { seq: Number(head['seq']), hmac: String(head['hmac']) },
  };
}

/** Whether it is from before a promotion after which this process has already used the promoted server. */
function isFormer({ system, timeline, isWritable }: Candidate, used: ChosenHost | null): boolean {
  return isWritable && used !== null && used.system === system && timeline < used.timeline;
}

function onlyFormer({ host }: Candidate): StoreError {
  return new StoreError(
    'unavailable',
    `PostgreSQL: ${describeHost(host)} is a former primary: this node has used the server that was promoted after it. Stop the former primary, and bring back the promoted server`,
  );
}

/** The candidates whose log contains the entry. Adds hosts that do not answer to `failures`. @throws if none does */
async function containing(
  candidates: readonly Candidate[],
  seen: SeenEntry | null,
  failures: Failure[],
): Promise<Candidate[]> {
  const kept: Candidate[] = [];
  let lost: unknown = null;
  for (const candidate of candidates) {
    try {
      if (seen !== null) await inTime(candidate.connection, assertContains(candidate.connection, seen));
      kept.push(candidate);
    } catch (error) {
      lost ??= error;
      if (!(error instanceof LostEntryError)) failures.push({ host: candidate.host, error });
    }
  }
  if (kept.length === 0) throw lost;
  return kept;
}

/**
 * The server with the longest log; if logs are equal, the one that was promoted last.
 * @throws StoreError if no log contains all others
 */
async function findLongest(candidates: readonly Candidate[]): Promise<Candidate> {
  const ordered = [...candidates].sort((a, b) => b.timeline - a.timeline);
  for (const candidate of ordered) {
    const contains = await Promise.all(ordered.map(({ head }) => containsHead(candidate, head)));
    if (!contains.includes(false)) return candidate;
  }
  const ahead = [...ordered].sort((a, b) => (b.head?.seq ?? 0) - (a.head?.seq ?? 0));
  const ends = ahead.map(({ host, head }) => `${describeHost(host)} ends at entry ${head?.seq ?? 0}`).join(', ');
  throw new StoreError(
    'unavailable',
    `PostgreSQL: ${ahead.length} servers accept writes, and their logs have different entries: ${ends}. The node uses none of them. Stop the wrong one: docs/cluster.md, "Split brain"`,
  );
}

async function containsHead({ connection, head: own }: Candidate, head: SeenEntry | null): Promise<boolean> {
  if (head === null) return true;
  if (own === null) return false;
  if (head.seq === 0 || own.hmac === head.hmac) return true;
  const entry = connection.query`SELECT hmac FROM audit_entries WHERE seq = ${head.seq}::bigint`;
  const [row] = await inTime(connection, entry);
  return row?.['hmac'] === head.hmac;
}

/** @throws StoreError if the standby has entries that the server lacks */
async function assertNotBehind(best: Candidate, standby: Candidate): Promise<void> {
  for (let tries = 0; tries < STANDBY_TRIES; tries++) {
    const current = tries === 0 ? best : await inTime(best.connection, describe(best.connection, best.host));
    if (await containsHead(current, standby.head)) return;
    await sleep(STANDBY_RETRY_MS);
  }
  const [server, ahead] = [describeHost(best.host), describeHost(standby.host)];
  throw new StoreError(
    'unavailable',
    `PostgreSQL: ${server} accepts writes, but lacks entry ${standby.head?.seq} of the standby ${ahead}. The node does not use it. Is it a former primary, or does a commit wait for another standby? docs/cluster.md, "Split brain"`,
  );
}

function noneUsable(candidates: readonly Candidate[], failures: readonly Failure[]): unknown {
  const bug = failures.find(({ error }) => !(error instanceof StoreError));
  if (bug !== undefined) return bug.error;
  const reasons = [
    ...candidates.map(({ host }) => `${describeHost(host)}: ${READ_ONLY}`),
    ...failures.map(
      ({ host, error }) =>
        `${describeHost(host)}: ${error instanceof StoreError ? error.message.replace(/^PostgreSQL: /, '') : ''}`,
    ),
  ];
  const cause = failures[0]?.error instanceof StoreError ? failures[0].error.cause : undefined;
  return new StoreError('unavailable', `PostgreSQL: no host accepts writes (${reasons.join('; ')})`, { cause });
}
