// Vaults of a given size, written through the store's port while no service has them open. What it writes authenticates
// and verifies like the service's rows. Its entries have no leases, as in a log whose leases were swept.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { putRow } from '../src/core/change.ts';
import { type AgentId, type CredentialId, DEFAULT_TYPE } from '../src/core/names.ts';
import { isControlSubject } from '../src/core/resources.ts';
import { entryMac, headMac } from '../src/crypto/chain.ts';
import { newId } from '../src/crypto/primitives.ts';
import type { SetDigest } from '../src/crypto/row-mac.ts';
import { hashToken } from '../src/crypto/tokens.ts';
import type { TreeNode } from '../src/crypto/tree.ts';
import { encryptValue } from '../src/crypto/value-encryption.ts';
import type { VaultKeys } from '../src/crypto/vault-keys.ts';
import { toStoredPut } from '../src/ledger/authenticated-rows.ts';
import { recordedStates } from '../src/ledger/decide-batch.ts';
import { type ChainTip, readVaultState, toStoredNodes } from '../src/ledger/vault-state.ts';
import { openKeys, readRootKey } from '../src/server/open-keys.ts';
import type { Store } from '../src/store/port.ts';
import { SqliteStore } from '../src/store/sqlite/store.ts';
import type { StoredChange } from '../src/store/stored-data.ts';
import { readStoredKeys } from '../src/store/vault-metadata.ts';
import type { AuditEntry, EntryWithoutMac } from '../src/vault/audit/audit-entry.ts';
import type { StoredTreeNode } from '../src/vault/audit/proofs.ts';
import { Secret } from '../src/vault/credentials/credential.ts';
import { benchAgent, benchPath, benchPolicy, benchPublicKey, benchToken, randomBelow, VALUE } from './targets.ts';

export interface Sizes {
  readonly credentials: number;
  readonly policies: number;
  readonly agents: number;
  /** Length of the log, including the entries that the service wrote. */
  readonly entries: number;
}

const ROWS_PER_BATCH = 1000;
/** The commits of so many batches are not awaited, which keeps the disk busy and its queue short. */
const BATCHES_PER_SYNC = 40;
const SESSION_MS = 24 * 3600 * 1000;

interface Vault {
  readonly store: Store;
  readonly keys: VaultKeys;
  tip: ChainTip;
  readonly digest: SetDigest;
}

/** The service must have created the vault and stopped. */
export async function fillSqlite(dataDir: string, sizes: Sizes): Promise<void> {
  const file = join(dataDir, 'leasehold.db');
  await fillStore(new SqliteStore(file), join(dataDir, 'root.key'), sizes);
  // The service would have counted the accesses of a log that it wrote; it must not begin to count these.
  const database = new DatabaseSync(file);
  database.exec('UPDATE audit_head SET counted_through_seq = seq');
  database.close();
}

/** Closes the store. */
export async function fillStore(store: Store, rootKeyFile: string, sizes: Sizes): Promise<void> {
  const rootKey = readRootKey({ dataDir: '', rootKeyFile }, false, () => undefined);
  const { keys } = openKeys(await store.run(readStoredKeys()), rootKey);
  try {
    const { tip, digest } = await readVaultState(store, keys);
    const vault: Vault = { store, keys, tip, digest };
    await write(vault, sizes.agents, agentChanges);
    await write(vault, sizes.policies, policyChanges);
    await write(vault, sizes.credentials, credentialChanges);
    await writeEntries(vault, sizes);
  } finally {
    await store.close();
  }
}

/** The numbers from `from` to `to` − 1, in batches. */
function* batches(from: number, to: number): Generator<number[]> {
  for (let start = from; start < to; start += ROWS_PER_BATCH) {
    yield Array.from({ length: Math.min(to - start, ROWS_PER_BATCH) }, (_, index) => start + index);
  }
}

async function write(
  vault: Vault,
  count: number,
  changesOf: (keys: VaultKeys, index: number, now: number) => StoredChange[],
): Promise<void> {
  for (const batch of batches(0, count)) {
    const now = Date.now();
    const changes = batch.flatMap((index) => changesOf(vault.keys, index, now));
    const states = recordedStates(changes);
    for (const { subject, state } of states) if (isControlSubject(subject)) vault.digest.put(subject, state);
    const drafts = states.map((state, index) => ({ ...recording(vault.tip.seq + index + 1, now), ...state }));
    const { entries, tip, nodes } = chain(vault, drafts);
    const control = vault.digest.toString();
    await commit(vault, { ...tip, epoch: tip.epoch + 1, control }, entries, changes, true, nodes);
  }
}

