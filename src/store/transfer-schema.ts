/**
 * The tables that a migration between stores copies, in this order, with the columns that all stores share. A new table
 * is a line here. The `vault` and `audit_head` rows are not listed: they are written last.
 */
import type { Row } from './decode-rows.ts';

export type ColumnKind = 'text' | 'number' | 'bytes';
/** Key values of a row, in the order of the table's `key`. */
export type RowKey = readonly (string | number)[];

export interface Table {
  readonly name: string;
  /** Sort key; text is compared byte by byte. */
  readonly key: readonly string[];
  readonly columns: Readonly<Record<string, ColumnKind>>;
  /** Rows in memory at a time, written in one statement or transaction. */
  readonly chunkRows: number;
}

const columnsOf =
  <Kind extends ColumnKind>(kind: Kind) =>
  (names: string): Record<string, Kind> =>
    Object.fromEntries(names.split(' ').map((name) => [name, kind]));
const texts = columnsOf('text');
const numbers = columnsOf('number');
const bytes = columnsOf('bytes');

/** A few hundred bytes each. */
const SMALL_ROWS = 2000;
/** A value has up to 256 KiB. */
const ROWS_WITH_VALUES = 96;

function table(name: string, key: string, columns: Table['columns'], chunkRows = SMALL_ROWS): Table {
  return { name, key: key.split(' '), columns, chunkRows };
}

/** Append-only, and copied first: a target whose log is a prefix of the source's belongs to the same vault. */
export const LOG = table('audit_entries', 'seq', {
  ...numbers('seq'),
  ...texts(
    'id timestamp event_type agent_name resource action result policy_name lease_id reason request_id remote_addr hmac',
  ),
});

export const TABLES: readonly Table[] = [
  LOG,
  table('agents', 'id', { ...texts('id name description public_key mac'), ...numbers('registered_at') }),
  table('policies', 'name', {
    ...texts('name principal resources actions mac'),
    ...numbers('max_ttl created_at'),
  }),
  table('sessions', 'token_hash', { ...texts('token_hash agent_id mac'), ...numbers('issued_at expires_at') }),
  table('spent_challenges', 'id', { ...texts('id'), ...numbers('expires_at') }),
  table(
    'idempotency_records',
    'id',
    { ...texts('id agent_id request_mac reply mac'), ...numbers('expires_at') },
    ROWS_WITH_VALUES,
  ),
  table('credentials', 'path', {
    ...texts('path id type description mac'),
    ...numbers('created_at updated_at version'),
  }),
  table(
    'credential_versions',
    'credential_id version',
    { ...texts('credential_id type'), ...numbers('version created_at'), ...bytes('sealed') },
    ROWS_WITH_VALUES,
  ),
  // After the credentials; the counts include all retrievals.
  table('access_counts', 'credential_id', { ...texts('credential_id'), ...numbers('count') }),
  table('leases', 'seq', {
    ...texts('id agent_id credential_id agent_name path policy_name'),
    ...numbers('seq version issued_at expires_at revoked_at'),
  }),
  table('bulk_revocations', 'seq', { ...numbers('seq revoked_at'), ...texts('agent_id credential_id') }),
];

export function keyOf({ key, columns }: Table, row: Row): RowKey {
  return key.map((column) => (columns[column] === 'number' ? Number(row[column]) : String(row[column])));
}

/** Less than the key of every row. */
export function minKey({ key, columns }: Table): RowKey {
  return key.map((column) => (columns[column] === 'number' ? Number.MIN_SAFE_INTEGER : ''));
}

/** Whether all columns are equal, byte by byte. */
export function isSameRow({ columns }: Table, a: Row, b: Row): boolean {
  return Object.keys(columns).every((column) => {
    const [left, right] = [a[column], b[column]];
    if (left instanceof Uint8Array && right instanceof Uint8Array) return Buffer.compare(left, right) === 0;
    return left === right;
  });
}
