// Vaults of a given size, written through the store's port while no service has them open. What it writes authenticates
// and verifies like the service's rows. Its entries have no leases, as in a log whose leases were swept.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { AuditEntry } from '../src/core/audit.ts';
import { type AgentId, type CredentialId, DEFAULT_TYPE } from '../src/core/names.ts';
import { Secret } from '../src/core/secret.ts';
import { entryMac, headMac } from '../src/crypto/chain.ts';
import { deriveKeys, parseRootKey, type VaultKeys } from '../src/crypto/keys.ts';
import { newId } from '../src/crypto/random.ts';
import { seal } from '../src/crypto/sealing.ts';
import { hashToken } from '../src/crypto/tokens.ts';
import { AUTHENTICATED_ROWS } from '../src/ledger/authenticated-rows.ts';
import { type ChainTip, readVaultState } from '../src/ledger/vault-state.ts';
import type { Store } from '../src/store/sql-store.ts';
import { SqliteStore } from '../src/store/sqlite/store.ts';
import type { StoredChange } from '../src/store/store.ts';
import { benchAgent, benchPath, benchPolicy, benchPublicKey, benchToken, randomBelow, VALUE } from './targets.ts';

export interface Sizes {
  readonly credentials: number;
  readonly policies: number;
  readonly agents: number;
  /** Length of the log, including the entries that the service wrote. */
  readonly entries: number;
}

const ROWS_PER_BATCH = 5000;
/** The commits of so many batches are not awaited, which keeps the disk busy and its queue short. */
const BATCHES_PER_SYNC = 8;
const SESSION_MS = 24 * 3600 * 1000;

interface Vault {
  readonly store: Store;
  readonly keys: VaultKeys;
  tip: ChainTip;
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
  const rootKey = parseRootKey(readFileSync(rootKeyFile, 'latin1'));
  if (rootKey === null) throw new Error(`${rootKeyFile} is not a root key`);
  const keys = deriveKeys(rootKey);
  try {
    const vault: Vault = { store, keys, tip: (await readVaultState(store, keys)).tip };
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
    await commit(vault, { ...vault.tip, epoch: vault.tip.epoch + 1 }, [], changes, true);
  }
}

async function commit(
  vault: Vault,
  tip: ChainTip,
  entries: AuditEntry[],
  changes: StoredChange[],
  isAwaited: boolean,
): Promise<void> {
  const head = { ...tip, mac: headMac(vault.keys.audit, tip.seq, tip.hmac) };
  const transaction = await vault.store.begin([]);
  const { durable } = await transaction.commit({ entries, head, changes, accesses: new Map() });
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
  };
  const tokenHash = hashToken(benchToken(index));
  const session = { tokenHash, agentId: id, issuedAt: now, expiresAt: now + SESSION_MS };
  return [
    { kind: 'putAgent', agent: AUTHENTICATED_ROWS.agent.withMac(keys.row, agent) },
    { kind: 'putSession', session: AUTHENTICATED_ROWS.session.withMac(keys.row, session) },
  ];
}

function policyChanges(keys: VaultKeys, index: number, now: number): StoredChange[] {
  return [
    {
      kind: 'putPolicy',
      policy: AUTHENTICATED_ROWS.policy.withMac(keys.row, { ...benchPolicy(index), createdAt: now }),
    },
  ];
}

function credentialChanges(keys: VaultKeys, index: number, now: number): StoredChange[] {
  const [id, path, type, version] = [newId() as CredentialId, benchPath(index), DEFAULT_TYPE, 1];
  const times = { createdAt: now, updatedAt: now };
  const sealed = seal(keys, new Secret(VALUE), { credentialId: id, path, type, version });
  return [
    {
      kind: 'putCredential',
      credential: AUTHENTICATED_ROWS.credential.withMac(keys.row, {
        id,
        path,
        type,
        description: '',
        ...times,
        version,
      }),
    },
    { kind: 'addVersion', credentialId: id, version: { version, type, createdAt: now }, sealed },
  ];
}

async function writeEntries(vault: Vault, sizes: Sizes): Promise<void> {
  let written = 0;
  for (const batch of batches(vault.tip.seq, sizes.entries)) {
    const timestamp = new Date().toISOString();
    const { epoch } = vault.tip;
    let { hmac } = vault.tip;
    const entries = batch.map((index): AuditEntry => {
      const entry = retrievalEntry(index + 1, timestamp, sizes);
      hmac = entryMac(vault.keys.audit, hmac, entry);
      return { ...entry, hmac };
    });
    const seq = vault.tip.seq + entries.length;
    written += 1;
    await commit(vault, { seq, hmac, epoch }, entries, [], written % BATCHES_PER_SYNC === 0);
  }
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
    reason: null,
    request_id: `0123abcd-${seq.toString(36)}`,
    remote_addr: '127.0.0.1',
  };
}
