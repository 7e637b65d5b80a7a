/**
 * Every metric of the server: its name, labels and source. Label values come from closed sets: no agent, path, policy
 * or address. docs/monitoring.md lists the same table, and a test compares it.
 */
import { Counter } from '../../core/measures.ts';
import type { StreamStatus } from '../log-streams.ts';
import { bucketsOf, counter, counters, gauge, histogram, type Metric } from './metric.ts';

const STATUSES = ['ok', 'starting', 'locked', 'rolled_back', 'stopping', 'failing'] as const;

const NONE = new Counter(['sent', 'failed', 'dropped']);

const ofStreams = (
  kind: 'counter' | 'gauge',
  name: string,
  help: string,
  read: (status: StreamStatus) => number,
): Metric => ({
  kind,
  name: `leasehold_stream_${name}`,
  help,
  labels: ['stream'],
  read: ({ streams }) => streams().map((status) => [{ stream: status.name }, read(status)]),
});

const APPROVAL_METRICS: readonly Metric[] = [
  gauge('leasehold_approvals_pending', 'Requests that this node holds until they are approved.', ({ vault }) => {
    return vault.approvals.heldCount;
  }),
  {
    kind: 'counter',
    name: 'leasehold_approvals_total',
    help: 'Outcomes of requests for approval that this node recorded; no_approver per request.',
    labels: ['outcome'],
    read: ({ approvalEvents, requests }) => [
      ...approvalEvents.measures.outcomes.entries().map(([outcome, count]) => [{ outcome }, count] as const),
      [{ outcome: 'no_approver' }, requests.rejections.get('NO_APPROVER')],
    ],
  },
  histogram(
    'leasehold_approval_wait_seconds',
    'Time from a request for approval to its outcome.',
    ({ approvalEvents }) => approvalEvents.measures.waitSeconds,
  ),
  {
    kind: 'counter',
    name: 'leasehold_approval_webhooks_total',
    help: 'Messages to the webhook for approvals: sent, dropped, and attempts that failed.',
    labels: ['result'],
    read: ({ webhookResults }) => (webhookResults() ?? NONE).entries().map(([result, count]) => [{ result }, count]),
  },
];

/** Metrics of the means against loss: the rollback marker, checkpoints, backups, and the use of the data key. */
const EVIDENCE_METRICS: readonly Metric[] = [
  gauge(
    'leasehold_rollback_marker_unsynced_seconds',
    'Time for which the newest rollback marker has not been on disk; 0 if it is.',
    ({ marker }) => marker.unsyncedSeconds,
  ),
  counter(
    'leasehold_rollback_marker_failures_total',
    'Writes of the rollback marker that failed.',
    ({ marker }) => marker.failures,
  ),
  gauge(
    'leasehold_checkpoint_age_seconds',
    'Time since the newest checkpoint that this node knows was signed.',
    ({ vault }) => {
      const newest = vault.checkpoints.newest;
      return newest === null ? null : Math.max(0, vault.clock.now() - newest.signedAt) / 1000;
    },
  ),
  gauge(
    'leasehold_checkpoint_unsigned_entries',
    'Log entries after the newest checkpoint that this node knows.',
    ({ vault }) => Math.max(0, vault.ledger.memory.tip.seq - (vault.checkpoints.newest?.size ?? 0)),
  ),
  {
    kind: 'gauge',
    name: 'leasehold_checkpoint_waiting_seconds',
    help: 'Time for which the newest checkpoint has not been in the file; 0 if it is.',
    labels: ['file'],
    read: ({ checkpointSinks }) =>
      checkpointSinks().map(({ label, waitingSeconds }) => [{ file: label }, waitingSeconds]),
  },
  {
    kind: 'counter',
    name: 'leasehold_checkpoint_write_failures_total',
    help: 'Writes of a checkpoint to the file that failed.',
    labels: ['file'],
    read: ({ checkpointSinks }) => checkpointSinks().map(({ label, failures }) => [{ file: label }, failures]),
  },
  gauge(
    'leasehold_data_key_seals',
    'Values encrypted with the current data key, at the last count.',
    ({ inventory }) => {
      return inventory.read()?.seals ?? null;
    },
  ),
  gauge('leasehold_backup_age_seconds', 'Age of the newest complete backup in the log.', ({ inventory, vault }) => {
    const at = inventory.read()?.backupAt ?? null;
    return at === null ? null : Math.max(0, vault.clock.now() - at) / 1000;
  }),
];

