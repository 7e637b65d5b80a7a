/** A vault without HTTP: a ledger over a real store, with a clock and a store that a test may wrap. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BrokerClient } from '../../src/broker/broker-client.ts';
import type { VaultSettings } from '../../src/core/batch-state.ts';
import type { Context, Operation } from '../../src/core/operation.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import { hashToken } from '../../src/crypto/tokens.ts';
import { AgentBudgets, type BudgetLimits, DEFAULT_BUDGETS, DenialBudget } from '../../src/ledger/budgets.ts';
import { DatabaseClock, SYSTEM_TIME, startClock, type TimeSource } from '../../src/ledger/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { type ChainTip, initialHead, readVaultState } from '../../src/ledger/vault-state.ts';
import { FsAgentKeyStore } from '../../src/server/fs-agent-key-store.ts';
import { openKeys } from '../../src/server/open-keys.ts';
import { readEntries } from '../../src/store/audit-log.ts';
import type { Store } from '../../src/store/port.ts';
import type { SyncFile } from '../../src/store/sqlite/wal-sync.ts';
import type { Procedure } from '../../src/store/statement.ts';
import type { WriteSet } from '../../src/store/stored-data.ts';
import { readHighWaterTime, readStoredKeys } from '../../src/store/vault-metadata.ts';
import { RetryingAgentKeys } from '../../src/vault/agents/retrying-agent-keys.ts';
import { APPROVAL_HOLD_MS, ApprovalHolds } from '../../src/vault/approvals/approval-holds.ts';
import { authorizeVerification } from '../../src/vault/audit/audit.ts';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
import { Checkpoints } from '../../src/vault/audit/checkpoints.ts';
import { Verifier } from '../../src/vault/audit/verification/verifier.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { retrieveCredential, storeCredential } from '../../src/vault/credentials/credentials.ts';
import { Reencryption, type ReencryptionParts } from '../../src/vault/keys/reencryption.ts';
import { BreakGlass } from '../../src/vault/operators/break-glass.ts';
import { Advisories } from '../../src/vault/overview/advisories.ts';
import { ScanTurns } from '../../src/vault/paging.ts';
import type { AgentKeyStore, SlotSecrets, VaultAccess } from '../../src/vault/ports.ts';
import { LoginThrottle } from '../../src/vault/sessions/login-throttle.ts';
import { UseLimits } from '../../src/vault/use/use-limits.ts';
import { Uses } from '../../src/vault/use/uses.ts';
import type { OwnNode, Vault } from '../../src/vault/vault.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { keepDatabase, openStore, STORE } from '../kit/stores.ts';

const ROOT_KEY = new Uint8Array(32).fill(42);

let requests = 0;
/** The administrator, in a new request. */
export function admin(requestId = `r${++requests}`): Context {
  return { auth: { kind: 'admin' }, requestId, remoteAddr: '192.0.2.1' };
}

export interface OpenedVault extends Vault {
  /** Its data directory. */
  readonly directory: string;
  /** The real store, without the test's wrapper. */
  readonly real: Store;
  readonly denials: DenialBudget;
  /** The errors of failed batches, in order. */
  readonly failures: unknown[];
  /** Adds a line to the failures. */
  readonly warn: (line: string) => void;
  /** The storage failures that would stop the process. */
  readonly broken: unknown[];
}

export interface OpenOptions {
  /** The data directory of a vault that was opened before. */
  readonly directory?: string;
  /** Wraps the store of the ledger. */
  readonly inFront?: (store: Store) => Store;
  /** The deciding clock: this process's, or the database's on a shared store. */
  readonly time?: TimeSource;
  /** Syncs the store's file; only for SQLite. */
  readonly syncFile?: SyncFile;
  readonly settings?: Partial<VaultSettings>;
  /** Replaces the key store of the directory. */
  readonly keyStore?: AgentKeyStore;
  readonly denialsPerMinute?: number;
  readonly budgets?: Partial<BudgetLimits>;
  /** The interval of retries of failed key file operations; by default longer than a test. */
  readonly recoveryIntervalMs?: number;
  readonly reencryption?: Pick<ReencryptionParts, 'maxEncryptions'>;
  /** Whether the vault is in recovery mode. */
  readonly isReadOnly?: boolean;
}

