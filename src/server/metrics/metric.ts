/** The form of a declared metric, short ways to declare one, and the parts of the server whose counters it reads. */
import type { ServiceStatus } from '../../api/types.ts';
import type { BrokerClient } from '../../broker/broker-client.ts';
import type { Counter, Histogram } from '../../core/measures.ts';
import type { RequestMeasures } from '../../http/request-measures.ts';
import type { DenialBudget } from '../../ledger/token-buckets.ts';
import type { ApprovalEvents } from '../../vault/approvals/approval-events.ts';
import type { UseLimits } from '../../vault/use/use-limits.ts';
import type { Vault } from '../../vault/vault.ts';
import type { CheckpointSinkStatus } from '../checkpoint-files.ts';
import type { StreamStatus } from '../log-streams.ts';
import type { RollbackMarker } from '../rollback-marker.ts';
import type { Inventory } from './inventory.ts';

export type Labels = Readonly<Record<string, string>>;
type Sample<Value> = readonly [labels: Labels, value: Value];

/** The values of a histogram; `cumulative` contains one count per bound. */
export interface Buckets {
  readonly bounds: readonly number[];
  readonly cumulative: readonly number[];
  readonly sum: number;
  readonly count: number;
}

interface Declared<Kind extends string, Value> {
  readonly kind: Kind;
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  read(sources: MetricSources): readonly Sample<Value>[];
}
export type Metric = Declared<'counter', number> | Declared<'gauge', number> | Declared<'histogram', Buckets>;

type Read<Value> = (sources: MetricSources) => Value;

export const counter = (name: string, help: string, read: Read<number>): Metric => {
  return { kind: 'counter', name, help, labels: [], read: (sources) => [[{}, read(sources)]] };
};

export const counters = (name: string, help: string, label: string, read: Read<Counter>): Metric => ({
  kind: 'counter',
  name,
  help,
  labels: [label],
  read: (sources) =>
    read(sources)
      .entries()
      .map(([value, count]) => [{ [label]: toLabel(value) }, count]),
});

/** Declares a gauge. Null omits the metric. */
export const gauge = (name: string, help: string, read: Read<number | null>): Metric => ({
  kind: 'gauge',
  name,
  help,
  labels: [],
  read(sources) {
    const value = read(sources);
    return value === null ? [] : [[{}, value]];
  },
});

/** Declares a histogram. Null omits the metric. */
export const histogram = (name: string, help: string, read: Read<Histogram | null>): Metric => ({
  kind: 'histogram',
  name,
  help,
  labels: [],
  read(sources) {
    const distribution = read(sources);
    return distribution === null ? [] : [[{}, bucketsOf(distribution)]];
  },
});

export function bucketsOf(distribution: Histogram): Buckets {
  const { bounds, sum, count } = distribution;
  return { bounds, cumulative: distribution.cumulative(), sum, count };
}

const toLabel = (text: string): string => text.replaceAll(' ', '_');

export interface VaultSources {
  readonly vault: Omit<Vault, 'access'>;
  readonly denials: DenialBudget;
  readonly useLimits: UseLimits;
  readonly broker: BrokerClient;
  readonly marker: RollbackMarker;
  readonly inventory: Inventory;
  readonly approvalEvents: ApprovalEvents;
  readonly webhookResults: () => Counter | null;
  readonly streams: () => readonly StreamStatus[];
  readonly checkpointSinks: () => readonly CheckpointSinkStatus[];
}

/** The sources of the server's own metrics, which exist even while the vault is locked. */
export interface ServerSources {
  readonly requests: RequestMeasures;
  readonly status: () => ServiceStatus;
  readonly version: string;
}

export type MetricSources = ServerSources & VaultSources;
