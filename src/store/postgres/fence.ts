/**
 * Checks that a server's log contains the last entry that this process has seen. A server that lacks it is behind or on
 * another history: a former primary that came back, or a standby that lagged when it was promoted. INVARIANT: nothing
 * that such a server returns reaches a caller.
 */
import { StoreError } from '../errors.ts';
import type { SeenEntry } from '../stored-data.ts';
import type { Connection } from './connection.ts';

/** The server of the connection lacks an entry that this process has seen. */
export class LostEntryError extends StoreError {
  readonly connection: Connection;

  constructor(connection: Connection, { seq }: SeenEntry, found: string) {
    super(
      'unavailable',
      `the audit log has lost entry ${seq}, which this node has seen: it ${found} at ${connection.host}. Was a lagging standby promoted, a backup restored, or did a former primary come back? The node does not use this server. Stop that server and bring back the one with the entry; or restart every node, and run leasehold audit accept-rollback on each`,
    );
    this.connection = connection;
  }
}

/** Describes the audit log's content in place of the entry. */
export const describeMissing = (link: string | null, lastSeq: number): string =>
  link === null ? `ends at entry ${lastSeq}` : 'contains a different one';

/** Checks that the audit log contains the entry; null for none yet. @throws LostEntryError; errors of the driver */
export async function assertContains(connection: Connection, seen: SeenEntry | null): Promise<void> {
  if (seen === null) return;
  const [row] = await connection.query`SELECT hmac FROM audit_entries WHERE seq = ${seen.seq}::bigint`;
  const link = row === undefined ? null : String(row['hmac']);
  if (link === seen.hmac) return;
  const [end] = await connection.query`SELECT coalesce(max(seq), 0) AS seq FROM audit_entries`;
  throw new LostEntryError(connection, seen, describeMissing(link, Number(end?.['seq'])));
}

/** Runs a read in the round trip of the check. @throws as `assertContains`; errors of the read */
export async function readFenced<T>(
  connection: Connection,
  seen: SeenEntry | null,
  read: () => Promise<T>,
): Promise<T> {
  const [, result] = await Promise.all([assertContains(connection, seen), read()]);
  return result;
}
