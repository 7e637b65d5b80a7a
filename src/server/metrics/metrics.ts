/**
 * Every metric of the server: its name, labels and source. Label values come from closed sets: no agent, path, policy
 * or address. docs/monitoring.md lists the same table, and a test compares it.
 */
import type { ServiceStatus } from '../../api/types.ts';
import type { BrokerClient } from '../../broker/broker-client.ts';
import { Counter, type Histogram } from '../../core/measures.ts';
import type { RequestMeasures } from '../../http/request-measures.ts';
import type { DenialBudget } from '../../ledger/budgets.ts';
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
interface Buckets {
  readonly bounds: readonly number[];
  readonly cumulative: readonly number[];
  readonly sum: number;
  readonly count: number;
}

interface Declared<Kind extends string, Value> {
  readonly kind: Kind;
  readonly help: string;
  readonly labels: readonly string[];
  read(sources: MetricSources): readonly Sample<Value>[];
}
type Declaration = Declared<'counter', number> | Declared<'gauge', number> | Declared<'histogram', Buckets>;
export type Metric = Declaration & { readonly name: string };

type Read<Value> = (sources: MetricSources) => Value;

/** Declares a metric with one label. Spaces in the label's values become underscores. */
const labelled = (
  kind: 'counter' | 'gauge',
  help: string,
  label: string,
  read: Read<Iterable<readonly [value: string, count: number]>>,
): Declaration => ({
  kind,
  help,
  labels: [label],
  read: (sources) => Array.from(read(sources), ([value, count]) => [{ [label]: value.replaceAll(' ', '_') }, count]),
});

const counters = (help: string, label: string, read: Read<Counter>): Declaration =>
  labelled('counter', help, label, (sources) => read(sources).entries());

const counter = (help: string, read: Read<number>): Declaration => {
  return { kind: 'counter', help, labels: [], read: (sources) => [[{}, read(sources)]] };
};

/** Declares a gauge. Null omits the metric. */
const gauge = (help: string, read: Read<number | null>): Declaration => ({
  kind: 'gauge',
  help,
  labels: [],
  read(sources) {
    const value = read(sources);
    return value === null ? [] : [[{}, value]];
  },
});

/** Declares a histogram. Null omits the metric. */
const histogram = (help: string, read: Read<Histogram | null>): Declaration => ({
  kind: 'histogram',
  help,
  labels: [],
  read(sources) {
    const found = read(sources);
    return found === null ? [] : [[{}, bucketsOf(found)]];
  },
});

function bucketsOf(histogram: Histogram): Buckets {
  const { bounds, sum, count } = histogram;
  return { bounds, cumulative: histogram.cumulative(), sum, count };
}

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

const STATUSES = ['ok', 'starting', 'locked', 'rolled_back', 'stopping', 'failing'] as const;

const NONE = new Counter(['sent', 'failed', 'dropped']);

const ofStreams = (kind: 'counter' | 'gauge', help: string, read: (status: StreamStatus) => number): Declaration =>
  labelled(kind, help, 'stream', ({ streams }) => streams().map((status) => [status.name, read(status)]));

