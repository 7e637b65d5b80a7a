/**
 * The ledger's state in memory: the control state, the head of the log, and a cache of sessions.
 * It is read from the store at start, and again after a failed commit.
 */
import type { Session } from '../core/agent.ts';
import { GENESIS_MAC } from '../core/audit.ts';
import { ControlState } from '../core/control.ts';
import type { Credential } from '../core/credential.ts';
import type { TokenHash } from '../core/names.ts';
import { CHAIN_START, entryMac, isHeadAuthentic } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import type { Store } from '../store/sql-store.ts';
import type { Head, LastEntry } from '../store/store.ts';
import { AUTHENTICATED_ROWS } from './authenticated-rows.ts';
import { SYSTEM_TIME } from './clock.ts';
import { SessionCache } from './session-cache.ts';

/** The end of the chain, to which the next entry is appended. */
export interface ChainTip {
  readonly seq: number;
  readonly hmac: string;
  readonly epoch: number;
}

export interface VaultState {
  control: ControlState;
  /** The end of the chain on which the next batch builds. It differs from `head` if that is missing or forged. */
  tip: ChainTip;
  /** The head record that this node last read or wrote. If the store has a different one, another node wrote it. */
  head: Head | null;
  /**
   * The last entry that this node read or wrote, which the log must contain from then on; null if the log was empty.
   */
  lastSeenEntry: Pick<LastEntry, 'seq' | 'hmac'> | null;
  readonly sessions: SessionCache;
  /** Rows in the store's cache whose MAC was checked: the same object is not checked again. */
  readonly authentic: WeakSet<Credential>;
  /** The time of the log's last entry in milliseconds since 1970; 0 if the log is empty. */
  lastEntryAt: number;
  /** Warnings for the operator, one line each. */
  warnings: string[];
}

/** Entries at the end of the log whose MACs are checked at start, until one is valid. */
const MAX_ENTRIES_CHECKED = 100;

export async function readVaultState(store: Store, keys: VaultKeys): Promise<VaultState> {
  const { head, last, highestSeq } = await store.readHead();
  const warnings: string[] = [];
  const tip = findTip(head, last, highestSeq, keys, warnings);
  const lastEntryAt = last === null ? 0 : await findLastTime(store, last.seq, keys, warnings);
  const control = await readControl(store, keys, warnings);
  return {
    control,
    tip,
    head,
    lastSeenEntry: last,
    sessions: new SessionCache(),
    authentic: new WeakSet(),
    lastEntryAt,
    warnings,
  };
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
  const entries = await store.readEntries(firstSeq, lastSeq, MAX_ENTRIES_CHECKED + 1);
  for (const [index, entry] of [...entries.entries()].reverse()) {
    const previous = entry.seq === 1 ? CHAIN_START : entries[index - 1];
    if (previous?.seq !== entry.seq - 1) continue;
    if (entryMac(keys.audit, previous.hmac, entry) === entry.hmac) return Date.parse(entry.timestamp) || 0;
    if (entry.seq === lastSeq && warnings.length === 0) {
      warnings.push(
        `The last entry of the audit log (entry ${lastSeq}) was altered, and its time is not used. GET /api/v1/audit/verify names the first altered entry.`,
      );
    }
  }
  return 0;
}

/**
 * The log continues after the head record, or after the highest sequence number found if that is greater. A missing or
 * forged head record skips one number, so that verification always reports the gap. No sequence number is used twice,
 * even if its entry was removed, because leases and bulk revocations refer to it.
 */
function findTip(
  head: Head | null,
  last: LastEntry | null,
  highestSeq: number,
  keys: VaultKeys,
  warnings: string[],
): ChainTip {
  const lastSeq = last?.seq ?? 0;
  const lastMac = last?.hmac ?? GENESIS_MAC;
  if (head === null || !isHeadAuthentic(keys.audit, head)) {
    warnings.push(
      `The audit log's head record is ${head === null ? 'missing' : 'not authentic'}; the log continues after a gap at entry ${lastSeq + 1}, which GET /api/v1/audit/verify reports.`,
    );
    // The wall clock is greater than any epoch so far: other nodes must not take an epoch that they know for this
    // state.
    return { seq: highestSeq + 1, hmac: lastMac, epoch: SYSTEM_TIME.wall() };
  }
  if (head.seq !== lastSeq || head.hmac !== lastMac || highestSeq > head.seq) {
    warnings.push(
      `The audit log's head record (entry ${head.seq}) and its last row (entry ${lastSeq}) disagree: entries were removed, added or altered. GET /api/v1/audit/verify names the first.`,
    );
  }
  return { seq: Math.max(head.seq, highestSeq), hmac: head.hmac, epoch: head.epoch };
}

/** Rows without a valid MAC are not used, so that an edit of the database grants nothing. */
export async function readControl(store: Store, keys: VaultKeys, warnings: string[]): Promise<ControlState> {
  const [agents, policies] = [await store.readAgents(), await store.readPolicies()];
  const goodAgents = agents.filter((agent) => AUTHENTICATED_ROWS.agent.isAuthentic(keys.row, agent));
  const goodPolicies = policies.filter((policy) => AUTHENTICATED_ROWS.policy.isAuthentic(keys.row, policy));
  const ignored = agents.length - goodAgents.length + policies.length - goodPolicies.length;
  if (ignored > 0) {
    warnings.push(
      `${ignored} ${ignored === 1 ? 'row' : 'rows'} of agents or policies in the database were altered outside Leasehold and are not used. Register or create them again.`,
    );
  }
  return new ControlState(goodAgents, goodPolicies);
}

/** Reads a session from the store and adds it to the cache. Null if it does not exist or does not authenticate. */
export async function findSession(
  memory: VaultState,
  store: Store,
  keys: VaultKeys,
  tokenHash: TokenHash,
): Promise<Session | null> {
  const { invalidations } = memory.sessions;
  const session = await store.readSession(tokenHash);
  if (session === null || !AUTHENTICATED_ROWS.session.isAuthentic(keys.row, session)) return null;
  // The session may have ended since it was read.
  if (memory.sessions.invalidations === invalidations) memory.sessions.put(session);
  return session;
}
