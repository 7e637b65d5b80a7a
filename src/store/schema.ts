/**
 * The tables of a vault, with the columns that all stores share: the only list of them. Select lists, insert
 * statements, MACs, backups, and the rules that a restore checks follow from the declarations of their rows. The
 * migrations add the columns that only one store has.
 */

import { matching } from '../core/grammars.ts';
import { RESOURCES, type Resource, type RowOf } from '../core/resources.ts';
import type { Fields } from '../engine/field.ts';
import { count, text } from '../engine/kinds.ts';
import { stored } from '../engine/resource.ts';
import { APPROVAL_REQUEST_ROWS } from '../vault/approvals/approval.ts';
import { ENTRY_ROWS } from '../vault/audit/audit-entry.ts';
import { CHECKPOINT_ROWS, TREE_ROWS } from '../vault/audit/proofs.ts';
import { ACCESS_COUNT_ROWS, VERSION_ROWS } from '../vault/credentials/credential.ts';
import { EXPOSURE_PROGRESS_ROWS, EXPOSURE_ROWS } from '../vault/exposure/exposure-record.ts';
import { DATA_KEY_ROWS, KEYSET_ROWS, KeySlot } from '../vault/keys/keyset.ts';
import { LEASE_ROWS, REVOCATION_ROWS } from '../vault/leases/lease.ts';
import { SPENT_CHALLENGE_ROWS } from '../vault/sessions/session.ts';
import type { Authenticated } from './stored-data.ts';
import { Table } from './table.ts';

/** The last entry that each stream has sent. */
const STREAM_ROWS = stored({
  table: 'log_streams',
  key: ['name'],
  maxRows: 1_000_000,
  fields: {
    name: text(matching(/^[a-z][a-z0-9+-]{0,31}$/, [1, 32], 'must be the name of a log stream')),
    seq: count(),
  },
});

export type ResourceTables = { readonly [R in Resource]: Table<Authenticated<RowOf[R]>> };

/** The tables of the rows on which decisions depend. */
export const RESOURCE_TABLES = Object.fromEntries(
  Object.entries(RESOURCES).map(([resource, rows]) => [resource, Table.withMac<Fields>(rows)]),
) as unknown as ResourceTables;

export const {
  agent: AGENTS,
  session: SESSIONS,
  credential: CREDENTIALS,
  targets: CREDENTIAL_TARGETS,
  approval: APPROVALS,
} = RESOURCE_TABLES;
export const AUDIT_ENTRIES = Table.of(ENTRY_ROWS);
export const AUDIT_TREE = Table.of(TREE_ROWS);
export const CHECKPOINTS = Table.of(CHECKPOINT_ROWS);
export const SPENT_CHALLENGES = Table.of(SPENT_CHALLENGE_ROWS);
export const CREDENTIAL_VERSIONS = Table.of(VERSION_ROWS);
export const ACCESS_COUNTS = Table.of(ACCESS_COUNT_ROWS);
export const LEASES = Table.of(LEASE_ROWS);
export const BULK_REVOCATIONS = Table.of(REVOCATION_ROWS);
export const APPROVAL_REQUESTS = Table.of(APPROVAL_REQUEST_ROWS);
export const EXPOSURES = Table.of(EXPOSURE_ROWS);
export const KEYSET = Table.of(KEYSET_ROWS);
export const KEY_SLOTS = Table.withMac(KeySlot);
export const DATA_KEY_SEALS = Table.of(DATA_KEY_ROWS);

/** All tables, except the single rows of `vault` and `audit_head`, in an order in which they can be copied. */
export const TABLES: readonly Table<object>[] = [
  ...[AUDIT_ENTRIES, AUDIT_TREE, CHECKPOINTS],
  ...Object.values<Table<object>>(RESOURCE_TABLES),
  ...[SPENT_CHALLENGES, CREDENTIAL_VERSIONS, ACCESS_COUNTS, LEASES, APPROVAL_REQUESTS, BULK_REVOCATIONS, EXPOSURES],
  ...[Table.of(EXPOSURE_PROGRESS_ROWS), KEYSET, KEY_SLOTS, DATA_KEY_SEALS, Table.of(STREAM_ROWS)],
];

/** The number of the last migration that is a script. */
const LAST_SCRIPT = 1;
/** The number of the last migration, after which the tables are these. */
export const NEWEST_SCHEMA = Math.max(
  LAST_SCRIPT,
  ...TABLES.flatMap(({ columns }) => columns.map(({ since }) => since)),
);
