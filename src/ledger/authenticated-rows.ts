/** MACs on the rows on which decisions depend: added when a row is stored, checked when it is read. */
import type { Put } from '../core/change.ts';
import type { Resource, RowOf } from '../core/resources.ts';
import { isMac, rowMac } from '../crypto/row-mac.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { RESOURCE_TABLES } from '../store/schema.ts';
import type { Authenticated, StoredPut } from '../store/stored-data.ts';
import type { Table } from '../store/table.ts';

type RowKey = VaultKeys['row'];

export function withMac<R extends Resource>(key: RowKey, resource: R, row: RowOf[R]): Authenticated<RowOf[R]> {
  return { ...row, mac: rowMac(key, resource, valuesOf(resource, row)) };
}

export function toStoredPut(key: RowKey, { resource, row }: Put): StoredPut {
  return { kind: 'put', resource, row: withMac(key, resource, row) } as StoredPut;
}

export function isAuthentic<R extends Resource>(key: RowKey, resource: R, row: Authenticated<RowOf[R]>): boolean {
  return isMac(row.mac, rowMac(key, resource, valuesOf(resource, row)));
}

function valuesOf<R extends Resource>(resource: R, row: RowOf[R]): Readonly<Record<string, unknown>> {
  const table: Table<object> = RESOURCE_TABLES[resource];
  return table.macValues(row);
}
