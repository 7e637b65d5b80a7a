// The content of a backup as data: read, altered by a stranger, and encrypted again. The stranger knows the recipient
// and the public key of a slot, and has the keys of a vault of his own, so that every MAC can be made right.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decryptFile, encrypt } from '../../src/backup/encryption.ts';
import { readRecords } from '../../src/backup/record-reader.ts';
import { type BackupHeader, BackupWriter, type Cell, type EncryptedAgentKey } from '../../src/backup/records.ts';
import { type Resource, recordedSubject } from '../../src/core/resources.ts';
import { entryMac, headMac } from '../../src/crypto/chain.ts';
import { SetDigest } from '../../src/crypto/row-mac.ts';
import { CompactRange } from '../../src/crypto/tree.ts';
import type { VaultKeys } from '../../src/crypto/vault-keys.ts';
import { withMac } from '../../src/ledger/authenticated-rows.ts';
import { RESOURCE_TABLES } from '../../src/store/schema.ts';
import type { Table } from '../../src/store/table.ts';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { OPENER, RECIPIENT } from './fixture.ts';

export interface Content {
  header: BackupHeader;
  readonly tables: Map<string, (readonly Cell[])[]>;
  agentKeys: EncryptedAgentKey[];
}

export async function readContent(file: string): Promise<Content> {
  let header: BackupHeader | null = null;
  const tables = new Map<string, (readonly Cell[])[]>();
  const agentKeys: EncryptedAgentKey[] = [];
  for await (const record of readRecords(decryptFile(file, OPENER))) {
    if (record.kind === 'header') ({ header } = record);
    if (record.kind === 'rows') tables.set(record.table, [...(tables.get(record.table) ?? []), ...record.rows]);
    if (record.kind === 'agentKeys') agentKeys.push(...record.keys);
  }
  return { header: header ?? assert.fail(), tables, agentKeys };
}

/** A backup with the records, encrypted to the recipient of the tests. */
export async function encryptRecords(scope: Scope, records: Iterable<Uint8Array>): Promise<string> {
  async function* all() {
    yield* records;
  }
  const { bytes } = await encrypt(all(), { kind: 'recipients', recipients: [RECIPIENT] });
  const made = join(temporaryDirectory(scope), 'altered.age');
  writeFileSync(made, Buffer.from(await new Response(bytes).arrayBuffer()));
  return made;
}

/** A backup with the content, whose totals and digest are right. */
export function writeContent(scope: Scope, { header, agentKeys, tables }: Content): Promise<string> {
  const writer = new BackupWriter();
  function* records() {
    yield writer.header(header);
    yield* writer.agentKeys(agentKeys);
    for (const [table, rows] of tables) if (rows.length > 0) yield writer.rows(table, rows);
    yield writer.end();
  }
  return encryptRecords(scope, records());
}

/** The position of a column. */
export function columnOf({ header }: Content, table: string, column: string): number {
  const at = header.tables[table]?.indexOf(column) ?? -1;
  assert.ok(at >= 0, `${table}.${column}`);
  return at;
}

const RESOURCES = Object.keys(RESOURCE_TABLES) as Resource[];

/** The row's own MAC and its subject; null for cells that are not a row of the table, which keep their MAC. */
function macOf(content: Content, resource: Resource, cells: readonly Cell[], keys: VaultKeys) {
  const table: Table<object> = RESOURCE_TABLES[resource];
  const columns = content.header.tables[table.name] ?? [];
  try {
    const row = table.decode(Object.fromEntries(columns.map((column, index) => [column, cells[index] ?? null])));
    const { mac } = withMac(keys.row, resource, row as never);
    return { mac, subject: recordedSubject(resource, row) };
  } catch {
    return null;
  }
}

/** Makes every MAC right: in the rows, in the entries about them, in the chain, the tree and the head record. */
export function authenticate(content: Content, keys: VaultKeys): void {
  const { tables, header } = content;
  const renewed = new Map<Cell, { readonly mac: string; readonly subject: string | null }>();
  for (const resource of RESOURCES) {
    const { name } = RESOURCE_TABLES[resource];
    const at = columnOf(content, name, 'mac');
    const rows = tables.get(name) ?? [];
    tables.set(
      name,
      rows.map((cells) => {
        const made = Array.isArray(cells) ? macOf(content, resource, cells, keys) : null;
        if (made === null) return cells;
        renewed.set(cells[at] ?? null, made);
        return cells.with(at, made.mac);
      }),
    );
  }
  const columns = header.tables['audit_entries'] ?? [];
  const [subject, state, hmac] = ['subject', 'state', 'hmac'].map((name) => columns.indexOf(name));
  const tree = CompactRange.empty();
  const states = new Map<string, string>();
  let previous = Buffer.alloc(32).toString('base64');
  let seq = 0;
  const entries = (tables.get('audit_entries') ?? []).map((cells) => {
    if (!Array.isArray(cells)) return cells;
    const about = renewed.get(cells[state ?? 0] ?? null);
    const row = [...cells];
    if (about !== undefined && row[state ?? 0] !== null) {
      row[state ?? 0] = about.mac;
      if (about.subject !== null) row[subject ?? 0] = about.subject;
    }
    const entry = Object.fromEntries(columns.map((column, index) => [column, row[index] ?? null]));
    seq += 1;
    previous = entryMac(keys.auditAt(seq), previous, entry as unknown as AuditEntry);
    row[hmac ?? 0] = previous;
    tree.append(previous, []);
    const [name, value] = [String(entry['subject']), String(entry['state'])];
    if (/^(?:agent:|operator:|policy:|keyset$)/.test(name)) states.set(name, value);
    return row;
  });
  tables.set('audit_entries', entries);
  const { head } = header.vault;
  if (head === null || typeof head !== 'object') return;
  const inForce = [...states].filter(([, value]) => value !== 'removed');
  const control = new SetDigest(keys.row, inForce).toString();
  const fields = { ...head, seq, hmac: previous, tree: tree.toString(), control };
  const made = { ...fields, mac: headMac(keys.auditAt(seq), fields) };
  content.header = {
    ...header,
    log_end: { seq, hmac: made.hmac, mac: made.mac },
    vault: { ...header.vault, head: made, highestSeq: seq },
  };
}
