/** The parts of the service whose counters the metrics read. */
import type { ServiceStatus } from '../../api/types.ts';
import type { BrokerClient } from '../../broker/broker-client.ts';
import type { Tally } from '../../core/measures.ts';
import type { RequestMeasures } from '../../http/request-measures.ts';
import type { DenialBudget } from '../../ledger/denial-budget.ts';
import type { ApprovalEvents } from '../../vault/approval-events.ts';
import type { UseLimits } from '../../vault/use-limits.ts';
import type { Vault } from '../../vault/vault.ts';
import type { CheckpointSinkStatus } from '../checkpoint-sinks.ts';
import type { RollbackMarker } from '../rollback-marker.ts';
import type { StreamStatus } from '../streams/log-stream.ts';
import type { Inventory } from './inventory.ts';

/** Of an opened vault. */
export interface VaultSources {
  readonly vault: Omit<Vault, 'access'>;
  readonly denials: DenialBudget;
  readonly useLimits: UseLimits;
  readonly broker: BrokerClient;
  readonly marker: RollbackMarker;
  readonly inventory: Inventory;
  readonly approvalEvents: ApprovalEvents;
  /** Null without a webhook for approvals. */
  readonly webhookResults: () => Tally | null;
  readonly streams: () => readonly StreamStatus[];
  readonly checkpointSinks: () => readonly CheckpointSinkStatus[];
}

/** Of the service, also while the vault is locked. */
export interface ServiceSources {
  readonly requests: RequestMeasures;
  readonly status: () => ServiceStatus;
  readonly version: string;
}

export type MetricSources = ServiceSources & VaultSources;
