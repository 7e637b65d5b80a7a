/** Reads for the advisories, in steps: leases that end soon, unused credentials, and denials. */
import { type Dialect, numberIn } from './dialect.ts';
import { type ListStep, type Procedure, raw, scanUntilDeadline, sql } from './statement.ts';

/** Active leases that end by `endsBy` and were issued for at least `minimumMs`. */
export interface EndingQuery {
  readonly now: number;
  readonly endsBy: number;
  readonly minimumMs: number;
}

export interface EndingLeases {
  readonly agentName: string;
  readonly path: string;
  readonly count: number;
  readonly firstEndAt: number;
}

export interface LeaseSigns {
  readonly ending: readonly EndingLeases[];
  readonly credentialIds: readonly string[];
  readonly next: number | null;
}

/** A step through the leases before `beforeSeq`, newest first: those that end soon, and all their credentials. */
export function* readLeaseSigns(
  dialect: Dialect,
  { now, endsBy, minimumMs }: EndingQuery,
  beforeSeq: number,
): Procedure<LeaseSigns> {
  const ending: EndingLeases[] = [];
  const credentialIds: string[] = [];
  const next = yield* scanUntilDeadline(beforeSeq, function* (before) {
    const chunk = yield* dialect.findLeaseChunk(null, before);
    if (chunk === null) return null;
    const rows = yield sql`SELECT agent_name, path, count(*) AS n, min(expires_at) AS first_end FROM effective_leases
      WHERE seq >= ${chunk.from} AND seq < ${chunk.before} AND expires_at > ${now} AND expires_at <= ${endsBy}
        AND expires_at - issued_at >= ${minimumMs} AND revoked_at IS NULL GROUP BY agent_name, path`;
    for (const row of rows) {
      const [agentName, path] = [String(row['agent_name']), String(row['path'])];
      ending.push({ agentName, path, count: numberIn(row, 'n'), firstEndAt: numberIn(row, 'first_end') });
    }
    const held = yield sql`SELECT DISTINCT credential_id FROM leases
      WHERE seq >= ${chunk.from} AND seq < ${chunk.before}`;
    for (const { credential_id } of held) credentialIds.push(String(credential_id));
    return chunk.next;
  });
  return { ending, credentialIds, next };
}

export interface UnexposedCredential {
  readonly id: string;
  readonly path: string;
  readonly createdAt: number;
}

/** The credentials after the path that were stored by then and have no stored exposure. */
export function* listUnexposed(
  { chunkRows }: Dialect,
  createdBy: number,
  after: string,
): Procedure<ListStep<UnexposedCredential, string>> {
  const rows: UnexposedCredential[] = [];
  const next = yield* scanUntilDeadline(after, function* (from) {
    const [end] = yield sql`SELECT path FROM credentials
      WHERE path > ${from} ORDER BY path LIMIT 1 OFFSET ${chunkRows - 1}`;
    const through = end === undefined ? raw('true') : sql`c.path <= ${String(end['path'])}`;
    const found = yield sql`SELECT c.id, c.path, c.created_at FROM credentials c
      WHERE c.path > ${from} AND ${through} AND c.created_at <= ${createdBy} AND NOT EXISTS
        (SELECT 1 FROM exposures e WHERE e.path = c.path AND e.credential_id = c.id) ORDER BY c.path`;
    for (const row of found) {
      rows.push({ id: String(row['id']), path: String(row['path']), createdAt: numberIn(row, 'created_at') });
    }
    return end === undefined ? null : String(end['path']);
  });
  return { rows, next };
}

/** The events of actions that a policy can grant. */
const GRANTABLE = raw(
  `event_type IN ('credential.retrieve', 'credential.store', 'credential.delete', 'credential.use', 'lease.use')`,
);

export interface DeniedAccess {
  readonly agentName: string;
  readonly resource: string;
  readonly count: number;
  /** The time of the first denial, in the format of the audit log. */
  readonly firstAt: string;
}

/** Counts the denials that a policy could lift by caller and resource, newest first. A pair may be in several steps. */
export function* countDenials(
  { chunkRows }: Dialect,
  fromSeq: number,
  toSeq: number,
): Procedure<ListStep<DeniedAccess, number>> {
  const rows: DeniedAccess[] = [];
  const next = yield* scanUntilDeadline(toSeq, function* (cursor) {
    const low = Math.max(fromSeq, cursor - chunkRows + 1);
    const found = yield sql`SELECT agent_name, resource, count(*) AS n, min(timestamp) AS first_at FROM audit_entries
      WHERE seq >= ${low} AND seq <= ${cursor} AND result = 'denied' AND ${GRANTABLE} GROUP BY agent_name, resource`;
    for (const { agent_name, resource, n, first_at } of found) {
      rows.push({
        agentName: String(agent_name),
        resource: String(resource),
        count: Number(n),
        firstAt: String(first_at),
      });
    }
    return low > fromSeq ? low - 1 : null;
  });
  return { rows, next };
}