export const METRICS: readonly Metric[] = [
  {
    kind: 'gauge',
    name: 'leasehold_build_info',
    help: 'Always 1; the labels name the version.',
    labels: ['version', 'node_version'],
    read: ({ version }) => [[{ version, node_version: process.versions.node }, 1]],
  },
  {
    kind: 'gauge',
    name: 'leasehold_health_status',
    help: '1 for the current state of the server, 0 for the others.',
    labels: ['status'],
    read: ({ status }) => STATUSES.map((each) => [{ status: each }, each === status() ? 1 : 0]),
  },
  // The ledger.
  counters(
    'leasehold_batches_total',
    'Batches: committed, empty (nothing to write) or failed.',
    'result',
    ({ vault }) => vault.ledger.measures.batches,
  ),
  histogram('leasehold_batch_operations', 'Operations per batch.', ({ vault }) => vault.ledger.measures.batchSizes),
  histogram(
    'leasehold_batch_write_duration_seconds',
    'Time to load, decide and write a batch.',
    ({ vault }) => vault.ledger.measures.writeSeconds,
  ),
  histogram(
    'leasehold_batch_durable_duration_seconds',
    'Time from the write of a batch until it is durable.',
    ({ vault }) => vault.ledger.measures.durableSeconds,
  ),
  gauge('leasehold_queue_length', 'Operations that wait for a batch.', ({ vault }) => vault.ledger.queue.length),
  counter(
    'leasehold_overload_rejections_total',
    'Operations that were rejected because the queue was full.',
    ({ vault }) => vault.ledger.queue.rejections,
  ),
  gauge(
    'leasehold_log_seq',
    'Sequence number of the last log entry that this node knows.',
    ({ vault }) => vault.ledger.memory.lastSeenEntry?.seq ?? 0,
  ),
  {
    kind: 'counter',
    name: 'leasehold_audit_entries_total',
    help: 'Log entries that this node committed.',
    labels: ['event_type', 'result'],
    read: ({ vault }) =>
      vault.ledger.measures.entries.entries().map(([event_type, result, count]) => [{ event_type, result }, count]),
  },
  counters(
    'leasehold_denials_total',
    'Denials with a log entry, by class of reason.',
    'class',
    ({ vault }) => vault.ledger.measures.denials,
  ),
  counter(
    'leasehold_denials_unrecorded_total',
    'Denials over an agent’s budget, which are rejected with 429 and not recorded.',
    ({ denials }) => denials.unrecordedDenials,
  ),
  counter(
    'leasehold_values_sealed_total',
    'Values that this process encrypted with the data key.',
    ({ vault }) => vault.ledger.measures.valuesSealed,
  ),
  // Leases, sessions, agents.
  counters(
    'leasehold_leases_issued_total',
    'Leases that this node issued, by kind.',
    'kind',
    ({ vault }) => vault.ledger.measures.leasesIssued,
  ),
  {
    kind: 'gauge',
    name: 'leasehold_leases_active',
    help: 'Active leases of the vault by kind, at the last count.',
    labels: ['kind'],
    read: ({ inventory }) => Object.entries(inventory.read()?.leases ?? {}).map(([kind, count]) => [{ kind }, count]),
  },
  gauge('leasehold_sessions_open', 'Open sessions of the vault, at the last count.', ({ inventory }) => {
    return inventory.read()?.sessions ?? null;
  }),
  gauge('leasehold_inventory_age_seconds', 'Age of the last count of leases and sessions.', ({ inventory }) => {
    const counted = inventory.read();
    return counted === null ? null : (performance.now() - counted.at) / 1000;
  }),
  gauge('leasehold_agents', 'Registered agents.', ({ vault }) => vault.ledger.memory.control.agentCount),
  gauge('leasehold_policies', 'Policies.', ({ vault }) => vault.ledger.memory.control.policies.size),
  counters(
    'leasehold_logins_total',
    'Login attempts: ok, failed, throttled, or error.',
    'result',
    ({ vault }) => vault.loginThrottle.attempts,
  ),
  counters(
    'leasehold_budget_rejections_total',
    'Requests that an agent’s hourly budget rejected.',
    'budget',
    ({ vault }) => vault.budgets.rejections,
  ),
  // Brokered requests.
  gauge('leasehold_uses_running', 'Brokered requests in progress.', ({ vault }) => vault.uses.runningCount),
  counter(
    'leasehold_uses_started_total',
    'Brokered requests that were allowed.',
    ({ vault }) => vault.uses.measures.started,
  ),
  counters(
    'leasehold_uses_ended_total',
    'Brokered requests that ended, by cause.',
    'ended',
    ({ vault }) => vault.uses.measures.ended,
  ),
  counter(
    'leasehold_use_redactions_total',
    'Values that were redacted from responses.',
    ({ vault }) => vault.uses.measures.redactions,
  ),
  counters(
    'leasehold_use_bytes_total',
    'Bytes of bodies: in to upstreams, out to callers.',
    'direction',
    ({ vault }) => vault.uses.measures.bytes,
  ),
  counters(
    'leasehold_use_limit_rejections_total',
    'Brokered requests that a limit of a policy rejected.',
    'limit',
    ({ useLimits }) => useLimits.rejectedUses,
  ),
  counter('leasehold_broker_starts_total', 'Starts of the broker’s process.', ({ broker }) => broker.starts),
  ...APPROVAL_METRICS,
  // Storage.
  histogram(
    'leasehold_wal_sync_duration_seconds',
    'Syncs of SQLite’s write-ahead log.',
    ({ vault }) => vault.store.measures.disk?.syncSeconds ?? null,
  ),
  histogram(
    'leasehold_wal_checkpoint_duration_seconds',
    'Writes of the write-ahead log’s pages into the database.',
    ({ vault }) => vault.store.measures.disk?.checkpointSeconds ?? null,
  ),
  gauge(
    'leasehold_wal_pending_pages',
    'Pages of the write-ahead log that are not in the database yet.',
    ({ vault }) => vault.store.measures.disk?.pendingPages() ?? null,
  ),
  gauge(
    'leasehold_wal_bytes',
    'Size of the write-ahead log’s file.',
    ({ vault }) => vault.store.measures.disk?.walBytes() ?? null,
  ),
  gauge(
    'leasehold_database_connections_in_use',
    'Connections to PostgreSQL that read now.',
    ({ vault }) => vault.store.measures.connections?.inUse() ?? null,
  ),
  gauge(
    'leasehold_database_waiting_reads',
    'Reads that wait for a connection to PostgreSQL.',
    ({ vault }) => vault.store.measures.connections?.waiting() ?? null,
  ),
  ...EVIDENCE_METRICS,
  // Log streams.
  ofStreams('gauge', 'sending', '1 if this node sends the log stream; of several nodes one does.', (stream) =>
    Number(stream.isSending),
  ),
  ofStreams('counter', 'entries_total', 'Log entries that the stream sent, with repetitions.', ({ sent }) => sent),
  ofStreams('counter', 'failures_total', 'Attempts of the stream that failed.', ({ failures }) => failures),
  ofStreams('gauge', 'lag_entries', 'Log entries that the stream has not sent yet.', ({ lagEntries }) => lagEntries),
  ofStreams(
    'gauge',
    'lag_seconds',
    'Age of the oldest log entry that the stream has not sent.',
    ({ lagSeconds }) => lagSeconds,
  ),
  // HTTP.
  {
    kind: 'counter',
    name: 'leasehold_http_requests_total',
    help: 'Requests by route and status; 0 without a response, or for an unknown status of an upstream.',
    labels: ['method', 'route', 'status'],
    read: ({ requests }) =>
      requests
        .routes()
        .flatMap(({ method, path, statuses }) =>
          [...statuses].map(([status, count]) => [{ method, route: path, status: String(status) }, count] as const),
        ),
  },
  {
    kind: 'histogram',
    name: 'leasehold_http_request_duration_seconds',
    help: 'Time from a request’s head to the end of its response.',
    labels: ['method', 'route'],
    read: ({ requests }) =>
      requests
        .routes()
        .filter(({ seconds }) => seconds.count > 0)
        .map(({ method, path, seconds }) => [{ method, route: path }, bucketsOf(seconds)]),
  },
  counters('leasehold_http_rejections_total', 'Rejected requests by error code.', 'code', ({ requests }) => {
    return requests.rejections;
  }),
  gauge('leasehold_http_connections', 'Open connections of clients.', ({ requests }) => requests.openConnections()),
];
