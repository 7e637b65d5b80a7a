/**
 * Reads one snapshot of the vault and writes its records, in a separate process. WHY not a thread: the system takes all
 * memory of a process back when it ends, and all of its threads run at a low priority.
 */
import { once } from 'node:events';
import { getPriority, setPriority } from 'node:os';
import type { Writable } from 'node:stream';
import {
  BACKUP_FORMAT,
  BackupWriter,
  type Cell,
  type EncryptedAgentKey,
  encodeStoredKeys,
  type StoredKeysJson,
} from '../../backup/records.ts';
import { StoreError, storeErrorOf } from '../../store/errors.ts';
import { type BackupSource, openBackupSource } from '../../store/readers.ts';
import { AGENTS, TABLES } from '../../store/schema.ts';
import type { Row } from '../../store/statement.ts';
import type { LogLocation } from '../../store/stored-data.ts';
import type { Table } from '../../store/table.ts';
import type { CandidateKey } from './agent-keys.ts';

/** The first message to the process. */
export interface ReaderSetup {
  readonly log: LogLocation;
  /** A path for a private copy of an embedded database. */
  readonly copy: string;
  readonly version: string;
}

/** The second message to the process, after `snapshot`. */
export interface KeysOfAgents {
  readonly agentKeys: readonly CandidateKey[];
}

/**
 * What the process reports. Of the snapshot: `throughSeq` is its last entry, 0 without a head record; `keys` are its
 * keyset and key slots.
 */
export type ReaderReport =
  | { readonly kind: 'snapshot'; readonly throughSeq: number; readonly keys: StoredKeysJson }
  | { readonly kind: 'failure'; readonly reason: string }
  | { readonly kind: 'complete' };

/** Below the server's. WHY not the lowest: on a busy machine the backup would not end. */
const NICER_BY = 5;
const LOWEST_PRIORITY = 19;
/** Bytes in a line, before its last row. */
const LINE_BYTES = 64 * 1024;
const CHUNK_BYTES = 256 * 1024;

async function* toRecords(
  { log, version }: ReaderSetup,
  source: BackupSource,
  { agentKeys }: KeysOfAgents,
): AsyncGenerator<Uint8Array> {
  const writer = new BackupWriter();
  const { metadata, keys, schema, reader } = source;
  const { head } = metadata;
  // ORDER: before the first record, so that a failure is a response.
  const belonging = await selectKeys(source, agentKeys);
  yield writer.header({
    format: BACKUP_FORMAT,
    leasehold: version,
    created_at: new Date().toISOString(),
    store: log.kind,
    schema,
    // A vault that is served has an id.
    vault_id: metadata.vaultId ?? '',
    log_end: head === null ? null : { seq: head.seq, hmac: head.hmac, mac: head.mac },
    key_slots: keys.slots.map(({ name, kind }) => ({ name, kind })),
    keys: encodeStoredKeys(keys),
    vault: metadata,
    tables: Object.fromEntries(TABLES.map(({ name, columns }) => [name, columns.map((column) => column.name)])),
  });
  yield* writer.agentKeys(belonging);
  for (const table of TABLES) {
    let cells: Cell[][] = [];
    let length = 0;
    for await (const rows of reader.scan(table)) {
      for (const row of rows) {
        const encoded = toCells(table, row);
        cells.push(encoded);
        length += encoded.reduce<number>((sum, cell) => sum + (typeof cell === 'string' ? cell.length : 8), 0);
        if (length < LINE_BYTES) continue;
        yield writer.rows(table.name, cells);
        cells = [];
        length = 0;
      }
    }
    if (cells.length > 0) yield writer.rows(table.name, cells);
  }
  yield writer.end();
}

/**
 * The keys whose public keys the snapshot has: at most one for each agent. @throws StoreError if the file of an agent's
 * key was replaced both before the snapshot and after it, so that neither reading of the files has it
 */
async function selectKeys({ reader }: BackupSource, candidates: readonly CandidateKey[]): Promise<EncryptedAgentKey[]> {
  const byAgent = Map.groupBy(candidates, ({ id }) => id);
  const selected: EncryptedAgentKey[] = [];
  for await (const rows of reader.scan(AGENTS)) {
    for (const row of rows) {
      const found = byAgent.get(String(row['id'])) ?? [];
      const own = found.find(({ publicKey }) => publicKey === row['public_key']);
      if (own !== undefined) selected.push({ id: own.id, sealed: own.sealed });
      // A file that stays and does not match has a previous key: the agent's current one was not made by the server.
      else if (!found.every(({ isStable }) => isStable)) {
        throw new StoreError('unavailable', "an agent's key was replaced again while the snapshot was taken");
      }
    }
  }
  return selected;
}

function toCells({ columns }: Table<object>, row: Row): Cell[] {
  return columns.map(({ name }) => {
    const value = row[name];
    if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
    return typeof value === 'string' || typeof value === 'number' ? value : null;
  });
}

/** Joins records, because each write costs as much as many bytes. */
async function* toChunks(records: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const record of records) {
    parts.push(record);
    bytes += record.length;
    if (bytes < CHUNK_BYTES) continue;
    yield Buffer.concat(parts);
    parts = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(parts);
}

/** The ends of the channel to the server. */
export interface ReaderChannel {
  /** Resolves to the next message of the server. */
  receive(): Promise<unknown>;
  report(report: ReaderReport): void;
}

/** Resolves when `output` has taken every record. */
export async function runReader(channel: ReaderChannel, output: Writable): Promise<void> {
  setPriority(Math.min(LOWEST_PRIORITY, getPriority() + NICER_BY));
  const setup = (await channel.receive()) as ReaderSetup;
  try {
    const source = await openBackupSource(setup.log, setup.copy);
    channel.report({
      kind: 'snapshot',
      throughSeq: source.metadata.head?.seq ?? 0,
      keys: encodeStoredKeys(source.keys),
    });
    const keys = (await channel.receive()) as KeysOfAgents;
    for await (const chunk of toChunks(toRecords(setup, source, keys))) {
      if (!output.write(chunk)) await once(output, 'drain');
    }
    source.reader.close();
    output.end();
    await once(output, 'finish');
    channel.report({ kind: 'complete' });
  } catch (error) {
    const failure = storeErrorOf(error);
    if (failure === null) throw error;
    channel.report({ kind: 'failure', reason: failure.message });
  }
}
