/**
 * The ledger's state in memory: the control state, the head of the audit log, and a cache of sessions.
 * It is read from the store at startup, and again after a failed commit.
 */

import { LRUCache } from 'lru-cache';
import type { ControlState } from '../core/control.ts';
import type { TokenHash } from '../core/names.ts';
import { subjectOf } from '../core/resources.ts';
import { CHAIN_START, entryMac, headMac, isHeadInForce } from '../crypto/chain.ts';
import { SetDigest } from '../crypto/row-mac.ts';
import { CompactRange, encodeHash, type TreeNode } from '../crypto/tree.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { readEntries, readHead, readMacs } from '../store/audit-log.ts';
import { StoreError } from '../store/errors.ts';
import type { Store } from '../store/port.ts';
import { readNewestState } from '../store/recorded-states.ts';
import type { Head, LastEntry } from '../store/stored-data.ts';
import { readSession } from '../store/vault-metadata.ts';
import { GENESIS_MAC } from '../vault/audit/audit-entry.ts';
import type { StoredTreeNode } from '../vault/audit/proofs.ts';
import type { Credential } from '../vault/credentials/credential.ts';
import type { Session } from '../vault/sessions/session.ts';
import { isAuthentic } from './authenticated-rows.ts';
import { SYSTEM_TIME } from './clock.ts';
import { type RecordedDigest, readControl } from './read-control.ts';

/** The end of the chain, to which the next entry is appended. */
export interface ChainTip {
  readonly seq: number;
  readonly hmac: string;
  readonly epoch: number;
  /** Has `seq` leaves. */
  readonly tree: CompactRange;
  readonly control: string;
}

export interface VaultState {
  control: ControlState;
  /** The digest of the control state in force; `tip.control` is its text. */
  digest: SetDigest;
  /** The reason why no agent and no policy is in force; null if they are proven. */
  unproven: string | null;
  /** The end of the chain on which the next batch builds. It differs from `head` if that is missing or forged. */
  tip: ChainTip;
  /** The head record that this node last read or wrote. If the store has a different one, another node wrote it. */
  head: Head | null;
  /**
   * The last entry that this node read or wrote, which the audit log must contain afterwards; null if the audit log was
   * empty.
   */
  lastSeenEntry: Pick<LastEntry, 'seq' | 'hmac'> | null;
  readonly sessions: SessionCache;
  /** Nodes of a tree that was computed from the audit log; the next batch stores them. */
  unstoredNodes: readonly StoredTreeNode[];
  /** Rows in the store's cache whose MAC was checked: the same object is not checked again. */
  readonly authentic: WeakSet<Credential>;
  /** The time of the audit log's last entry in milliseconds since 1970; 0 if the audit log is empty. */
  lastEntryAt: number;
  /** Warnings for the operator, one line each. */
  warnings: string[];
}

export function initialHead(keys: Pick<VaultKeys, 'audit' | 'row'>): Head {
  const fields = { seq: 0, hmac: GENESIS_MAC, epoch: 0, tree: '', control: new SetDigest(keys.row).toString() };
  return { ...fields, mac: headMac(keys.audit, fields) };
}

const NO_TREE: RecordedTree = { text: null, size: 0 };

/** Entries at the end of the audit log whose MACs are checked at startup, until one is valid. */
const MAX_ENTRIES_CHECKED = 100;

/** `acceptsControl`: the control state is in force by the audit log alone, without the digest in the head record. */
export async function readVaultState(store: Store, keys: VaultKeys, acceptsControl = false): Promise<VaultState> {
  const warnings: string[] = [];
  // WHY a transaction: on a shared store its lock keeps other nodes from committing between these reads.
  const transaction = await store.begin([]);
  let read: Awaited<ReturnType<typeof readUnderLock>>;
  try {
    read = await readUnderLock(store, keys, acceptsControl, warnings);
  } finally {
    await transaction.rollback();
  }
  const { head, last, end, control, digest, unproven } = read;
  const { tree, unstoredNodes } = await readTree(store, end.tree, end.seq);
  const lastEntryAt = last === null ? 0 : await findLastTime(store, last.seq, keys, warnings);
  return {
    control,
    digest,
    unproven,
    tip: { seq: end.seq, hmac: end.hmac, epoch: end.epoch, control: digest.toString(), tree },
    head,
    unstoredNodes,
    lastSeenEntry: last,
    sessions: new SessionCache(),
    authentic: new WeakSet(),
    lastEntryAt,
    warnings,
  };
}

