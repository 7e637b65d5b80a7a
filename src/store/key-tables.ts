/** The tables of the vault's keys. SOURCE: docs/formats.md, "Keys". */
import type { SealedKeyset, WrappedKeySlot } from '../core/keyset.ts';
import type { Authenticated } from './store.ts';
import { Table } from './table.ts';

/** One row, with the id 1. */
export const KEYSET = new Table<SealedKeyset & { readonly id: number }>('keyset', ['id'], {
  id: 'number',
  version: 'number',
  rootVersion: 'number',
  sealed: 'bytes',
});

export const KEY_SLOTS = new Table<Authenticated<WrappedKeySlot>>('key_slots', ['id'], {
  id: 'text',
  name: 'text',
  kind: 'text',
  parameters: 'json',
  publicKey: 'text',
  createdAt: 'number',
  rootVersion: 'number',
  sealedRoot: 'bytes',
  mac: 'text',
});

/** How many values were sealed under each data key. */
export const DATA_KEY_SEALS = new Table<{ readonly keyId: string; readonly seals: number }>(
  'data_key_seals',
  ['key_id'],
  { keyId: 'text', seals: 'number' },
);
