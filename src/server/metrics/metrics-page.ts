/**
 * The page of metrics in the text format of Prometheus. `prom-client` is loaded by the first scrape, because it takes 5
 * MiB of memory.
 */
import type { Gauge, Registry } from 'prom-client';
import { hashToken } from '../../crypto/tokens.ts';
import type { MetricsPage } from '../../http/route.ts';
import { readVersion } from '../../platform/installation.ts';
import type { Configuration } from '../configuration.ts';
import { isLoopback } from '../flag-values.ts';
import { readGivenToken } from '../server-files.ts';
import {
  type Labels,
  METRICS,
  type Metric,
  type MetricSources,
  type ServerSources,
  type VaultSources,
} from './metrics.ts';

/** `findVault` returns null while the vault is locked. @throws StartupError for an invalid token file */
export function metricsPage(
  configuration: Configuration,
  server: Omit<ServerSources, 'version'>,
  findVault: () => VaultSources | null,
  warn: (line: string) => void,
): MetricsPage {
  const { metricsTokenFile, listen, publicNames, trustedProxies } = configuration;
  const token = metricsTokenFile === null ? null : readGivenToken(metricsTokenFile, warn);
  let registry: Promise<Registry> | null = null;
  let page = Promise.resolve('');
  let renderedAt = Number.NEGATIVE_INFINITY;
  return {
    tokenHash: token === null ? null : hashToken(token.reveal()),
    // Each of these settings means that requests of other machines arrive, perhaps through a forwarder on this one.
    trustsLoopback: isLoopback(listen) && publicNames.length === 0 && trustedProxies.length === 0,
    render() {
      if (performance.now() - renderedAt < PAGE_TTL_MS) return page;
      renderedAt = performance.now();
      registry ??= createRegistry({ ...server, version: readVersion() }, findVault);
      page = registry.then((each) => each.metrics());
      return page;
    },
  };
}

/** Scrapes within this time share a page, so that no client can keep the server busy with them. */
const PAGE_TTL_MS = 200;

interface Value {
  readonly labels: Labels;
  readonly value: number;
  readonly metricName?: string;
}

/** The metrics that are also exported while the vault is locked. */
const OF_SERVER = /^leasehold_(?:build_info|health_status|http_)/;

async function createRegistry(server: ServerSources, findVault: () => VaultSources | null): Promise<Registry> {
  const { Registry, collectDefaultMetrics } = await import('prom-client');
  const registry = new Registry();
  for (const metric of METRICS) registry.registerMetric(toCollected(metric, server, findVault) as unknown as Gauge);
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** WHY not the library's classes: they keep their own counts, at twenty times the cost, and only gauges can be set. */
function toCollected(metric: Metric, server: ServerSources, findVault: () => VaultSources | null) {
  const { kind, name, help } = metric;
  const read = (): Value[] => {
    const vault = findVault();
    // A metric of the server reads no part of the vault.
    return vault === null && !OF_SERVER.test(name) ? [] : valuesOf(metric, { ...server, ...vault } as MetricSources);
  };
  return { name, help, type: kind, get: async () => ({ name, help, type: kind, values: read() }) };
}

function valuesOf(metric: Metric, sources: MetricSources): Value[] {
  if (metric.kind !== 'histogram') return metric.read(sources).map(([labels, value]) => ({ labels, value }));
  const { name } = metric;
  return metric.read(sources).flatMap(([labels, { bounds, cumulative, count, sum }]) => [
    ...bounds.map((bound, at) => ({
      labels: { ...labels, le: String(bound) },
      value: cumulative[at] ?? 0,
      metricName: `${name}_bucket`,
    })),
    { labels: { ...labels, le: '+Inf' }, value: count, metricName: `${name}_bucket` },
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  ]);
}