async function readUnderLock(store: Store, keys: VaultKeys, acceptsControl: boolean, warnings: string[]) {
  const { head, last, highestSeq } = await store.run(readHead());
  const end = findEnd(head, last, highestSeq, keys, warnings);
  const recorded = recordedDigest(head, last, end.isProven);
  const found: string[] = [];
  let reading = await readControl(store, keys, recorded, found);
  if (reading.unproven !== null && acceptsControl) {
    warnings.push(`${reading.unproven} The operator trusts them.`);
    reading = await readControl(store, keys, { kind: 'accepted' }, warnings);
  } else warnings.push(...found);
  return { head, last, end, ...reading };
}

/** The digest counts if the head record is authentic and not older than the audit log, so that it is the newest one. */
function recordedDigest(head: Head | null, last: LastEntry | null, isAuthentic: boolean): RecordedDigest {
  if (head === null || !isAuthentic)
    return { kind: 'unknown', reason: "the audit log's head record is missing or forged" };
  if (head.seq < (last?.seq ?? 0))
    return { kind: 'unknown', reason: "the audit log's head record is older than the audit log" };
  return { kind: 'recorded', digest: head.control };
}

/**
 * The time of the newest entry with a valid MAC, in milliseconds; 0 if none is valid. WHY the MAC: an altered time must
 * not set the vault's clock. Only the last entries are checked; verification checks every entry.
 */
export async function findLastTime(
  store: Store,
  lastSeq: number,
  keys: VaultKeys,
  warnings: string[],
): Promise<number> {
  const firstSeq = Math.max(1, lastSeq - MAX_ENTRIES_CHECKED);
  const entries = await store.run(readEntries(firstSeq, lastSeq, MAX_ENTRIES_CHECKED + 1));
  for (const [index, entry] of [...entries.entries()].reverse()) {
    const previous = entry.seq === 1 ? CHAIN_START : entries[index - 1];
    // A damaged page can hold null in a column that is never null.
    if (previous?.seq !== entry.seq - 1 || typeof previous.hmac !== 'string') continue;
    if (entryMac(keys.auditAt(entry.seq), previous.hmac, entry) === entry.hmac) return Date.parse(entry.timestamp) || 0;
    if (entry.seq === lastSeq && warnings.length === 0) {
      warnings.push(
        `The last entry of the audit log (entry ${lastSeq}) was altered, and its time is not used. GET /api/v1/audit/verify names the first altered entry.`,
      );
    }
  }
  return 0;
}

type LogEnd = Omit<ChainTip, 'tree' | 'control'> & { readonly tree: RecordedTree; readonly isProven: boolean };

/**
 * The audit log continues after the head record, or after the highest sequence number found if that is greater. A
 * missing or forged head record skips one number, so that verification always reports the gap. No sequence number is
 * used twice, even if its entry was removed, because leases and bulk revocations refer to it.
 */
function findEnd(
  head: Head | null,
  last: LastEntry | null,
  highestSeq: number,
  keys: VaultKeys,
  warnings: string[],
): LogEnd {
  const lastSeq = last?.seq ?? 0;
  const lastMac = last?.hmac ?? GENESIS_MAC;
  if (head === null || !isHeadInForce(keys, head)) {
    warnings.push(
      `The audit log's head record is ${head === null ? 'missing' : 'not authentic'}; the log continues after a gap at entry ${lastSeq + 1}, which GET /api/v1/audit/verify reports.`,
    );
    // The wall clock is greater than any epoch so far: other nodes must not take an epoch that they know for this
    // state.
    return {
      seq: highestSeq + 1,
      hmac: lastMac,
      epoch: SYSTEM_TIME.wall(),
      tree: NO_TREE,
      isProven: false,
    };
  }
  if (head.seq !== lastSeq || head.hmac !== lastMac || highestSeq > head.seq) {
    warnings.push(
      `The audit log's head record (entry ${head.seq}) and its last row (entry ${lastSeq}) disagree: entries were removed, added or altered. GET /api/v1/audit/verify names the first.`,
    );
  }
  const { hmac, epoch, tree } = head;
  const seq = Math.max(head.seq, highestSeq);
  return { seq, hmac, epoch, tree: { text: tree, size: head.seq }, isProven: true };
}