const NO_SLOTS: SlotSecrets = {
  create: async () => assert.fail('this vault makes no slots'),
  open: async () => ({ problem: 'this vault opens no slots' }),
};
const NO_ACCESS: VaultAccess = {
  attendedSlots: async () => [],
  unlock: async () => assert.fail('this vault is never locked'),
  lock: async () => assert.fail('this vault is never locked'),
  loss: () => null,
  hasFailed: () => false,
  acceptRollback: async () => assert.fail('this vault has lost nothing'),
};

const NODE: OwnNode = { self: { name: 'host:1', version: '0', startedAt: 0 }, status: () => 'ok' };

const NEVER_MS = 2 ** 31 - 1;

/** Opens the vault as the service does. Opening it again without closing simulates a crash. */
export async function openVault(scope: Scope, options: OpenOptions = {}): Promise<OpenedVault> {
  const directory = options.directory ?? temporaryDirectory(scope);
  const real = await openStore(directory, options.syncFile);
  // A test may have closed it already.
  scope.after(() => real.close().catch(() => undefined));
  keepDatabase(scope, directory);
  const { keys, unsaved } = openKeys(await real.run(readStoredKeys()), { path: 'root.key', secret: ROOT_KEY });
  if (unsaved !== null) {
    await real.initialise(keys.checkValue, initialHead(keys), 0, unsaved);
  }
  const timed = options.time === undefined ? real : withTime(real, options.time);
  const store = options.inFront?.(timed) ?? timed;
  const memory = await readVaultState(store, keys);
  const notBefore = Math.max(memory.lastEntryAt, await store.run(readHighWaterTime()));
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
    isReadOnly: options.isReadOnly ?? false,
    settings: { adminMayRetrieve: true, versionsKept: 10, ...options.settings },
    onRemoved: () => undefined,
    onCommitted: (changes) => {
      uses.committed(changes);
      approvals.committed(changes);
    },
    onStorageFailure: (failure) => broken.push(failure),
    onFailedBatch: (error) => failures.push(error),
  });
  const keyStore = options.keyStore ?? new FsAgentKeyStore(join(directory, 'agents'));
  const agentKeys = new RetryingAgentKeys({
    keyStore,
    ledger,
    onFailure: (error) => failures.push(error),
    onStorageFailure: (failure) => broken.push(failure),
    intervalMs: options.recoveryIntervalMs ?? NEVER_MS,
  });
  scope.after(() => agentKeys.stop());
  const adminTokenHash = hashToken('lha_of_this_test');
  const loginThrottle = new LoginThrottle();
  const breakGlass = new BreakGlass(ledger, clock, (line) => void failures.push(line));
  const budgets = new AgentBudgets({ ...DEFAULT_BUDGETS, ...options.budgets });
  const verifier = new Verifier({ store, keys, clock });
  const brokerClient = new BrokerClient();
  scope.after(() => brokerClient.stop());
  const approvals = new ApprovalHolds({
    ledger,
    store,
    keys,
    clock,
    budgets,
    holdMs: APPROVAL_HOLD_MS,
    onFailure: (error) => failures.push(error),
  });
  scope.after(() => approvals.stop());
  const uses = new Uses(ledger, brokerClient, new UseLimits(ledger, () => clock.now()), approvals, {
    targetNetworks: null,
    ownPorts: () => [],
  });
  const warn = (line: string): void => void failures.push(line);
  const checkpoints = new Checkpoints({ store, keys, clock, onSigned: () => undefined, warn });
  const reencryption = new Reencryption({
    ledger,
    store,
    keys,
    onFailure: (error) => failures.push(error),
    ...options.reencryption,
  });
  scope.after(() => reencryption.stop());
  const vault = {
    ledger,
    store,
    keys,
    clock,
    agentKeys,
    loginThrottle,
    breakGlass,
    budgets,
    verifier,
    advisories: new Advisories({ store, clock }),
    scanTurns: new ScanTurns(),
    checkpoints,
    node: NODE,
    uses,
    approvals,
    adminTokenHash,
    reencryption,
    slotSecrets: NO_SLOTS,
    access: NO_ACCESS,
    oidc: null,
  };
  return { ...vault, denials, directory, real, failures, broken, warn };
}