const DECLARATIONS: Readonly<Record<string, Declaration>> = {
  leasehold_build_info: {
    kind: 'gauge',
    help: 'Always 1; the labels name the version.',
    labels: ['version', 'node_version'],
    read: ({ version }) => [[{ version, node_version: process.versions.node }, 1]],
  },
  leasehold_health_status: labelled(
    'gauge',
    '1 for the current state of the server, 0 for the others.',
    'status',
    ({ status }) => STATUSES.map((each) => [each, each === status() ? 1 : 0]),
  ),
  // The ledger.
  leasehold_batches_total: counters(
    'Batches: committed, empty (nothing to write) or failed.',
    'result',
    ({ vault }) => vault.ledger.measures.batches,
  ),
  leasehold_batch_operations: histogram('Operations per batch.', ({ vault }) => vault.ledger.measures.batchSizes),
  leasehold_batch_write_duration_seconds: histogram(
    'Time to load, decide and write a batch.',
    ({ vault }) => vault.ledger.measures.writeSeconds,
  ),
  leasehold_batch_durable_duration_seconds: histogram(
    'Time from the write of a batch until it is durable.',
    ({ vault }) => vault.ledger.measures.durableSeconds,
  ),
  leasehold_queue_length: gauge('Operations that wait for a batch.', ({ vault }) => vault.ledger.queue.length),
  leasehold_overload_rejections_total: counter(
    'Operations that were rejected because the queue was full.',
    ({ vault }) => vault.ledger.queue.rejections,
  ),
  leasehold_log_seq: gauge(
    'Sequence number of the last entry of the audit log that this node knows.',
    ({ vault }) => vault.ledger.memory.lastSeenEntry?.seq ?? 0,
  ),
  leasehold_audit_entries_total: {
    kind: 'counter',
    help: 'Log entries that this node committed.',
    labels: ['event_type', 'result'],
    read: ({ vault }) =>
      vault.ledger.measures.entries.entries().map(([event_type, result, count]) => [{ event_type, result }, count]),
  },
  leasehold_denials_total: counters(
    'Denials with an entry in the audit log, by class of reason.',
    'class',
    ({ vault }) => vault.ledger.measures.denials,
  ),
  leasehold_denials_unrecorded_total: counter(
    'Denials over an agent’s budget, which are rejected with 429 and not recorded.',
    ({ denials }) => denials.unrecordedDenials,
  ),
  leasehold_values_sealed_total: counter(
    'Values that this process encrypted with the data key.',
    ({ vault }) => vault.ledger.measures.valuesEncrypted,
  ),
  // Leases, sessions, agents.
  leasehold_leases_issued_total: counters(
    'Leases that this node issued, by kind.',
    'kind',
    ({ vault }) => vault.ledger.measures.leasesIssued,
  ),
  leasehold_leases_active: labelled(
    'gauge',
    'Active leases of the vault by kind, at the last count.',
    'kind',
    ({ inventory }) => Object.entries(inventory.read()?.leases ?? {}),
  ),
  leasehold_sessions_open: gauge(
    'Open sessions of the vault, at the last count.',
    ({ inventory }) => inventory.read()?.sessions ?? null,
  ),
  leasehold_inventory_age_seconds: gauge('Age of the last count of leases and sessions.', ({ inventory }) => {
    const counted = inventory.read();
    return counted === null ? null : (performance.now() - counted.at) / 1000;
  }),
  leasehold_agents: gauge('Registered agents.', ({ vault }) => vault.ledger.memory.control.agentCount),
  leasehold_policies: gauge('Policies.', ({ vault }) => vault.ledger.memory.control.policies.size),
  leasehold_logins_total: counters(
    'Login attempts: ok, failed, throttled, or error.',
    'result',
    ({ vault }) => vault.loginThrottle.attempts,
  ),
  leasehold_budget_rejections_total: counters(
    'Requests that an agent’s hourly budget rejected.',
    'budget',
    ({ vault }) => vault.budgets.rejections,
  ),
  // Brokered requests.
  leasehold_uses_running: gauge('Brokered requests in progress.', ({ vault }) => vault.uses.runningCount),
  leasehold_uses_started_total: counter(
    'Brokered requests that were allowed.',
    ({ vault }) => vault.uses.measures.started,
  ),
  leasehold_uses_ended_total: counters(
    'Brokered requests that ended, by cause.',
    'ended',
    ({ vault }) => vault.uses.measures.ended,
  ),
  leasehold_use_redactions_total: counter(
    'Values that were redacted from responses.',
    ({ vault }) => vault.uses.measures.redactions,
  ),
  leasehold_use_bytes_total: counters(
    'Bytes of bodies: in to upstreams, out to callers.',
    'direction',
    ({ vault }) => vault.uses.measures.bytes,
  ),
  leasehold_use_limit_rejections_total: counters(
    'Brokered requests that a limit of a policy rejected.',
    'limit',
    ({ useLimits }) => useLimits.rejectedUses,
  ),
  leasehold_broker_starts_total: counter('Starts of the broker’s process.', ({ broker }) => broker.starts),
  // Approvals.
  leasehold_approvals_pending: gauge(
    'Requests that this node holds until they are approved.',
    ({ vault }) => vault.approvals.heldCount,
  ),
  leasehold_approvals_total: labelled(
    'counter',
    'Outcomes of requests for approval that this node recorded; no_approver per request.',
    'outcome',
    ({ approvalEvents, requests }) => [
      ...approvalEvents.measures.outcomes.entries(),
      ['no_approver', requests.rejections.get('NO_APPROVER')],
    ],
  ),
  leasehold_approval_wait_seconds: histogram(
    'Time from a request for approval to its outcome.',
    ({ approvalEvents }) => approvalEvents.measures.waitSeconds,
  ),
  leasehold_approval_webhooks_total: labelled(
    'counter',
    'Messages to the webhook for approvals: sent, dropped, and attempts that failed.',
    'result',
    ({ webhookResults }) => (webhookResults() ?? NONE).entries(),
  ),
  // Storage.
  leasehold_wal_sync_duration_seconds: histogram(
    'Syncs of SQLite’s write-ahead log.',
    ({ vault }) => vault.store.measures.disk?.syncSeconds ?? null,
  ),
  leasehold_wal_checkpoint_duration_seconds: histogram(
    'Writes of the write-ahead log’s pages into the database.',
    ({ vault }) => vault.store.measures.disk?.checkpointSeconds ?? null,
  ),
  leasehold_wal_pending_pages: gauge(
    'Pages of the write-ahead log that are not in the database yet.',
    ({ vault }) => vault.store.measures.disk?.pendingPages() ?? null,
  ),
  leasehold_wal_bytes: gauge(
    'Size of the write-ahead log’s file.',
    ({ vault }) => vault.store.measures.disk?.walBytes() ?? null,
  ),
  leasehold_database_connections_in_use: gauge(
    'Connections to PostgreSQL that read now.',
    ({ vault }) => vault.store.measures.connections?.inUse() ?? null,
  ),
  leasehold_database_waiting_reads: gauge(
    'Reads that wait for a connection to PostgreSQL.',
    ({ vault }) => vault.store.measures.connections?.waiting() ?? null,
  ),
  // Means against loss: the rollback marker, checkpoints, backups, and the use of the data key.
  leasehold_rollback_marker_unsynced_seconds: gauge(
    'Time for which the newest rollback marker has not been on disk; 0 if it is.',
    ({ marker }) => marker.unsyncedSeconds,
  ),
  leasehold_rollback_marker_failures_total: counter(
    'Writes of the rollback marker that failed.',
    ({ marker }) => marker.failures,
  ),
  leasehold_checkpoint_age_seconds: gauge(
    'Time since the newest checkpoint that this node knows was signed.',
    ({ vault }) => {
      const newest = vault.checkpoints.newest;
      return newest === null ? null : Math.max(0, vault.clock.now() - newest.signedAt) / 1000;
    },
  ),
  leasehold_checkpoint_unsigned_entries: gauge(
    'Log entries after the newest checkpoint that this node knows.',
    ({ vault }) => Math.max(0, vault.ledger.memory.tip.seq - (vault.checkpoints.newest?.size ?? 0)),
  ),
  leasehold_checkpoint_waiting_seconds: labelled(
    'gauge',
    'Time for which the newest checkpoint has not been in the file; 0 if it is.',
    'file',
    ({ checkpointSinks }) => checkpointSinks().map(({ label, waitingSeconds }) => [label, waitingSeconds]),
  ),
  leasehold_checkpoint_write_failures_total: labelled(
    'counter',
    'Writes of a checkpoint to the file that failed.',
    'file',
    ({ checkpointSinks }) => checkpointSinks().map(({ label, failures }) => [label, failures]),
  ),
  leasehold_data_key_seals: gauge(
    'Values encrypted with the current data key, at the last count.',
    ({ inventory }) => inventory.read()?.encryptions ?? null,
  ),
  leasehold_backup_age_seconds: gauge('Age of the newest complete backup in the audit log.', ({ inventory, vault }) => {
    const at = inventory.read()?.backupAt ?? null;
    return at === null ? null : Math.max(0, vault.clock.now() - at) / 1000;
  }),
  // Log streams.
  leasehold_stream_sending: ofStreams(
    'gauge',
    '1 if this node sends the log stream; of several nodes one does.',
    (stream) => Number(stream.isSending),
  ),
  leasehold_stream_entries_total: ofStreams(
    'counter',
    'Log entries that the stream sent, with repetitions.',
    ({ sent }) => sent,
  ),
  leasehold_stream_failures_total: ofStreams(
    'counter',
    'Attempts of the stream that failed.',
    ({ failures }) => failures,
  ),
  leasehold_stream_lag_entries: ofStreams(
    'gauge',
    'Log entries that the stream has not sent yet.',
    ({ lagEntries }) => lagEntries,
  ),
  leasehold_stream_lag_seconds: ofStreams(
    'gauge',
    'Age of the oldest entry of the audit log that the stream has not sent.',
    ({ lagSeconds }) => lagSeconds,
  ),
  // HTTP.
  leasehold_http_requests_total: {
    kind: 'counter',
    help: 'Requests by route and status; 0 without a response, or for an unknown status of an upstream.',
    labels: ['method', 'route', 'status'],
    read: ({ requests }) =>
      requests
        .routes()
        .flatMap(({ method, path, statuses }) =>
          [...statuses].map(([status, count]) => [{ method, route: path, status: String(status) }, count] as const),
        ),
  },
  leasehold_http_request_duration_seconds: {
    kind: 'histogram',
    help: 'Time from a request’s head to the end of its response.',
    labels: ['method', 'route'],
    read: ({ requests }) =>
      requests
        .routes()
        .filter(({ seconds }) => seconds.count > 0)
        .map(({ method, path, seconds }) => [{ method, route: path }, bucketsOf(seconds)]),
  },
  leasehold_http_rejections_total: counters(
    'Rejected requests by error code.',
    'code',
    ({ requests }) => requests.rejections,
  ),
  leasehold_http_connections: gauge('Open connections of clients.', ({ requests }) => requests.openConnections()),
};

export const METRICS: readonly Metric[] = Object.entries(DECLARATIONS).map(([name, declaration]) => ({
  name,
  ...declaration,
}));
