/**
 * Migrates a vault into an empty directory or database, all or nothing, and verifies its chain before and after. The
 * source is not changed. An interrupted migration leaves nothing and can be run again.
 */

import { isDeepStrictEqual } from 'node:util';
import { ROW_RULES } from '../backup/row-rules.ts';
import { GENESIS_MAC } from '../core/audit.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { startClock } from '../ledger/clock.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { readHead } from '../store/audit-log.ts';
import type { Store } from '../store/port.ts';
import { TABLES } from '../store/schema.ts';
import type { Row } from '../store/statement.ts';
import type { Table } from '../store/table.ts';
import { copyTable, countRows, readMetadata, type TransferSource, type VaultMetadata } from '../store/transfer.ts';
import { isEmpty, readStoredKeys } from '../store/vault-metadata.ts';
import { type VerificationResult, Verifier } from '../vault/verification/verifier.ts';
import {
  describeLocation,
  type MigrationTarget,
  openSource,
  openTarget,
  type Source,
  type VaultLocation,
} from './locations.ts';
import { openOffline, type SlotAccess } from './offline-keys.ts';
import { acceptFinding, compareWithMarker } from './rollback-detection.ts';
import { RollbackMarker } from './rollback-marker.ts';

export interface MigrationRequest extends SlotAccess {
  readonly from: VaultLocation;
  readonly to: VaultLocation;
  readonly acceptsBrokenChain: boolean;
}

/** How a running migration reports, and is cancelled. */
export interface ProgressReporter {
  readonly signal: AbortSignal;
  /** A line about the step that begins, or a warning. */
  say(line: string): void;
  /** How many rows of a table were copied. */
  progress(what: string, rows: number, of: number): void;
}

export interface MigrationResult {
  /** Rows by table. */
  readonly counts: ReadonlyMap<string, number>;
  /** Of the target's chain. */
  readonly verification: VerificationResult;
}

/** @throws StartupError, StoreError, the signal's reason */
export async function migrate(request: MigrationRequest, reporter: ProgressReporter): Promise<MigrationResult> {
  const { from, to } = request;
  await using resources = new AsyncDisposableStack();
  const source = await openSource(from, resources);
  const keys = await openSourceKeys(source.store, request, reporter);
  await checkSourceMarker(source.store, keys, request, reporter);
  const before = await verifySource(source.store, keys, request, reporter);
  const reader = resources.adopt(await source.openReader(), (each) => each.close());
  const metadata = await readSourceMetadata(source, reader);
  const target = await openTarget(to, metadata, resources);
  reporter.say(`Migrating to ${describeLocation(to)}.`);
  const counts = await copyTables(reader, target, reporter);
  await source.assertUnchanged();
  const copy = await target.commit();
  reporter.say('Verifying the copied chain.');
  const verification = await verify(copy, keys, reporter);
  const [sent, arrived] = [await source.store.run(readHead()), await copy.run(readHead())];
  if (!isDeepStrictEqual(before, verification) || !isDeepStrictEqual(sent, arrived)) {
    const what = verification.isValid
      ? 'the heads differ'
      : `entry ${verification.breakAtEntry}: ${verification.reason}`;
    throw new StartupError(`The copy in ${describeLocation(to)} differs from the source (${what}). Do not use it.`);
  }
  await source.assertUnchanged();
  // ORDER: a vault without its rollback marker does not start.
  await markTarget(source.store, keys, request);
  await target.publish();
  return { counts, verification };
}

/** Resolves to the numbers of rows, by table. @throws StartupError if they differ */
async function copyTables(
  reader: TransferSource,
  { writer }: MigrationTarget,
  reporter: ProgressReporter,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const table of TABLES) {
    const count = await reader.run(countRows(table, reader.views));
    counts.set(table.name, count);
    const onProgress = (rows: number): void => reporter.progress(table.name, rows, count);
    await copyTable(reader, writer, table, reporter.signal, (row, number) => assertRow(table, row, number), onProgress);
  }
  // After the last table: the rows of one may become part of another.
  for (const table of TABLES) {
    const [found, count] = [await writer.count(table), counts.get(table.name)];
    if (found === count) continue;
    throw new StartupError(
      `${table.name} has ${found} rows in the target and ${count} in the source. Nothing was migrated.`,
    );
  }
  return counts;
}

