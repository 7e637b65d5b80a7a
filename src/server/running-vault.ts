/** The parts of an open vault that serve requests. They end when the vault is locked, or the server shuts down. */
import { BrokerClient } from '../broker/broker-client.ts';
import type { TokenHash } from '../core/names.ts';
import { AgentBudgets, DenialBudget } from '../ledger/budgets.ts';
import { Ledger } from '../ledger/ledger.ts';
import { StoreError } from '../store/errors.ts';
import { RetryingAgentKeys } from '../vault/agents/retrying-agent-keys.ts';
import { ApprovalEvents } from '../vault/approvals/approval-events.ts';
import { ApprovalHolds } from '../vault/approvals/approval-holds.ts';
import { Checkpoints } from '../vault/audit/checkpoints.ts';
import { serviceEvent, warningsAsReason } from '../vault/audit/lifecycle.ts';
import { Verifier } from '../vault/audit/verification/verifier.ts';
import { abortBackup } from '../vault/backup/backup.ts';
import { newSigningKey } from '../vault/keys/keys.ts';
import { Reencryption } from '../vault/keys/reencryption.ts';
import { BreakGlass } from '../vault/operators/break-glass.ts';
import { Advisories } from '../vault/overview/advisories.ts';
import { ScanTurns } from '../vault/paging.ts';
import { LoginThrottle } from '../vault/sessions/login-throttle.ts';
import { UseLimits } from '../vault/use/use-limits.ts';
import { Uses } from '../vault/use/uses.ts';
import type { OwnNode, Vault } from '../vault/vault.ts';
import type { ApprovalWebhook } from './approval-webhook.ts';
import { startCheckpointing, startMarking, startStateCheck, startSweeping } from './background-tasks.ts';
import { CheckpointSinks } from './checkpoint-files.ts';
import type { Configuration } from './configuration.ts';
import type { ServerLog } from './log.ts';
import type { LogStream } from './log-streams.ts';
import { Inventory } from './metrics/inventory.ts';
import type { VaultSources } from './metrics/metrics.ts';
import { ProviderClient } from './oidc-client.ts';
import type { OpenedVault } from './open-vault.ts';

export interface RunningVaultParts {
  readonly warn: (line: string) => void;
  readonly configuration: Configuration;
  readonly opened: OpenedVault;
  readonly resources: AsyncDisposableStack;
  readonly adminTokenHash: TokenHash;
  readonly log: ServerLog;
  readonly logOften: ServerLog['error'];
  readonly onStorageFailure: (failure: StoreError) => void;
  readonly approvalHoldMs: number;
  readonly node: OwnNode;
  /** The URL in links; null if browsers cannot reach the server. */
  readonly consoleUrl: () => string | null;
  readonly ownPorts: () => readonly number[];
}

export class RunningVault {
  readonly vault: Omit<Vault, 'access'>;
  readonly #resources: AsyncDisposableStack;
  readonly #parts: RunningVaultParts;
  readonly sources: VaultSources;
  readonly #checkpointSinks: CheckpointSinks;
  #webhook: ApprovalWebhook | null = null;
  #streams: readonly LogStream[] = [];
  #background: { stop(): Promise<void> }[] = [];
  #batchError: unknown = null;
  #isStarting = true;
  #isClosed = false;

