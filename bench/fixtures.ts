// Large vaults, written through the store's port by this process while no service has the folder. The only file of the bench
// that knows the port: what it writes authenticates and verifies as if the service had written it. Entries have no leases
// beside them, as in a log whose leases were swept long ago.

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { AuditEntry } from '../src/core/audit.ts';
import { DEFAULT_TYPE } from '../src/core/names.ts';
import { Secret } from '../src/core/secret.ts';
import { headMac, linkEntry } from '../src/crypto/chain.ts';
import { deriveKeys, parseRootKey, type VaultKeys } from '../src/crypto/keys.ts';
import { newAgentId, newCredentialId, newEntryId, newLeaseId } from '../src/crypto/random.ts';
import { seal } from '../src/crypto/sealing.ts';
import { hashToken } from '../src/crypto/tokens.ts';
import { signAgent, signCredential, signPolicy, signSession } from '../src/ledger/authenticated-rows.ts';
import { readMemory, type Tip } from '../src/ledger/vault-state.ts';
import { SqliteStore } from '../src/store/sqlite/store.ts';
import type { Store, StoredChange } from '../src/store/store.ts';
import { VALUE } from './answer.ts';
import { benchAgent, benchPath, benchPolicy, benchPublicKey, benchToken, randomBelow } from './targets.ts';
import type { Say } from './types.ts';

export interface Sizes {
  readonly credentials: number;
  readonly policies: number;
  readonly agents: number;
  /** In the log, those of the service itself included. */
  readonly entries: number;
}

export const NOTHING: Sizes = { credentials: 0, policies: 0, agents: 0, entries: 0 };

const ROWS_A_TURN = 5000;
/** Every so many turns the disk is waited for: its queue stays short. */
const TURNS_BETWEEN_WAITS = 8;
const SESSION_MS = 24 * 3600 * 1000;
const WORTH_SAYING = 1_000_000;

interface Vault {
  readonly store: Store;
  readonly keys: VaultKeys;
  tip: Tip;
}

/** Grows the vault from what it was grown to before. Its service must have stopped. */
export async function grow(dataDir: string, from: Sizes, to: Sizes, say: Say): Promise<void> {
  await growStore(new SqliteStore(databaseFile(dataDir)), join(dataDir, 'root.key'), from, to, say);
  takeForCounted(databaseFile(dataDir));
}

/** The same of any store, which is closed then. */
export async function growStore(store: Store, rootKeyFile: string, from: Sizes, to: Sizes, say: Say): Promise<void> {
  const rootKey = parseRootKey(readFileSync(rootKeyFile, 'latin1'));
  if (rootKey === null) throw new Error('the service wrote a root key that is none');
  const keys = deriveKeys(rootKey);
  try {
    const vault: Vault = { store, keys, tip: (await readMemory(store, keys)).tip };
    await write(vault, progress('agents', from.agents, to.agents, say), agentChanges);
    await write(vault, progress('policies', from.policies, to.policies, say), policyChanges);
    await write(vault, progress('credentials', from.credentials, to.credentials, say), credentialChanges);
    await writeEntries(vault, to, progress('entries', vault.tip.seq, to.entries, say));
  } finally {
    await store.close();
  }
}

/** The log's accesses are of no count: a vault that came to be by itself would have written those of nearly all entries. */
function takeForCounted(file: string): void {
  const database = new DatabaseSync(file);
  database.exec('UPDATE audit_head SET counted_through_seq = seq');
  database.close();
}

/** Of a vault that nobody has open. */
export function bytesOnDisk(dataDir: string): number {
  return statSync(databaseFile(dataDir)).size;
}

const databaseFile = (dataDir: string): string => join(dataDir, 'leasehold.db');

/** The numbers to be made, in lots of a turn; says each tenth of a long way. */
function* progress(what: string, from: number, to: number, say: Say): Generator<number[]> {
  const tenth = (to - from) / 10;
  for (let start = from; start < to; start += ROWS_A_TURN) {
    const end = Math.min(to, start + ROWS_A_TURN);
    yield Array.from({ length: end - start }, (_, index) => start + index);
    const tenths = Math.floor((end - from) / tenth);
    if (to - from >= WORTH_SAYING && tenths > Math.floor((start - from) / tenth)) {
      say(`Fixture: ${tenths * 10} % of ${to - from} ${what}`);
    }
  }
}