/** The store with the test's clock instead of the database's; a store without a clock is unchanged. */
function withTime(store: Store, time: TimeSource): Store {
  if (!store.isMultiWriter) return store;
  const withNow = <S extends { readonly shared: object | null }>(view: S): S => ({
    ...view,
    shared: view.shared === null ? null : { ...view.shared, now: time.wall() },
  });
  return inFrontOf(store, {
    readTime: async () => time.wall(),
    begin: async (keys) => withNow(await store.begin(keys)),
    load: async (keys) => withNow(await store.load(keys)),
  });
}

/** The store with a replaced commit, which may wait, call the real one, or throw. */
export function withCommit(decide: (batch: WriteSet, commit: () => Promise<void>) => Promise<void>) {
  return (store: Store): Store =>
    inFrontOf(store, {
      async begin(keys) {
        const turn = await store.begin(keys);
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
              // A batch whose commit failed has ended.
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

/** The store with the results of one kind of read replaced; `read` is the real one, which may be run. */
export function inFrontOfReads<Result>(
  store: Store,
  kind: (...values: never[]) => Procedure<Result>,
  answer: (read: () => Promise<Result>, procedure: Procedure<Result>) => Promise<Result>,
): Store {
  return inFrontOf(store, {
    run(procedure, priority) {
      const read = (): Promise<never> => store.run(procedure, priority) as Promise<never>;
      return procedure instanceof kind ? (answer(read, procedure as Procedure<never>) as Promise<never>) : read();
    },
  });
}

/** The signal of a client that stays connected. */
export const CONNECTED: AbortSignal = new AbortController().signal;

export const toPath = (text: string): CredentialPath => text as CredentialPath;

export function put(vault: Vault, path: string, value = `value of ${path}`, context = admin()) {
  const request = { path: toPath(path), value: new Secret(value), type: null, description: null };
  return storeCredential(vault, context, { ...request, onlyIfNew: false });
}

/** Retrieves as the administrator. */
export async function get(vault: Vault, path: string, context = admin()): Promise<string> {
  const request = { path: toPath(path), version: null, ttlSeconds: null };
  return (await retrieveCredential(vault, context, request)).value.reveal();
}

export function readLog(store: Store): Promise<AuditEntry[]> {
  return store.run(readEntries(1, Number.MAX_SAFE_INTEGER, 100_000));
}

/** The content of memory, in the form in which the store returns it. */
export async function assertMemoryIsTheStore(vault: OpenedVault): Promise<void> {
  const [held, read] = [vault.ledger.memory, await readVaultState(vault.real, vault.keys)];
  // Rows that were read still have their MACs.
  const bare = (rows: readonly object[]) => rows.map((row) => ({ ...row, mac: null }));
  assert.deepEqual(bare(held.control.agents()), bare(read.control.agents()));
  assert.deepEqual(bare(held.control.policies.all()), bare(read.control.policies.all()));
  const toPlain = ({ seq, hmac, epoch, control, tree }: ChainTip) => [seq, hmac, epoch, control, tree.toString()];
  assert.deepEqual(toPlain(held.tip), toPlain(read.tip));
  assert.equal(held.lastEntryAt, read.lastEntryAt);
}

export const verify = async (vault: Vault) => (await authorizeVerification(vault, admin()))(CONNECTED);

/** Submits an operation and resolves to 'ok' or its error code. */
export async function outcomeOf(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    () => 'ok',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : `bug: ${error}`),
  );
}

/** An operation that is not recorded. */
export const SILENT: Operation<null> = {
  reads: {},
  auth: { kind: 'service' },
  decide: () => ({ response: { reply: null }, entry: null, changes: [] }),
};

/** A gate at which callers wait until it is opened. */
export function newGate(): { pass: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { pass: promise, open: resolve };
}

/** Waits for several iterations of the event loop, each as long as a response of the store may take. */
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
