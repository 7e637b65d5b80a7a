/** What the service shows to the outside: its metrics, the streams of its log, and the webhook for approvals. */
import type { ServiceStatus } from '../api/types.ts';
import { hashToken } from '../crypto/tokens.ts';
import type { RequestMeasures } from '../http/request-measures.ts';
import type { MetricsPage } from '../http/route.ts';
import { readVersion } from '../platform/version.ts';
import type { ApprovalEvents } from '../vault/approval-events.ts';
import type { Vault } from '../vault/vault.ts';
import { readGivenToken } from './admin-token.ts';
import type { ApprovalWebhook } from './approval-webhook.ts';
import type { Configuration } from './configuration.ts';
import { isLoopback } from './hosts.ts';
import { logFailure, type ServiceLog } from './log.ts';
import type { VaultSources } from './metrics/metric.ts';
import { MetricsText } from './metrics/page.ts';
import type { LogStream } from './streams/log-stream.ts';

export class Monitoring {
  readonly page: MetricsPage;

  /** `findVault` returns null while the vault is locked. @throws StartupError for an invalid token file */
  constructor(
    configuration: Configuration,
    requests: RequestMeasures,
    status: () => ServiceStatus,
    findVault: () => VaultSources | null,
    warn: (line: string) => void,
  ) {
    const text = new MetricsText({ requests, status, version: readVersion() }, findVault);
    const { metricsTokenFile, listen, publicNames, trustedProxies } = configuration;
    const token = metricsTokenFile === null ? null : readGivenToken(metricsTokenFile, warn);
    this.page = {
      tokenHash: token === null ? null : hashToken(token.reveal()),
      // Each of these settings says that requests of other machines arrive, perhaps by a forwarder on this one.
      trustsLoopback: isLoopback(listen) && publicNames.length === 0 && trustedProxies.length === 0,
      render: () => text.render(),
    };
  }
}

/** WHY a dynamic import: most services have no stream, and need no memory for it. @throws StartupError */
export async function startLogStreams(
  { logStreams, streamFiles }: Pick<Configuration, 'logStreams' | 'streamFiles'>,
  { ledger, store, clock }: Pick<Vault, 'ledger' | 'store' | 'clock'>,
  warn: (line: string) => void,
  logError: ServiceLog['error'],
): Promise<readonly LogStream[]> {
  if (logStreams.length === 0) return [];
  const { startStreams } = await import('./streams/sinks.ts');
  return startStreams(logStreams, streamFiles, warn, (name) => ({
    openLog: () => store.openStreamLog(),
    newestSeq: () => ledger.memory.lastSeenEntry?.seq ?? 0,
    now: () => clock.now(),
    onFailure: (error) => logFailure(logError, `log stream ${name}`, error),
  }));
}

interface ApprovalWebhookParts {
  readonly events: ApprovalEvents;
  readonly now: () => number;
  readonly consoleUrl: () => string | null;
}

/** WHY a dynamic import: as for streams. Null without a webhook. @throws StartupError */
export async function startApprovalWebhook(
  { approvalWebhook }: Pick<Configuration, 'approvalWebhook'>,
  { events, now, consoleUrl }: ApprovalWebhookParts,
  warn: (line: string) => void,
  logError: ServiceLog['error'],
): Promise<ApprovalWebhook | null> {
  if (approvalWebhook === null) return null;
  const { ApprovalWebhook, toMessage } = await import('./approval-webhook.ts');
  const webhook = new ApprovalWebhook(approvalWebhook, now, logError, warn);
  events.onEvent = (event) => webhook.offer(toMessage(event, consoleUrl(), now()));
  return webhook;
}