  constructor(parts: RunningVaultParts) {
    const { configuration, opened, resources, adminTokenHash, logOften, onStorageFailure } = parts;
    const { store, keys, clock, memory, keyStore, slotSecrets, marker, checkpointFiles, isReadOnly } = opened;
    this.#parts = parts;
    this.#resources = resources;
    const denials = new DenialBudget(configuration.denialsPerMinute);
    const ledger = new Ledger({
      store,
      keys,
      clock,
      settings: {
        adminMayRetrieve: configuration.adminMayRetrieve,
        versionsKept: configuration.versionsKept,
        targetNetworks: configuration.targetNetworks,
      },
      memory,
      denials,
      isReadOnly,
      onRemoved: (removals) => {
        for (const { resource, row } of removals) if (resource === 'agent') void agentKeys.remove(row.id, row.name);
      },
      onCommitted: (changes) => {
        uses.committed(changes);
        approvals.committed(changes);
        approvalEvents.committed(changes);
      },
      onStorageFailure,
      // The message of a StoreError contains no data from a request.
      onFailedBatch: (error) => {
        this.#batchError = error;
        // Startup fails with this error, in one line.
        if (this.#isStarting) return;
        logOften('a batch could not be committed', error);
      },
    });
    const approvalEvents = new ApprovalEvents(() => clock.now());
    const agentKeys = new RetryingAgentKeys({
      keyStore,
      ledger,
      onFailure: (error) => logOften('a key file could not be written, moved or removed; the server retries', error),
      onStorageFailure,
    });
    const broker = new BrokerClient();
    resources.defer(() => broker.stop());
    const useLimits = new UseLimits(ledger, () => clock.now());
    const budgets = new AgentBudgets(configuration.budgets);
    const approvals = new ApprovalHolds({
      ledger,
      store,
      keys,
      clock,
      budgets,
      holdMs: parts.approvalHoldMs,
      onFailure: (error) => logOften('approvals could not be read or ended; the server retries', error),
    });
    this.#background.push(approvals);
    const uses = new Uses(ledger, broker, useLimits, approvals, {
      targetNetworks: configuration.targetNetworks?.map(({ text }) => text) ?? null,
      ownPorts: parts.ownPorts,
    });
    const reencryption = new Reencryption({
      ledger,
      store,
      keys,
      onFailure: (error) => logOften('values could not be re-encrypted; the server retries', error),
    });
    this.#background.push(reencryption, { stop: async () => agentKeys.stop() });
    const inventory = new Inventory(store, clock, keys);
    this.#background.push(inventory);
    const checkpoints = new Checkpoints({
      store,
      keys,
      clock,
      onSigned: (signed) => this.#checkpointSinks.publish(signed),
      warn: (line) => logOften(line),
    });
    this.vault = {
      ledger,
      store,
      keys,
      clock,
      agentKeys,
      loginThrottle: new LoginThrottle(),
      breakGlass: new BreakGlass(ledger, clock, parts.warn),
      budgets,
      verifier: new Verifier({ store, keys, clock }),
      advisories: new Advisories({ store, clock }),
      scanTurns: new ScanTurns(),
      checkpoints,
      node: parts.node,
      uses,
      approvals,
      slotSecrets,
      reencryption,
      oidc: configuration.oidc === null ? null : new ProviderClient(configuration.oidc, (line) => logOften(line)),
      adminTokenHash,
    };
    this.#checkpointSinks = new CheckpointSinks(checkpointFiles, logOften);
    this.sources = {
      vault: this.vault,
      denials,
      useLimits,
      broker,
      marker,
      inventory,
      approvalEvents,
      streams: () => this.#streams.map((stream) => stream.status()),
      checkpointSinks: () => this.#checkpointSinks.status(),
      webhookResults: () => this.#webhook?.results ?? null,
    };
  }

  /**
   * The entries that the audit log has lost, or the missing evidence of them, unless the operator accepted it. The
   * vault is then read-only.
   */
  get loss(): string | null {
    const { loss, isReadOnly } = this.#parts.opened;
    return isReadOnly && loss !== null ? loss.what : null;
  }

  /**
   * Records the event with the warnings, and begins the background tasks, unless the vault is read-only. @throws
   * StoreError, UNAVAILABLE
   */
  async start(event: 'service.start' | 'service.unlock'): Promise<void> {
    const { configuration, opened, log, logOften, onStorageFailure, warn, consoleUrl } = this.#parts;
    const { store, clock, marker, loss, isReadOnly } = opened;
    const { ledger, reencryption, checkpoints } = this.vault;
    if (isReadOnly) {
      this.#isStarting = false;
      return;
    }
    // WHY dynamic imports: most servers have no stream and no webhook, and need no memory for them.
    if (configuration.logStreams.length > 0) {
      const { startLogStreams } = await import('./log-streams.ts');
      this.#streams = startLogStreams(configuration, this.vault, warn, logOften);
    }
    if (configuration.approvalWebhook !== null) {
      const { ApprovalWebhook } = await import('./approval-webhook.ts');
      this.#webhook = new ApprovalWebhook(configuration.approvalWebhook, () => clock.now(), consoleUrl, logOften, warn);
      this.sources.approvalEvents.onEvent = this.#webhook.onEvent;
    }
    this.#resources.defer(() => this.#webhook?.stop());
    this.#resources.defer(async () => void (await Promise.all(this.#streams.map((stream) => stream.stop()))));
    // WHY another signing key: the checkpoints of lost entries must never have a second root.
    const changes = loss === null ? [] : [newSigningKey()];
    try {
      await ledger.submit(serviceEvent(event, warningsAsReason(ledger.memory.warnings), changes));
    } catch (error) {
      // WHY: the error that clients receive does not contain the cause, which the operator needs.
      throw this.#batchError instanceof StoreError ? this.#batchError : error;
    }
    this.#isStarting = false;
    this.#background.push(startStateCheck(this.vault.verifier.state, log));
    this.#background.push(startSweeping(store, clock, log, onStorageFailure));
    const watching = startMarking(ledger, marker, store.isMultiWriter, logOften);
    const checkpointing = startCheckpointing(ledger, checkpoints, logOften);
    // ORDER: the last checkpoint is signed first, then it is written, then the streams end.
    this.#resources.defer(() => watching.stop());
    this.#resources.defer(() => this.#checkpointSinks.stop());
    this.#resources.defer(() => checkpointing.stop());
    reencryption.begin();
  }

  /** Ends the background tasks, and continues to serve requests. */
  async quiesce(): Promise<void> {
    for (const each of this.#background.splice(0).reverse()) await each.stop();
  }

  endUses(): Promise<void> {
    return this.vault.uses.stop();
  }

  /** Records the shutdown, if that is why the vault ends, and closes the store. @throws an error of the store */
  async close(recordsStop: boolean): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { ledger, keys, uses } = this.vault;
    await this.quiesce();
    await Promise.all([abortBackup(ledger), uses.stop()]);
    try {
      const record = () => ledger.submit(serviceEvent('service.stop', null));
      // Retries once: after a failed batch the ledger reloads its state from the store.
      if (recordsStop && !this.#parts.opened.isReadOnly) await record().catch(record);
    } finally {
      await ledger.close();
      await this.#resources.disposeAsync().finally(() => keys.forget());
    }
  }
}