async function commit(
  vault: Vault,
  tip: ChainTip,
  entries: AuditEntry[],
  changes: StoredChange[],
  isAwaited: boolean,
  treeNodes: readonly StoredTreeNode[] = [],
): Promise<void> {
  const fields = { ...tip, tree: tip.tree.toString() };
  const head = { ...fields, mac: headMac(vault.keys.audit, fields) };
  const transaction = await vault.store.begin([]);
  const { durable } = await transaction.commit({ entries, head, treeNodes, changes, accesses: new Map() });
  vault.tip = tip;
  if (isAwaited) await durable;
  else durable.catch(() => undefined); // after a failed sync the store rejects every commit
}

function agentChanges(keys: VaultKeys, index: number, now: number): StoredChange[] {
  const id = newId() as AgentId;
  const publicKey = benchPublicKey(index);
  const agent = {
    id,
    name: benchAgent(index),
    description: 'of the bench',
    publicKey,
    registeredAt: now,
    sessionsEndedAt: null,
    formerPublicKey: null,
    formerKeyUntil: null,
    registeredBy: [],
  };
  const tokenHash = hashToken(benchToken(index));
  const session = { tokenHash, agentId: id, issuedAt: now, expiresAt: now + SESSION_MS, endsAt: null };
  return [toStoredPut(keys.row, putRow('agent', agent)), toStoredPut(keys.row, putRow('session', session))];
}

function policyChanges(keys: VaultKeys, index: number, now: number): StoredChange[] {
  return [toStoredPut(keys.row, putRow('policy', { ...benchPolicy(index), createdAt: now }))];
}

function credentialChanges(keys: VaultKeys, index: number, now: number): StoredChange[] {
  const [id, path, type, version] = [newId() as CredentialId, benchPath(index), DEFAULT_TYPE, 1];
  const times = { createdAt: now, updatedAt: now };
  const sealed = encryptValue(keys, new Secret(VALUE), { credentialId: id, path, type, version });
  const credential = { id, path, type, description: '', ...times, version };
  return [
    toStoredPut(keys.row, putRow('credential', credential)),
    { kind: 'addVersion', credentialId: id, version: { version, type, createdAt: now }, sealed },
  ];
}

async function writeEntries(vault: Vault, sizes: Sizes): Promise<void> {
  let written = 0;
  for (const batch of batches(vault.tip.seq, sizes.entries)) {
    const timestamp = new Date().toISOString();
    const { entries, tip, nodes } = chain(
      vault,
      batch.map((index) => retrievalEntry(index + 1, timestamp, sizes)),
    );
    written += 1;
    await commit(vault, tip, entries, [], written % BATCHES_PER_SYNC === 0, nodes);
  }
}

/** The entries with their MACs, and the end of the log after them. */
function chain({ keys, tip }: Vault, drafts: readonly EntryWithoutMac[]) {
  const tree = tip.tree.copy();
  const completed: TreeNode[] = [];
  let { hmac } = tip;
  const entries = drafts.map((draft): AuditEntry => {
    hmac = entryMac(keys.audit, hmac, draft);
    tree.append(hmac, completed);
    return { ...draft, hmac };
  });
  return { entries, tip: { ...tip, seq: tip.seq + entries.length, hmac, tree }, nodes: toStoredNodes(completed) };
}

/** An entry that records the state of a row. */
function recording(seq: number, now: number): EntryWithoutMac {
  return {
    seq,
    id: newId(),
    timestamp: new Date(now).toISOString(),
    event_type: 'credential.store',
    agent_name: 'service',
    resource: '*',
    action: 'store',
    result: 'allowed',
    policy_name: null,
    lease_id: null,
    code: null,
    reason: null,
    request_id: null,
    remote_addr: null,
  };
}

function retrievalEntry(seq: number, timestamp: string, { credentials, agents }: Sizes) {
  return {
    seq,
    id: newId(),
    timestamp,
    event_type: 'credential.retrieve',
    agent_name: benchAgent(randomBelow(agents)),
    resource: benchPath(randomBelow(credentials)),
    action: 'retrieve',
    result: 'allowed',
    policy_name: 'bench-0',
    lease_id: newId(),
    code: null,
    reason: null,
    request_id: `0123abcd-${seq.toString(36)}`,
    remote_addr: '127.0.0.1',
  };
}
