/** Rows of the route table: metrics and probes. SOURCE: docs/monitoring.md. */
import { Health } from '../../api/responses.ts';
import { publicRoute, type Route } from '../route.ts';

/** SOURCE: prometheus.io/docs/instrumenting/exposition_formats. */
const TEXT_FORMAT = 'text/plain; version=0.0.4; charset=utf-8';

export const monitoringRoutes: readonly Route[] = [
  publicRoute({
    id: 'readMetrics',
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics for Prometheus: with the metrics token, or without one for clients on the same machine.',
    data: null,
    content: { mediaType: 'text/plain', description: 'The text format 0.0.4 of Prometheus.' },
    isAlwaysServed: true,
    async handle({ scrape }) {
      return { bytes: Buffer.from(await scrape()), type: TEXT_FORMAT };
    },
  }),
  publicRoute({
    id: 'readLiveness',
    method: 'GET',
    path: '/livez',
    summary: 'Whether the process works; 503 if its storage failed, so that only a restart helps.',
    data: Health,
    failureStatus: 503,
    isAlwaysServed: true,
    async handle({ vault }) {
      const hasFailed = vault.access.hasFailed();
      return { data: { status: hasFailed ? 'failing' : 'ok' }, hasFailed };
    },
  }),
  publicRoute({
    id: 'readReadiness',
    method: 'GET',
    path: '/readyz',
    summary: 'Whether requests should be sent to this node; 503 while it starts, stops, is locked or cannot commit.',
    data: Health,
    failureStatus: 503,
    isAlwaysServed: true,
    async handle({ status }) {
      return { data: { status }, hasFailed: status !== 'ok' };
    },
  }),
];