async function write(
  vault: Vault,
  lots: Iterable<number[]>,
  changesOf: (keys: VaultKeys, index: number, now: number) => StoredChange[],
): Promise<void> {
  for (const lot of lots) {
    const now = Date.now();
    const changes = lot.flatMap((index) => changesOf(vault.keys, index, now));
    await commit(vault, { ...vault.tip, epoch: vault.tip.epoch + 1 }, [], changes, true);
  }
}

async function commit(
  vault: Vault,
  tip: Tip,
  entries: AuditEntry[],
  changes: StoredChange[],
  isAwaited: boolean,
): Promise<void> {
  const head = { ...tip, mac: headMac(vault.keys.audit, tip.seq, tip.hmac) };
  const turn = await vault.store.openTurn([]);
  const { durable } = await turn.commit({ entries, head, changes, accesses: new Map() });
  vault.tip = tip;
  if (isAwaited) await durable;
  else durable.catch(() => undefined); // the store refuses all that comes after a failed sync
}

function agentChanges(keys: VaultKeys, index: number, now: number): StoredChange[] {
  const id = newAgentId();
  const publicKey = benchPublicKey(index);
  const agent = { id, name: benchAgent(index), description: 'of the bench', publicKey, registeredAt: now };
  const tokenHash = hashToken(benchToken(index));
  const session = { tokenHash, agentId: id, issuedAt: now, expiresAt: now + SESSION_MS };
  return [
    { kind: 'putAgent', agent: signAgent(keys.row, agent) },
    { kind: 'putSession', session: signSession(keys.row, session) },
  ];
}

function policyChanges(keys: VaultKeys, index: number, now: number): StoredChange[] {
  return [{ kind: 'putPolicy', policy: signPolicy(keys.row, { ...benchPolicy(index), createdAt: now }) }];
}

function credentialChanges(keys: VaultKeys, index: number, now: number): StoredChange[] {
  const [id, path, type, version] = [newCredentialId(), benchPath(index), DEFAULT_TYPE, 1];
  const times = { createdAt: now, updatedAt: now };
  const sealed = seal(keys, new Secret(VALUE), { credentialId: id, path, type, version });
  return [
    {
      kind: 'putCredential',
      credential: signCredential(keys.row, { id, path, type, description: '', ...times, version }),
    },
    { kind: 'addVersion', credentialId: id, version: { version, type, createdAt: now }, sealed },
  ];
}

async function writeEntries(vault: Vault, sizes: Sizes, lots: Iterable<number[]>): Promise<void> {
  let turns = 0;
  for (const lot of lots) {
    const timestamp = new Date().toISOString();
    const { epoch } = vault.tip;
    let { hmac } = vault.tip;
    const entries = lot.map((index): AuditEntry => {
      const unlinked = retrievalEntry(index + 1, timestamp, sizes);
      hmac = linkEntry(vault.keys.audit, hmac, unlinked);
      return { ...unlinked, hmac };
    });
    const seq = vault.tip.seq + entries.length;
    turns += 1;
    await commit(vault, { seq, hmac, epoch }, entries, [], turns % TURNS_BETWEEN_WAITS === 0);
  }
}

function retrievalEntry(seq: number, timestamp: string, { credentials, agents }: Sizes) {
  return {
    seq,
    id: newEntryId(),
    timestamp,
    event_type: 'credential.retrieve',
    agent_name: benchAgent(randomBelow(agents)),
    resource: benchPath(randomBelow(credentials)),
    action: 'retrieve',
    result: 'allowed',
    policy_name: 'bench-0',
    lease_id: newLeaseId(),
    reason: null,
    request_id: `0123abcd-${seq.toString(36)}`,
    remote_addr: '127.0.0.1',
  };
}