// The Merkle tree at startup: it is restored from the head record, or computed from the entries if the record is
// damaged.

interface TreeState {
  readonly tree: CompactRange;
  /** Nodes that the store may lack. */
  readonly unstoredNodes: readonly StoredTreeNode[];
}

/** The tree of the head record: the compact range of the first `size` leaves. Null if the record is damaged. */
interface RecordedTree {
  readonly text: string | null;
  readonly size: number;
}

const STEP_ENTRIES = 10_000;
/** The entries of about a second of work. WHY a limit: a number that was altered outside can have any value. */
const MAX_GAP = 1_000_000;

/** The tree with a leaf for each sequence number up to `seq`. A number without an entry has a leaf of zero bytes. */
async function readTree(store: Pick<Store, 'run'>, recorded: RecordedTree, seq: number): Promise<TreeState> {
  const restored = recorded.text === null ? null : CompactRange.parse(recorded.text, recorded.size);
  const completed: TreeNode[] = [];
  const tree = restored ?? (await computeTree(store, seq, completed));
  assertGap(tree.size, seq);
  while (tree.size < seq) tree.append(GENESIS_MAC, completed);
  return { tree, unstoredNodes: toStoredNodes(completed) };
}

function assertGap(end: number, seq: number): void {
  if (seq - end <= MAX_GAP) return;
  throw new StoreError(
    'unavailable',
    `a row names entry ${seq}, but the audit log ends at ${end}: the database was altered outside. Restore a backup`,
  );
}

async function computeTree(store: Pick<Store, 'run'>, seq: number, completed: TreeNode[]): Promise<CompactRange> {
  const tree = CompactRange.empty();
  while (tree.size < seq) {
    const macs = await store.run(readMacs(tree.size + 1, seq, STEP_ENTRIES));
    if (macs.length === 0) break;
    for (const entry of macs) {
      assertGap(tree.size, entry.seq);
      while (tree.size < entry.seq - 1) tree.append(GENESIS_MAC, completed);
      tree.append(entry.hmac, completed);
    }
  }
  return tree;
}

export function toStoredNodes(nodes: readonly TreeNode[]): StoredTreeNode[] {
  return nodes.map(({ level, position, hash }) => ({ level, position, hash: encodeHash(hash) }));
}

// A cache of sessions. The commit that ends a session removes it.

export class SessionCache {
  /** WHY `maxSize` without `max`: see budgets.ts. */
  readonly #sessions = new LRUCache<TokenHash, Session>({ maxSize: 10_000, sizeCalculation: () => 1 });
  #invalidations = 0;

  /** The number of sessions dropped so far. A read of the store that began before the last drop may be stale. */
  get invalidations(): number {
    return this.#invalidations;
  }

  get(tokenHash: TokenHash): Session | null {
    return this.#sessions.get(tokenHash) ?? null;
  }

  /** WHY not an operator's: another node may have renewed it. */
  put(session: Session): void {
    if (session.endsAt !== null) return;
    this.#sessions.set(session.tokenHash, session);
  }

  drop(tokenHash: TokenHash): void {
    this.#invalidations += 1;
    this.#sessions.delete(tokenHash);
  }
}

/** Reads a session from the store and adds it to the cache. Null if it does not exist or does not authenticate. */
export async function findSession(
  { sessions }: { readonly sessions: SessionCache },
  store: Store,
  keys: VaultKeys,
  tokenHash: TokenHash,
): Promise<Session | null> {
  // WHY twice: a renewal between the two reads replaces the row and its recorded state. There is one in a minute.
  for (let tries = 0; tries < 2; tries++) {
    const { invalidations } = sessions;
    const session = await store.run(readSession(tokenHash), 'urgent');
    if (session === null || !isAuthentic(keys.row, 'session', session)) return null;
    const recorded = await store.run(readNewestState(subjectOf('session', session)), 'urgent');
    if (recorded !== session.mac) continue;
    // The session may have ended since it was read.
    if (sessions.invalidations === invalidations) sessions.put(session);
    return session;
  }
  return null;
}
