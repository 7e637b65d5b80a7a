/**
 * Migrates a vault to another database and verifies its chain before and after. The source is not changed. An
 * interrupted migration can be run again at any time: it continues, or reports that it is complete.
 */

import { isDeepStrictEqual } from 'node:util';
import { deriveKeys, timingSafeEqualText, type VaultKeys } from '../crypto/keys.ts';
import { startClock } from '../ledger/clock.ts';
import { StartupError } from '../platform/errors.ts';
import { StoreError } from '../store/errors.ts';
import type { Store } from '../store/store.ts';
import {
  syncTable,
  type TableReader,
  type TableWriter,
  type TransferMetadata,
  type VaultMetadata,
} from '../store/transfer.ts';
import { TABLES, type Table } from '../store/transfer-schema.ts';
import { type VerificationResult, Verifier } from '../vault/verification/verifier.ts';
import { describeLocation, openSource, openTarget, type Source, type Target, type VaultLocation } from './locations.ts';
import { anchorTarget, checkSourceAnchor } from './migrate-anchor.ts';
import { readRootKey } from './root-key.ts';

export interface MigrationRequest {
  readonly from: VaultLocation;
  readonly to: VaultLocation;
  readonly rootKeyFile: string;
  readonly acceptsBrokenChain: boolean;
}

/** How a running migration reports, and is cancelled. */
export interface ProgressReporter {
  readonly signal: AbortSignal;
  /** A line about the step that begins, or a warning. */
  say(line: string): void;
  /** How many rows of a table are the same in both databases. */
  progress(what: string, rows: number, of: number): void;
}

export interface MigrationResult {
  /** Whether an earlier run completed the migration. */
  readonly wasDone: boolean;
  /** Rows by table. */
  readonly counts: ReadonlyMap<string, number>;
  /** Of the target's chain. */
  readonly verification: VerificationResult;
}

/** Whether the error is one for the operator; any other one is a bug. */
export function isExpectedError(error: unknown): error is Error {
  const isSystems = error instanceof Error && 'syscall' in error;
  return error instanceof StartupError || error instanceof StoreError || isSystems;
}

/** @throws StartupError, StoreError, the signal's reason */
export async function migrate(request: MigrationRequest, reporter: ProgressReporter): Promise<MigrationResult> {
  const rootKey = { file: request.rootKeyFile, isDefaultFile: false, vaultExists: true };
  const keys = deriveKeys(readRootKey(rootKey, reporter.say));
  const source = await openSource(request.from);
  try {
    await assertKey(source.store, keys, request);
    const loss = await checkSourceAnchor(request.from, source.store, keys, request.acceptsBrokenChain);
    if (loss !== null) reporter.say(loss);
    const before = await verifySource(source.store, keys, request, reporter);
    const reader = await source.openReader();
    try {
      const metadata = await readMetadata(source, reader);
      const target = await openTarget(request.to);
      try {
        return await copyAll({ request, keys, reporter, source, reader, metadata, target, before });
      } finally {
        await target.close();
      }
    } finally {
      reader.close();
    }
  } finally {
    await source.close();
  }
}

/** A migration whose source and target are open. */
interface Migration {
  readonly request: MigrationRequest;
  readonly keys: VaultKeys;
  readonly reporter: ProgressReporter;
  readonly source: Source;
  readonly reader: TableReader;
  readonly metadata: TransferMetadata;
  readonly target: Target;
  /** Of the source's chain. */
  readonly before: VerificationResult;
}

async function copyAll(migration: Migration): Promise<MigrationResult> {
  const { request, reporter, source, reader, metadata, target } = migration;
  const counts = new Map<string, number>();
  for (const table of TABLES) counts.set(table.name, await reader.count(table));
  const writer = await target.openWriter(metadata);
  try {
    const copied = await writer.readRecords();
    if (copied !== null) {
      const verification = await assertMoved(migration, copied);
      return { wasDone: true, counts, verification };
    }
    await assertEmptyOrBegun(writer, request);
    reporter.say(`Moving to ${describeLocation(request.to)}.`);
    for (const table of TABLES) await copyTable(migration, writer, table, counts.get(table.name) ?? 0);
    await source.assertUnchanged();
    for (const table of TABLES) await assertCount(writer, table, counts.get(table.name) ?? 0);
    await anchorTarget(request.to, source.store, migration.keys, request.acceptsBrokenChain);
    // ORDER: last. From here on the target is a vault.
    await writer.commitMetadata();
  } finally {
    writer.close();
  }
  reporter.say('Verifying the copied chain.');
  const verification = await verify(target.store, migration);
  await assertSame(migration, verification);
  await source.assertUnchanged();
  return { wasDone: false, counts, verification };
}

