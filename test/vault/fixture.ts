/** The vault without its doors: a ledger over a real store, with a clock and a store that a test may stand in front of. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AuditEntry, GENESIS_MAC } from '../../src/core/audit.ts';
import type { VaultSettings } from '../../src/core/batch-state.ts';
import type { Context, Operation } from '../../src/core/operation.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import { Secret } from '../../src/core/secret.ts';
import { headMac } from '../../src/crypto/chain.ts';
import { deriveKeys } from '../../src/crypto/keys.ts';
import { hashToken } from '../../src/crypto/tokens.ts';
import { SYSTEM_TIME, startClock, type TimeSource } from '../../src/ledger/clock.ts';
import { DatabaseClock } from '../../src/ledger/database-clock.ts';
import { DenialBudget } from '../../src/ledger/denial-budget.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { readVaultState } from '../../src/ledger/vault-state.ts';
import { FsAgentKeyStore } from '../../src/server/fs-agent-key-store.ts';
import type { SyncFile } from '../../src/store/sqlite/wal-sync.ts';
import type { Store, WriteSet } from '../../src/store/store.ts';
import { AgentBudgets, type BudgetLimits, DEFAULT_BUDGETS } from '../../src/vault/agent-budgets.ts';
import type { AgentKeyStore } from '../../src/vault/agent-key-store.ts';
import { retrieveCredential, storeCredential } from '../../src/vault/credentials.ts';
import { KeyRecovery } from '../../src/vault/key-recovery.ts';
import { LoginThrottle } from '../../src/vault/login-throttle.ts';
import type { Vault } from '../../src/vault/vault.ts';
import { verifyLog } from '../../src/vault/verification/authorize.ts';
import { Verifier } from '../../src/vault/verification/verifier.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { keepDatabase, openStore, STORE } from '../kit/stores.ts';

const ROOT_KEY = new Uint8Array(32).fill(42);

let requests = 0;
/** The administrator, in a new request. */
export function admin(requestId = `r${++requests}`): Context {
  return { authentication: { kind: 'admin' }, requestId, remoteAddr: '192.0.2.1' };
}

export interface OpenedVault extends Vault {
  /** Its data directory. */
  readonly directory: string;
  /** The real store, without what a test stands in front of it. */
  readonly real: Store;
  readonly denials: DenialBudget;
  /** What made turns fail, in order. */
  readonly failures: unknown[];
  /** What was told to stop the process. */
  readonly broken: unknown[];
}

export interface OpenOptions {
  /** Of a vault that was opened before. */
  readonly directory?: string;
  /** Stands in front of the store; the ledger sees only what it gives. */
  readonly inFront?: (store: Store) => Store;
  /** The clock that decides: this process's, or on a store that several share the database's. */
  readonly time?: TimeSource;
  /** Syncs the store's file: SQLite's alone. */
  readonly syncFile?: SyncFile;
  readonly settings?: Partial<VaultSettings>;
  /** In place of those in the directory. */
  readonly keyStore?: AgentKeyStore;
  readonly denialsPerMinute?: number;
  readonly budgets?: Partial<BudgetLimits>;
  /** How soon work on key files that failed is repeated; without it, not within a test. */
  readonly recoveryIntervalMs?: number;
}

const NEVER_MS = 2 ** 31 - 1;

/** Opens as the daemon does. Opening again without closing is what a crash does. */
export async function openVault(scope: Scope, options: OpenOptions = {}): Promise<OpenedVault> {
  const directory = options.directory ?? temporaryDirectory(scope);
  const keys = deriveKeys(ROOT_KEY);
  const real = await openStore(directory, options.syncFile);
  // A test may have closed it already.
  scope.after(() => real.close().catch(() => undefined));
  keepDatabase(scope, directory);
  if ((await real.readRootKeyCheck()) === null) {
    const head = { seq: 0, hmac: GENESIS_MAC, mac: headMac(keys.audit, 0, GENESIS_MAC), epoch: 0 };
    await real.initialise(keys.checkValue, head, 0);
  }
  const timed = options.time === undefined ? real : withTime(real, options.time);
  const store = options.inFront?.(timed) ?? timed;
  const memory = await readVaultState(store, keys);
  const notBefore = Math.max(memory.lastEntryAt, await store.readHighWaterTime());
  const shared = await store.readTime();
  const source = options.time ?? SYSTEM_TIME;
  const clock = shared === null ? startClock(notBefore, source) : new DatabaseClock(shared, notBefore, source);
  const failures: unknown[] = [];
  const broken: unknown[] = [];
  const denials = new DenialBudget(options.denialsPerMinute);
  const ledger = new Ledger({
    store,
    keys,
    clock,
    memory,
    denials,
    settings: { adminMayRetrieve: true, versionsKept: 10, ...options.settings },
    onDeregistered: () => undefined,
    onStorageFailure: (failure) => broken.push(failure),
    onFailedBatch: (error) => failures.push(error),
  });
  const keyStore = options.keyStore ?? new FsAgentKeyStore(join(directory, 'agents'));
  const agentKeys = new KeyRecovery({
    keyStore,
    ledger,
    onFailure: (error) => failures.push(error),
    onStorageFailure: (failure) => broken.push(failure),
    intervalMs: options.recoveryIntervalMs ?? NEVER_MS,
  });
  scope.after(() => agentKeys.stop());
  const adminTokenHash = hashToken('lha_of_this_test');
  const loginThrottle = new LoginThrottle();
  const budgets = new AgentBudgets({ ...DEFAULT_BUDGETS, ...options.budgets });
  const verifier = new Verifier({ store, keys, clock });
  const vault = { ledger, store, keys, clock, agentKeys, loginThrottle, budgets, verifier, adminTokenHash };
  return { ...vault, denials, directory, real, failures, broken };
}