/** A database that was altered outside may contain anything. @throws StartupError that never repeats the content */
function assertRow({ name, columns }: Table<object>, row: Row, number: number): void {
  for (const { name: column } of columns) {
    const value = row[column] ?? null;
    const broken = ROW_RULES[name]?.columns[column]?.(value instanceof Uint8Array ? toBase64(value) : value) ?? null;
    if (broken === null) continue;
    throw new StartupError(`Row ${number} of ${name}: ${column} ${broken}. Nothing was migrated. Restore a backup.`);
  }
}

const toBase64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

/** @throws StartupError unless the source has a vault that one of its slots opens */
async function openSourceKeys(store: Store, request: MigrationRequest, { say }: ProgressReporter): Promise<VaultKeys> {
  const stored = await store.run(readStoredKeys());
  if (stored.keyCheck !== null) return openOffline(stored, request, 'the vault', say);
  const what = (await store.run(isEmpty()))
    ? 'contains no vault'
    : "contains rows of a vault, but not the vault's record";
  throw new StartupError(`${describeLocation(request.from)} ${what}: there is nothing to migrate.`);
}

async function verifySource(
  store: Store,
  keys: VaultKeys,
  request: MigrationRequest,
  reporter: ProgressReporter,
): Promise<VerificationResult> {
  reporter.say(`Verifying the chain of ${describeLocation(request.from)}.`);
  const found = await verify(store, keys, reporter);
  if (found.isValid || request.acceptsBrokenChain) return found;
  throw new StartupError(
    `The audit chain of ${describeLocation(request.from)} is broken at entry ${found.breakAtEntry}: ${found.reason}. Nothing was migrated. Restore a backup, or add --accept-broken-chain to copy the log as it is.`,
  );
}

function verify(store: Store, keys: VaultKeys, { signal }: ProgressReporter): Promise<VerificationResult> {
  return new Verifier({ store, keys, clock: startClock(0) }).verify(signal);
}

/** The embedded source must have every acknowledged entry. @throws StartupError for a loss that is not accepted */
async function checkSourceMarker(
  store: Store,
  keys: VaultKeys,
  { from, acceptsBrokenChain }: MigrationRequest,
  { say }: ProgressReporter,
): Promise<void> {
  if (from.kind === 'database') return;
  const marker = new RollbackMarker(dataDirPaths(from.dir).rollbackMarkerFile, keys);
  const loss = await compareWithMarker(marker, store, keys);
  const accepted = acceptFinding(loss, acceptsBrokenChain);
  if (accepted !== null) say(accepted);
}

/** @throws StartupError if a rollback marker in a target directory names a later entry, which a node has seen */
async function markTarget(source: Store, keys: VaultKeys, request: MigrationRequest): Promise<void> {
  if (request.to.kind === 'database') return;
  const marker = new RollbackMarker(dataDirPaths(request.to.dir).rollbackMarkerFile, keys);
  acceptFinding(await compareWithMarker(marker, source, keys), request.acceptsBrokenChain);
  const { last } = await source.run(readHead());
  await marker.keep(last ?? { seq: 0, hmac: GENESIS_MAC });
  await marker.close();
}

async function readSourceMetadata(source: Source, reader: TransferSource): Promise<VaultMetadata> {
  const { highestSeq } = await source.store.run(readHead());
  const metadata = await reader.run(readMetadata(highestSeq));
  // The reader's snapshot is the state that was verified.
  await source.assertUnchanged();
  if (metadata === null)
    throw new StartupError("The vault's record disappeared from the source while it was read. Run this command again.");
  return metadata;
}
