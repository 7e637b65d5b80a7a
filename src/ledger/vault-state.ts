/**
 * What the ledger holds in memory: the control state, the head of the log, and sessions seen lately.
 * It is read from the store at start, and again after a commit that failed.
 */
import type { Session } from '../core/agent.ts';
import { GENESIS_MAC } from '../core/audit.ts';
import { ControlState } from '../core/control.ts';
import type { Credential } from '../core/credential.ts';
import type { TokenHash } from '../core/names.ts';
import { CHAIN_START, entryMac, isHeadAuthentic } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import type { Head, LastEntry, Store } from '../store/store.ts';
import { isAgentAuthentic, isPolicyAuthentic, isSessionAuthentic } from './authenticated-rows.ts';
import { SYSTEM_TIME } from './clock.ts';
import { SessionCache } from './session-cache.ts';

/** Where the log goes on. */
export interface ChainTip {
  readonly seq: number;
  readonly hmac: string;
  readonly epoch: number;
}

export interface VaultState {
  control: ControlState;
  tip: ChainTip;
  /** The head record as it was read or written last: another one is another node's. */
  head: Head | null;
  /** The last entry that was read or written; null where there was none. It must never be gone. */
  lastSeenEntry: Pick<LastEntry, 'seq' | 'hmac'> | null;
  readonly sessions: SessionCache;
  /** Rows that a store keeps in memory and that were found authentic: the same object is not checked again. */
  readonly authentic: WeakSet<Credential>;
  /** The time of the log's last entry in milliseconds, 0 where it is empty. */
  lastEntryAt: number;
  /** What an operator should know, a line each. */
  warnings: string[];
}

/** Entries at the end of the log whose MACs are checked at a start, until one is right. */
const ENTRIES_CHECKED = 100;

export async function readMemory(store: Store, keys: VaultKeys): Promise<VaultState> {
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
 * The time of the newest entry whose MAC is right, in milliseconds: an edited time must not become the vault's clock. Looks at the
 * last entries only, because verification finds an edit of more of them.
 */
export async function findLastTime(
  store: Store,
  lastSeq: number,
  keys: VaultKeys,
  warnings: string[],
): Promise<number> {
  const firstSeq = Math.max(1, lastSeq - ENTRIES_CHECKED);
  const entries = await store.readEntries(firstSeq, lastSeq, ENTRIES_CHECKED + 1);
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
 * Goes on from the head record, so that a gap or a foreign row stays visible for ever. Where rows stand beyond it, behind them.
 * A head record that is missing or forged costs one ordinal: the gap shows it. No ordinal is given twice, even where the entry
 * that had it was removed: leases and marks name theirs.
 */
function findTip(
  head: Head | null,
  last: LastEntry | null,
  highestSeq: number,
  keys: VaultKeys,
  warnings: string[],
): ChainTip {
  const lastSeq = last?.seq ?? 0;
  const lastLink = last?.hmac ?? GENESIS_MAC;
  if (head === null || !isHeadAuthentic(keys.audit, head)) {
    warnings.push(
      `The audit log's head record is ${head === null ? 'missing' : 'not authentic'}; the log goes on after a gap at entry ${lastSeq + 1}, which GET /api/v1/audit/verify names.`,
    );
    // Beyond any that was counted: a node that took part in those must not take the same number for the same state.
    return { seq: highestSeq + 1, hmac: lastLink, epoch: SYSTEM_TIME.wall() };
  }
  if (head.seq !== lastSeq || head.hmac !== lastLink || highestSeq > head.seq) {
    warnings.push(
      `The audit log's head record (entry ${head.seq}) and its last row (entry ${lastSeq}) disagree: entries were removed, added or altered. GET /api/v1/audit/verify names the first.`,
    );
  }
  return { seq: Math.max(head.seq, highestSeq), hmac: head.hmac, epoch: head.epoch };
}

/** Rows that were altered outside are not used, so that an edit of the database grants nothing. */
export async function readControl(store: Store, keys: VaultKeys, warnings: string[]): Promise<ControlState> {
  const [agents, policies] = [await store.readAgents(), await store.readPolicies()];
  const goodAgents = agents.filter((agent) => isAgentAuthentic(keys.row, agent));
  const goodPolicies = policies.filter((policy) => isPolicyAuthentic(keys.row, policy));
  const ignored = agents.length - goodAgents.length + policies.length - goodPolicies.length;
  if (ignored > 0) {
    warnings.push(
      `${ignored} ${ignored === 1 ? 'row' : 'rows'} of agents or policies in the database were altered outside Leasehold and are not used; register or write them anew.`,
    );
  }
  return new ControlState(goodAgents, goodPolicies);
}

/** A session as it is in the store, if it is authentic; from then on it is in the cache. */
export async function findSession(
  memory: VaultState,
  store: Store,
  keys: VaultKeys,
  tokenHash: TokenHash,
): Promise<Session | null> {
  const { invalidations } = memory.sessions;
  const session = await store.readSession(tokenHash);
  if (session === null || !isSessionAuthentic(keys.row, session)) return null;
  // What was read may have ended meanwhile.
  if (memory.sessions.invalidations === invalidations) memory.sessions.put(session);
  return session;
}
