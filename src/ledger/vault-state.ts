/**
 * The ledger's state in memory: the control state, the head of the log, and a cache of sessions.
 * It is read from the store at start, and again after a failed commit.
 */

import type { Session } from '../core/agent.ts';
import { GENESIS_MAC } from '../core/audit.ts';
import type { ControlState } from '../core/control.ts';
import type { Credential } from '../core/credential.ts';
import type { TokenHash } from '../core/names.ts';
import { SUBJECT } from '../core/state.ts';
import { CHAIN_START, entryMac, isHeadInForce } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import type { SetDigest } from '../crypto/set-digest.ts';
import type { CompactRange } from '../crypto/tree.ts';
import { readEntries, readHead } from '../store/audit-log.ts';
import type { Store } from '../store/port.ts';
import { lacksStates, readNewestState } from '../store/recorded-states.ts';
import type { Head, LastEntry, StoredTreeNode } from '../store/store.ts';
import { readSession } from '../store/vault-metadata.ts';
import { AUTHENTICATED_ROWS } from './authenticated-rows.ts';
import { SYSTEM_TIME } from './clock.ts';
import { type RecordedDigest, readControl } from './read-control.ts';
import { SessionCache } from './session-cache.ts';
import { type RecordedTree, readTree } from './tree-state.ts';

/** The end of the chain, to which the next entry is appended. */
export interface ChainTip {
  readonly seq: number;
  readonly hmac: string;
  readonly epoch: number;
  /** Has `seq` leaves. */
  readonly tree: CompactRange;
  readonly control: string | null;
}

export interface VaultState {
  control: ControlState;
  /** Of the agents and policies in force; `tip.control` is its text. */
  digest: SetDigest;
  /** Why no agent and no policy is in force; null if they are proven. */
  unproven: string | null;
  /** The end of the chain on which the next batch builds. It differs from `head` if that is missing or forged. */
  tip: ChainTip;
  /** The head record that this node last read or wrote. If the store has a different one, another node wrote it. */
  head: Head | null;
  /**
   * The last entry that this node read or wrote, which the log must contain from then on; null if the log was empty.
   */
  lastSeenEntry: Pick<LastEntry, 'seq' | 'hmac'> | null;
  readonly sessions: SessionCache;
  /** Nodes of a tree that was computed from the log; the next batch stores them. */
  unstoredNodes: readonly StoredTreeNode[];
  /** Rows in the store's cache whose MAC was checked: the same object is not checked again. */
  readonly authentic: WeakSet<Credential>;
  /** The time of the log's last entry in milliseconds since 1970; 0 if the log is empty. */
  lastEntryAt: number;
  /** Warnings for the operator, one line each. */
  warnings: string[];
}

const NOT_YET_RECORDED: RecordedDigest = { kind: 'not yet recorded' };
const NO_TREE: RecordedTree = { text: null, size: 0 };

/** Entries at the end of the log whose MACs are checked at start, until one is valid. */
const MAX_ENTRIES_CHECKED = 100;

/** `acceptsControl`: agents and policies are in force by the log alone, without the digest in the head record. */
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
    tip: { seq: end.seq, hmac: end.hmac, epoch: end.epoch, control: end.control, tree },
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
  // The operator accepts a vault of an earlier version whatever its head record is.
  const isEarlier = acceptsControl && (await store.run(lacksStates()));
  const recorded = isEarlier ? NOT_YET_RECORDED : recordedDigest(head, last, end.isProven);
  const found: string[] = [];
  let reading = await readControl(store, keys, recorded, found);
  const isAccepted = reading.unproven !== null && acceptsControl;
  if (isAccepted) {
    warnings.push(`${reading.unproven} The operator trusts them.`);
    reading = await readControl(store, keys, { kind: 'accepted' }, warnings);
  } else warnings.push(...found);
  // A vault of an earlier version has no digest until its rows are recorded.
  const isUnrecorded = recorded.kind === 'not yet recorded' && reading.unproven === null && !isAccepted;
  return { head, last, end: { ...end, control: isUnrecorded ? null : reading.digest.toString() }, ...reading };
}

/** The digest counts if the head record is authentic and not older than the log, so that it is the newest one. */
function recordedDigest(head: Head | null, last: LastEntry | null, isAuthentic: boolean): RecordedDigest {
  if (head === null || !isAuthentic) return { kind: 'unknown', reason: "the log's head record is missing or forged" };
  if (head.seq < (last?.seq ?? 0)) return { kind: 'unknown', reason: "the log's head record is older than the log" };
  // The MAC of a record without a tree, which an earlier version wrote, does not cover the digest.
  const digest = head.tree === null ? null : head.control;
  return digest === null ? NOT_YET_RECORDED : { kind: 'recorded', digest };
}

/**
 * The time of the newest entry with a valid MAC, in milliseconds, because an edited time must not set the vault's
 * clock. Checks only the last entries; verification finds edits of more of them. Returns 0 if none is valid.
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

type LogEnd = Omit<ChainTip, 'tree'> & { readonly tree: RecordedTree; readonly isProven: boolean };

/**
 * The log continues after the head record, or after the highest sequence number found if that is greater. A missing or
 * forged head record skips one number, so that verification always reports the gap. No sequence number is used twice,
 * even if its entry was removed, because leases and bulk revocations refer to it.
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
      control: null,
      tree: NO_TREE,
      isProven: false,
    };
  }
  if (head.seq !== lastSeq || head.hmac !== lastMac || highestSeq > head.seq) {
    warnings.push(
      `The audit log's head record (entry ${head.seq}) and its last row (entry ${lastSeq}) disagree: entries were removed, added or altered. GET /api/v1/audit/verify names the first.`,
    );
  }
  const { hmac, epoch, control, tree } = head;
  const seq = Math.max(head.seq, highestSeq);
  return { seq, hmac, epoch, control, tree: { text: tree, size: head.seq }, isProven: true };
}

/** Reads a session from the store and adds it to the cache. Null if it does not exist or does not authenticate. */
export async function findSession(
  memory: VaultState,
  store: Store,
  keys: VaultKeys,
  tokenHash: TokenHash,
): Promise<Session | null> {
  // WHY twice: a renewal between the two reads replaces the row and its recorded state. There is one in a minute.
  for (let tries = 0; tries < 2; tries++) {
    const { invalidations } = memory.sessions;
    const session = await store.run(readSession(tokenHash), 'urgent');
    if (session === null || !AUTHENTICATED_ROWS.session.isAuthentic(keys.row, session)) return null;
    const recorded = await store.run(readNewestState(SUBJECT.session(session)), 'urgent');
    if (recorded !== session.mac) continue;
    // The session may have ended since it was read.
    if (memory.sessions.invalidations === invalidations) memory.sessions.put(session);
    return session;
  }
  return null;
}
