/**
 * Moving house: carries a vault from one place to another, wholly, with its chain verified before and after. The source is not
 * touched. It can be interrupted at any moment and run again: it goes on then, or says that it is done.
 */

import { isDeepStrictEqual } from 'node:util';
import { deriveKeys, timingSafeEqualText, type VaultKeys } from '../crypto/keys.ts';
import { startClock } from '../ledger/clock.ts';
import { StartupError } from '../platform/errors.ts';
import { type Store, StoreError } from '../store/store.ts';
import {
  syncTable,
  type TableReader,
  type TableWriter,
  type TransferMetadata,
  type VaultMetadata,
} from '../store/transfer.ts';
import { TABLES, type Table } from '../store/transfer-schema.ts';
import { type Verification, Verifier } from '../vault/verification/verifier.ts';
import { describePlace, openSource, openTarget, type Source, type Target, type VaultLocation } from './locations.ts';
import { anchorTarget, checkSourceAnchor } from './migrate-anchor.ts';
import { readRootKey } from './root-key.ts';

export interface Move {
  readonly from: VaultLocation;
  readonly to: VaultLocation;
  readonly rootKeyFile: string;
  readonly acceptsBrokenChain: boolean;
}

/** What a move says of itself while it goes on. */
export interface ProgressReporter {
  readonly signal: AbortSignal;
  /** A line about what begins now, or what the operator should know. */
  say(line: string): void;
  /** Rows that are the same in both, of so many in all. */
  progress(what: string, rows: number, of: number): void;
}

export interface MigrationResult {
  /** Whether it was there already. */
  readonly wasDone: boolean;
  /** Rows by table. */
  readonly counts: ReadonlyMap<string, number>;
  /** Of the target, as of the source. */
  readonly verification: Verification;
}

/** Whether it is a reason not to move, worded for the operator; anything else is a mistake of ours. */
export function isRefusal(error: unknown): error is Error {
  const isSystems = error instanceof Error && 'syscall' in error;
  return error instanceof StartupError || error instanceof StoreError || isSystems;
}

/** @throws StartupError, StoreFailure, the signal's reason */
export async function migrate(order: Move, watching: ProgressReporter): Promise<MigrationResult> {
  const rootKeyPlace = { file: order.rootKeyFile, isDefaultFile: false, vaultExists: true };
  const keys = deriveKeys(readRootKey(rootKeyPlace, watching.say));
  const source = await openSource(order.from);
  try {
    await assertKey(source.store, keys, order);
    const loss = await checkSourceAnchor(order.from, source.store, keys, order.acceptsBrokenChain);
    if (loss !== null) watching.say(loss);
    const before = await verifySource(source.store, keys, order, watching);
    const carrier = await source.openCarrier();
    try {
      const cargo = await readCargo(source, carrier);
      const target = await openTarget(order.to);
      try {
        return await copyAll({ order, keys, watching, source, carrier, cargo, target, before });
      } finally {
        await target.close();
      }
    } finally {
      carrier.close();
    }
  } finally {
    await source.close();
  }
}

/** What is known of a move once both ends are open. */
interface Migration {
  readonly order: Move;
  readonly keys: VaultKeys;
  readonly watching: ProgressReporter;
  readonly source: Source;
  readonly carrier: TableReader;
  readonly cargo: TransferMetadata;
  readonly target: Target;
  /** What was found of the source's chain. */
  readonly before: Verification;
}

async function copyAll(journey: Migration): Promise<MigrationResult> {
  const { order, watching, source, carrier, cargo, target } = journey;
  const counts = new Map<string, number>();
  for (const table of TABLES) counts.set(table.name, await carrier.count(table));
  const into = await target.openCarrier(cargo);
  try {
    const there = await into.readRecords();
    if (there !== null) {
      const verification = await assertMoved(journey, there);
      return { wasDone: true, counts, verification };
    }
    await assertEmptyOrBegun(into, order);
    watching.say(`Moving into ${describePlace(order.to)}.`);
    for (const table of TABLES) await copyTable(journey, into, table, counts.get(table.name) ?? 0);
    await source.assertUnchanged();
    for (const table of TABLES) await assertCount(into, table, counts.get(table.name) ?? 0);
    await anchorTarget(order.to, source.store, journey.keys, order.acceptsBrokenChain);
    // ORDER: the last of all. From here on it is a vault.
    await into.commitMetadata();
  } finally {
    into.close();
  }
  watching.say('Verifying the chain that arrived.');
  const verification = await verify(target.store, journey);
  await assertSame(journey, verification);
  await source.assertUnchanged();
  return { wasDone: false, counts, verification };
}