/** The store with a test's own clock in the place of its database's; a store that has none stays as it is. */
function withTime(store: Store, time: TimeSource): Store {
  if (!store.isMultiWriter) return store;
  return inFrontOf(store, {
    readTime: async () => time.wall(),
    async begin(keys, knownSeq) {
      const turn = await store.begin(keys, knownSeq);
      return { ...turn, shared: turn.shared === null ? null : { ...turn.shared, now: time.wall() } };
    },
  });
}

/** The store with a commit that a test decides about: it may wait, call the real one, or throw. */
export function withCommit(decide: (batch: WriteSet, commit: () => Promise<void>) => Promise<void>) {
  return (store: Store): Store =>
    inFrontOf(store, {
      async begin(keys, knownSeq) {
        const turn = await store.begin(keys, knownSeq);
        return {
          found: turn.found,
          shared: turn.shared,
          async commit(batch) {
            let isClosed = false;
            const commit = async (): Promise<void> => {
              isClosed = true;
              await (await turn.commit(batch)).durable;
            };
            try {
              await decide(batch, commit);
              return { durable: Promise.resolve() };
            } finally {
              // A turn whose commit failed is over.
              if (!isClosed) await turn.rollback();
            }
          },
          rollback: () => turn.rollback(),
        };
      },
    });
}

/** The store with some of its methods replaced. */
export function inFrontOf(store: Store, methods: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const own: unknown = Reflect.get(methods, name);
      const method: unknown = own ?? Reflect.get(target, name);
      return typeof method === 'function' ? method.bind(own === undefined ? target : methods) : method;
    },
  });
}

export const toPath = (text: string): CredentialPath => text as CredentialPath;

export function put(vault: Vault, path: string, value = `value of ${path}`, context = admin()) {
  const request = { path: toPath(path), value: new Secret(value), type: undefined, description: undefined };
  return storeCredential(vault, context, { ...request, onlyIfNew: false });
}

/** Retrieves as the administrator. */
export async function get(vault: Vault, path: string, context = admin()): Promise<string> {
  const request = { path: toPath(path), version: null, ttlSeconds: null };
  return (await retrieveCredential(vault, context, request)).value.reveal();
}

export function readLog(store: Store): Promise<AuditEntry[]> {
  return store.readEntries(1, Number.MAX_SAFE_INTEGER, 100_000);
}

/** What memory holds, as the store would have it read. */
export async function assertMemoryIsTheStore(vault: OpenedVault): Promise<void> {
  const [held, read] = [vault.ledger.memory, await readVaultState(vault.real, vault.keys)];
  // What was read still has its MAC beside it.
  const bare = (rows: readonly object[]) => rows.map((row) => ({ ...row, mac: null }));
  assert.deepEqual(bare(held.control.agents()), bare(read.control.agents()));
  assert.deepEqual(bare(held.control.policies.all()), bare(read.control.policies.all()));
  const { seq, hmac, epoch } = held.tip;
  assert.deepEqual({ seq, hmac, epoch }, { ...read.tip });
  assert.equal(held.lastEntryAt, read.lastEntryAt);
}

export const verify = (vault: Vault) => verifyLog(vault, admin());

/** Submits and tells, in place of the answer, whether it was one: for many at once. */
export async function outcomeOf(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    () => 'ok',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : `bug: ${error}`),
  );
}

/** An operation that nobody records. */
export const SILENT: Operation<null> = {
  reads: {},
  requester: { kind: 'service' },
  decide: () => ({ response: { reply: null }, entry: null, changes: [] }),
};

/** A gate that holds up whoever comes, until it is opened. */
export function newGate(): { pass: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { pass: promise, open: resolve };
}

/** Lets everything go on that can: rounds of the loop, each as long as an answer of the store may take. */
export async function settle(rounds = 20): Promise<void> {
  const round =
    STORE === 'sqlite' ? (next: () => void) => setImmediate(next) : (next: () => void) => setTimeout(next, 2);
  for (let done = 0; done < rounds; done++) await new Promise<void>(round);
}

export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await sleep(10);
  }
}
