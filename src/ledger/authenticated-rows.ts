/** MACs on the rows on which decisions depend: added when a row is stored, checked when it is read. */
import type { Change, Put } from '../core/change.ts';
import type { Resource, RowOf } from '../core/resources.ts';
import { isMac, rowMac } from '../crypto/row-mac.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { KEY_SLOTS, RESOURCE_TABLES } from '../store/schema.ts';
import type { Authenticated, StoredPut } from '../store/stored-data.ts';
import type { Table } from '../store/table.ts';

type RowKey = VaultKeys['row'];

export function withMac<R extends Resource>(key: RowKey, resource: R, row: RowOf[R]): Authenticated<RowOf[R]> {
  return { ...row, mac: rowMac(key, resource, valuesOf(resource, row)) };
}

/**
 * INVARIANT: no row with a MAC, and no key slot, is stored with a value that a restore would reject. Other changes
 * contain only values that the server makes. The operation must check its values itself, with an error for its caller;
 * what fails here is a bug. @throws Error
 */
export function assertStorable(change: Change): void {
  let broken: string | null = null;
  if (change.kind === 'put') broken = tableOf(change.resource).brokenRule(change.row);
  if (change.kind === 'putKeySlot') broken = KEY_SLOTS.brokenRule(change.slot);
  if (broken !== null)
    throw new Error(`A row was not stored, because a value breaks the rule of its field: ${broken}.`);
}

export function toStoredPut(key: RowKey, { resource, row }: Put): StoredPut {
  return { kind: 'put', resource, row: withMac(key, resource, row) } as StoredPut;
}

export function isAuthentic<R extends Resource>(key: RowKey, resource: R, row: Authenticated<RowOf[R]>): boolean {
  return isMac(row.mac, rowMac(key, resource, valuesOf(resource, row)));
}

function valuesOf<R extends Resource>(resource: R, row: RowOf[R]): Readonly<Record<string, unknown>> {
  return tableOf(resource).macValues(row);
}

function tableOf(resource: Resource): Table<object> {
  return RESOURCE_TABLES[resource];
}
