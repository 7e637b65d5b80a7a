/**
 * Migrates a vault into an empty directory or database, all or nothing, and verifies its chain before and after. The
 * source is not changed. An interrupted migration leaves nothing and can be run again.
 */

import { isDeepStrictEqual } from 'node:util';
import { deriveKeys, timingSafeEqualText, type VaultKeys } from '../crypto/keys.ts';
import { startClock } from '../ledger/clock.ts';
import { StartupError } from '../platform/errors.ts';
import { StoreError } from '../store/errors.ts';
import { TABLES } from '../store/schema.ts';
import type { Store } from '../store/sql-store.ts';
import { copyTable, countRows, readMetadata, type TransferSource, type VaultMetadata } from '../store/transfer.ts';
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
  /** How many rows of a table were copied. */
  progress(what: string, rows: number, of: number): void;
}

export interface MigrationResult {
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
      const metadata = await readSourceMetadata(source, reader);
      const target = await openTarget(request.to, metadata);
      try {
        return await copyAll({ request, keys, reporter, source, reader, target, before });
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
  readonly reader: TransferSource;
  readonly target: Target;
  /** Of the source's chain. */
  readonly before: VerificationResult;
}

async function copyAll(migration: Migration): Promise<MigrationResult> {
  const { request, keys, reporter, source, target } = migration;
  reporter.say(`Migrating to ${describeLocation(request.to)}.`);
  const counts = await copyTables(migration);
  await source.assertUnchanged();
  const copy = await target.commit();
  reporter.say('Verifying the copied chain.');
  const verification = await verify(copy, migration);
  await assertSame(migration, copy, verification);
  await source.assertUnchanged();
  // ORDER: a vault without its anchor does not start.
  await anchorTarget(request.to, source.store, keys, request.acceptsBrokenChain);
  await target.publish();
  return { counts, verification };
}

/** Resolves to the numbers of rows, by table. @throws StartupError if they differ */
async function copyTables({ reader, target: { writer }, reporter }: Migration): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const table of TABLES) {
    const count = await reader.run(countRows(table, reader.views));
    counts.set(table.name, count);
    const onProgress = (rows: number): void => reporter.progress(table.name, rows, count);
    await copyTable(reader, writer, table, reporter.signal, onProgress);
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

/** @throws StartupError unless the source has a vault of this root key */
async function assertKey(store: Store, keys: VaultKeys, { from, rootKeyFile }: MigrationRequest): Promise<void> {
  const keyCheck = await store.readRootKeyCheck();
  const where = describeLocation(from);
  if (keyCheck === null) {
    const what = (await store.isEmpty()) ? 'contains no vault' : "contains rows of a vault, but not the vault's record";
    throw new StartupError(`${where} ${what}: there is nothing to migrate.`);
  }
  if (timingSafeEqualText(keyCheck, keys.checkValue)) return;
  throw new StartupError(`${rootKeyFile} is not the root key of the vault in ${where}. Nothing was migrated.`);
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
    `The audit chain of ${describeLocation(request.from)} is broken at entry ${found.breakAtEntry}: ${found.reason}. Nothing was migrated. Restore a backup, or add --accept-broken-chain to copy the log as it is.`,
  );
}

function verify(store: Store, { keys, reporter }: Pick<Migration, 'keys' | 'reporter'>): Promise<VerificationResult> {
  return new Verifier({ store, keys, clock: startClock(0) }).verify(reporter.signal);
}

async function readSourceMetadata(source: Source, reader: TransferSource): Promise<VaultMetadata> {
  const { highestSeq } = await source.store.readHead();
  const metadata = await reader.run(readMetadata(highestSeq));
  // The reader's snapshot is the state that was verified.
  await source.assertUnchanged();
  if (metadata === null)
    throw new StartupError("The vault's record disappeared from the source while it was read. Run this command again.");
  return metadata;
}

/** Compares the verification result, the head and the last entry of source and target. @throws StartupError */
async function assertSame(
  { source, before, request }: Migration,
  copy: Store,
  after: VerificationResult,
): Promise<void> {
  const [sent, arrived] = [await source.store.readHead(), await copy.readHead()];
  if (isDeepStrictEqual(before, after) && isDeepStrictEqual(sent, arrived)) return;
  const what = after.isValid ? 'the heads differ' : `entry ${after.breakAtEntry}: ${after.reason}`;
  throw new StartupError(
    `The copy in ${describeLocation(request.to)} differs from the source (${what}). Do not use it.`,
  );
}
