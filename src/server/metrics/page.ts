/**
 * The page of metrics in the text format of Prometheus. `prom-client` is loaded by the first scrape, because it takes
 * five MiB of memory; the counters are plain and need nothing of it.
 */
import type { Gauge, Registry } from 'prom-client';
import { METRICS } from './declarations.ts';
import type { Labels, Metric, MetricSources, ServiceSources, VaultSources } from './metric.ts';

/** A page is shared by the scrapes of this time, so that no client can keep the service busy with them. */
const PAGE_TTL_MS = 200;

interface Value {
  readonly labels: Labels;
  readonly value: number;
  readonly metricName?: string;
}

/** Returns null while the vault is locked. */
type FindVault = () => VaultSources | null;

/** The metrics that a locked vault has too. */
const OF_SERVICE = /^leasehold_(?:build_info|health_status|http_)/;

export class MetricsText {
  readonly #service: ServiceSources;
  readonly #findVault: FindVault;
  #registry: Promise<Registry> | null = null;
  #page: Promise<string> | null = null;
  #pageAt = 0;

  constructor(service: ServiceSources, findVault: FindVault) {
    this.#service = service;
    this.#findVault = findVault;
  }

  render(): Promise<string> {
    if (this.#page === null || performance.now() - this.#pageAt >= PAGE_TTL_MS) {
      this.#pageAt = performance.now();
      this.#registry ??= createRegistry(this.#service, this.#findVault);
      this.#page = this.#registry.then((registry) => registry.metrics());
    }
    return this.#page;
  }
}

async function createRegistry(service: ServiceSources, findVault: FindVault): Promise<Registry> {
  const { Registry, collectDefaultMetrics } = await import('prom-client');
  const registry = new Registry();
  for (const metric of METRICS) registry.registerMetric(toCollected(metric, service, findVault) as unknown as Gauge);
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** WHY not the library's classes: they count themselves, at twenty times the cost, and only gauges can be set. */
function toCollected(metric: Metric, service: ServiceSources, findVault: FindVault) {
  const { kind, name, help } = metric;
  const read = (): Value[] => {
    const vault = findVault();
    // A metric of the service reads nothing of the vault.
    return vault === null && !OF_SERVICE.test(name) ? [] : valuesOf(metric, { ...service, ...vault } as MetricSources);
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