async function copyTable({ carrier, watching }: Migration, into: TableWriter, table: Table, of: number): Promise<void> {
  let done = 0;
  const tell = (_: Table, rows: number): void => {
    done += rows;
    watching.progress(table.name, done, of);
  };
  await syncTable({ source: carrier, target: into, signal: watching.signal, onProgress: tell }, table);
}

/** The source's own vault, and whole. @throws StartupError */
async function assertKey(store: Store, keys: VaultKeys, { from, rootKeyFile }: Move): Promise<void> {
  const keyCheck = await store.readRootKeyCheck();
  const where = describePlace(from);
  if (keyCheck === null) {
    const what = (await store.isEmpty()) ? 'holds no vault' : 'holds rows of a vault, but not its own record';
    throw new StartupError(`${where} ${what}: there is nothing to move.`);
  }
  if (timingSafeEqualText(keyCheck, keys.checkValue)) return;
  throw new StartupError(`${rootKeyFile} is not the root key of the vault in ${where}. Nothing was moved.`);
}

async function verifySource(
  store: Store,
  keys: VaultKeys,
  order: Move,
  watching: ProgressReporter,
): Promise<Verification> {
  watching.say(`Verifying the chain of ${describePlace(order.from)}.`);
  const found = await verify(store, { keys, watching });
  if (found.isValid || order.acceptsBrokenChain) return found;
  throw new StartupError(
    `The audit chain of ${describePlace(order.from)} is broken at entry ${found.breakAtEntry}: ${found.reason}. Nothing was moved. Restore a backup; or, to carry it over as it is, say --accept-broken-chain.`,
  );
}

function verify(store: Store, { keys, watching }: Pick<Migration, 'keys' | 'watching'>): Promise<Verification> {
  return new Verifier({ store, keys, clock: startClock(0) }).verify(watching.signal);
}

async function readCargo(source: Source, carrier: TableReader): Promise<TransferMetadata> {
  const records = await carrier.readRecords();
  // What the carrier reads from now on is what was verified.
  await source.assertUnchanged();
  if (records === null) throw new StartupError('The source lost its own record while it was read.');
  return { records, highestSeq: (await source.store.readHead()).highestSeq };
}

/** Rows of other tables come behind the log: without it they are nobody knows whose. @throws StartupError */
async function assertEmptyOrBegun(into: TableWriter, { to }: Move): Promise<void> {
  const [log, ...others] = TABLES;
  if (log === undefined || (await into.count(log)) > 0) return;
  for (const table of others) {
    if ((await into.count(table)) === 0) continue;
    throw new StartupError(`${describePlace(to)} is not empty: ${table.name} has rows. Give an empty one.`);
  }
}

/** @throws StartupError where something else is in the target than was brought there */
async function assertCount(into: TableWriter, table: Table, wanted: number): Promise<void> {
  const found = await into.count(table);
  if (found === wanted) return;
  throw new StartupError(`${table.name} has ${found} rows in the target and ${wanted} in the source: run this again.`);
}

/** Of a target that is a vault: whether it is this one, with all of its entries. It may have gone on since. @throws StartupError */
async function assertMoved({ order, cargo, keys, watching, target, before }: Migration, there: VaultMetadata) {
  const where = describePlace(order.to);
  if (!timingSafeEqualText(there.keyCheck, keys.checkValue)) {
    throw new StartupError(`${where} holds another vault. Give an empty one; nothing was changed.`);
  }
  const { head } = cargo.records;
  const [entry] = head === null || head.seq === 0 ? [] : await target.store.readEntries(head.seq, head.seq, 1);
  if (head !== null && head.seq > 0 && entry?.hmac !== head.hmac && before.isValid) {
    throw new StartupError(
      `${where} holds this vault already, but not entry ${head.seq} of ${describePlace(order.from)}: both went on since they parted. Nothing was changed.`,
    );
  }
  watching.say('It is there already; verifying its chain.');
  const verification = await verify(target.store, { keys, watching });
  if (verification.isValid || isDeepStrictEqual(verification, before)) return verification;
  throw new StartupError(
    `The chain in ${where} is broken at entry ${verification.breakAtEntry}: ${verification.reason}.`,
  );
}

/** Holds what arrived against what was sent: the verdict on the chain, the head, the last entry. @throws StartupError */
async function assertSame({ source, target, before, order }: Migration, after: Verification): Promise<void> {
  const [sent, arrived] = [await source.store.readHead(), await target.store.readHead()];
  if (isDeepStrictEqual(before, after) && isDeepStrictEqual(sent, arrived)) return;
  const what = after.isValid ? 'its head is another one' : `entry ${after.breakAtEntry}: ${after.reason}`;
  throw new StartupError(`What arrived in ${describePlace(order.to)} is not what was sent (${what}). Don't use it.`);
}
