/** Rows of the route table: the server itself, its metrics and probes, and its backup. SOURCE: docs/monitoring.md. */
import { Health } from '../../api/responses.ts';
import { takeBackup } from '../../vault/backup/backup.ts';
import { openApiDocument } from '../openapi.ts';
import { publicRoute, type Route, type RouteGroup, route } from '../route.ts';

const PROOF_HEADER = 'leasehold-proof';

/** `groups` returns the whole table, which includes these rows. */
export function aboutRoutes(groups: () => readonly RouteGroup[]): readonly Route[] {
  let document: Uint8Array | null = null;
  return [
    publicRoute({
      id: 'readHealth',
      method: 'GET',
      path: '/api/v1/health',
      summary: 'Whether the server is ready; 503 while it is not.',
      data: Health,
      failureStatus: 503,
      isAlwaysServed: true,
      async handle({ status, prove }) {
        const proof = prove();
        const headers = proof === null ? {} : { [PROOF_HEADER]: proof };
        return { data: { status }, hasFailed: status !== 'ok', headers };
      },
    }),
    publicRoute({
      id: 'readOpenApiDocument',
      method: 'GET',
      path: '/openapi.json',
      summary: 'This document.',
      content: { mediaType: 'application/json', description: 'The OpenAPI document.' },
      async handle() {
        document ??= Buffer.from(JSON.stringify(openApiDocument(groups()), null, 2));
        return { bytes: document, type: 'application/json; charset=utf-8' };
      },
    }),
  ];
}

const MEDIA_TYPE = 'application/x-ndjson';

export const backupRoutes: readonly Route[] = [
  route({
    id: 'takeBackup',
    method: 'POST',
    path: '/api/v1/backup',
    summary: 'Copy the vault as of one moment, for a backup. Values and private keys stay encrypted.',
    permission: 'service.backup',
    content: { mediaType: MEDIA_TYPE, description: 'The records of a backup, one JSON object per line.' },
    async handle({ vault, context, disconnectSignal }) {
      // A large database takes long to copy before the first byte.
      disconnectSignal();
      return { stream: await takeBackup(vault, context), type: MEDIA_TYPE };
    },
  }),
];

/** SOURCE: prometheus.io/docs/instrumenting/exposition_formats. */
const TEXT_FORMAT = 'text/plain; version=0.0.4; charset=utf-8';

export const monitoringRoutes: readonly Route[] = [
  publicRoute({
    id: 'readMetrics',
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics for Prometheus: with the metrics token, or without one for clients on the same machine.',
    content: { mediaType: 'text/plain', description: 'The text format 0.0.4 of Prometheus.' },
    isAlwaysServed: true,
    handle: async ({ scrape }) => ({ bytes: Buffer.from(await scrape()), type: TEXT_FORMAT }),
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
    handle: async ({ status }) => ({ data: { status }, hasFailed: status !== 'ok' }),
  }),
];