async function copyTable(
  { reader, reporter }: Migration,
  writer: TableWriter,
  table: Table,
  of: number,
): Promise<void> {
  let done = 0;
  const tell = (_: Table, rows: number): void => {
    done += rows;
    reporter.progress(table.name, done, of);
  };
  await syncTable({ source: reader, target: writer, signal: reporter.signal, onProgress: tell }, table);
}

/** @throws StartupError unless the source has a vault of this root key */
async function assertKey(store: Store, keys: VaultKeys, { from, rootKeyFile }: MigrationRequest): Promise<void> {
  const keyCheck = await store.readRootKeyCheck();
  const where = describeLocation(from);
  if (keyCheck === null) {
    const what = (await store.isEmpty()) ? 'contains no vault' : "contains rows of a vault, but not the vault's record";
    throw new StartupError(`${where} ${what}: there is nothing to move.`);
  }
  if (timingSafeEqualText(keyCheck, keys.checkValue)) return;
  throw new StartupError(`${rootKeyFile} is not the root key of the vault in ${where}. Nothing was moved.`);
}

async function verifySource(
  store: Store,
  keys: VaultKeys,
  request: MigrationRequest,
  reporter: ProgressReporter,
): Promise<VerificationResult> {
  reporter.say(`Verifying the chain of ${describeLocation(request.from)}.`);
  const found = await verify(store, { keys, reporter });
  if (found.isValid || request.acceptsBrokenChain) return found;
  throw new StartupError(
    `The audit chain of ${describeLocation(request.from)} is broken at entry ${found.breakAtEntry}: ${found.reason}. Nothing was moved. Restore a backup, or add --accept-broken-chain to copy the log as it is.`,
  );
}

function verify(store: Store, { keys, reporter }: Pick<Migration, 'keys' | 'reporter'>): Promise<VerificationResult> {
  return new Verifier({ store, keys, clock: startClock(0) }).verify(reporter.signal);
}

async function readMetadata(source: Source, reader: TableReader): Promise<TransferMetadata> {
  const records = await reader.readRecords();
  // The reader's snapshot is the state that was verified.
  await source.assertUnchanged();
  if (records === null)
    throw new StartupError("The vault's record disappeared from the source while it was read. Run this command again.");
  return { records, highestSeq: (await source.store.readHead()).highestSeq };
}

/**
 * The log is copied first, so a target with other rows and no log is not an interrupted migration. @throws
 * StartupError
 */
async function assertEmptyOrBegun(writer: TableWriter, { to }: MigrationRequest): Promise<void> {
  const [log, ...others] = TABLES;
  if (log === undefined || (await writer.count(log)) > 0) return;
  for (const table of others) {
    if ((await writer.count(table)) === 0) continue;
    throw new StartupError(`${describeLocation(to)} is not empty: ${table.name} has rows. Give an empty database.`);
  }
}

/** @throws StartupError if the target has more or fewer rows than the source */
async function assertCount(writer: TableWriter, table: Table, wanted: number): Promise<void> {
  const found = await writer.count(table);
  if (found === wanted) return;
  throw new StartupError(
    `${table.name} has ${found} rows in the target and ${wanted} in the source. Run this command again.`,
  );
}

/**
 * Checks that the vault in the target is this one, with all of its entries and maybe later ones. @throws StartupError
 */
async function assertMoved({ request, metadata, keys, reporter, target, before }: Migration, copied: VaultMetadata) {
  const where = describeLocation(request.to);
  if (!timingSafeEqualText(copied.keyCheck, keys.checkValue)) {
    throw new StartupError(`${where} holds another vault. Nothing was changed. Give an empty database.`);
  }
  const { head } = metadata.records;
  const [entry] = head === null || head.seq === 0 ? [] : await target.store.readEntries(head.seq, head.seq, 1);
  if (head !== null && head.seq > 0 && entry?.hmac !== head.hmac && before.isValid) {
    throw new StartupError(
      `${where} holds this vault already, but not entry ${head.seq} of ${describeLocation(request.from)}: both were used since the migration. Nothing was changed.`,
    );
  }
  reporter.say('The vault was already moved; verifying its chain.');
  const verification = await verify(target.store, { keys, reporter });
  if (verification.isValid || isDeepStrictEqual(verification, before)) return verification;
  throw new StartupError(
    `The chain in ${where} is broken at entry ${verification.breakAtEntry}: ${verification.reason}.`,
  );
}

/** Compares the verification result, the head and the last entry of source and target. @throws StartupError */
async function assertSame({ source, target, before, request }: Migration, after: VerificationResult): Promise<void> {
  const [sent, arrived] = [await source.store.readHead(), await target.store.readHead()];
  if (isDeepStrictEqual(before, after) && isDeepStrictEqual(sent, arrived)) return;
  const what = after.isValid ? 'the heads differ' : `entry ${after.breakAtEntry}: ${after.reason}`;
  throw new StartupError(
    `The copy in ${describeLocation(request.to)} differs from the source (${what}). Do not use it.`,
  );
}
