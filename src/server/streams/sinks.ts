/** The sinks of log streams: a file, or a webhook. Loaded only if there are streams. */

import { hasCertificates } from '../../crypto/primitives.ts';
import { errnoSuffix, StartupError } from '../../platform/errors.ts';
import { assertLineFile, LineFile } from '../../platform/line-file.ts';
import type { AuditEntry } from '../../vault/audit/audit-entry.ts';
import type { StreamFiles, StreamOption } from '../receiver-options.ts';
import {
  failureOf,
  ReceiverError,
  readBearerToken,
  readTrimmed,
  readWebhookKey,
  WebhookClient,
  type WebhookTarget,
} from '../webhook-client.ts';
import { LogStream, type Sink, type StreamParts } from './log-stream.ts';

/** Reads the files of the options at each startup. @throws StartupError */
export function startStreams(
  options: readonly StreamOption[],
  { secretFile, tokenFile, caFile }: StreamFiles,
  warn: (line: string) => void,
  partsOf: (name: string) => Omit<StreamParts, 'name' | 'openSink'>,
): readonly LogStream[] {
  const key = secretFile === null ? null : readWebhookKey(secretFile, warn);
  const token = tokenFile === null ? null : readBearerToken(tokenFile, warn);
  const ca = caFile === null ? null : readAuthorities(caFile);
  for (const { sink } of options) if (sink.kind === 'file') assertLineFile(sink.path);
  const openSink = (sink: StreamOption['sink']): Sink => {
    if (sink.kind === 'file') return fileSink(sink.path);
    if (key === null) throw new Error('a webhook has no secret');
    return webhookSink({ url: sink.url, key, token, ca });
  };
  return options.map(({ name, sink }) => new LogStream({ ...partsOf(name), name, openSink: () => openSink(sink) }));
}

/** @throws StartupError */
function readAuthorities(file: string): string {
  const pem = readTrimmed(file);
  if (hasCertificates(pem)) return pem;
  throw new StartupError(`${file} must contain certificates in PEM.`);
}

/** Appends entries, one JSON object on each line, and syncs them before they count as sent. */
function fileSink(path: string): Sink {
  const file = new LineFile(path);
  return {
    async send(entries) {
      try {
        await file.append(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
      } catch (error) {
        throw new ReceiverError(`${path} could not be written${errnoSuffix(error)}`);
      }
    },
    close: () => file.close(),
  };
}

/**
 * Posts pages of entries. A repeated page with the same entries has the same id, so that a receiver can drop it.
 * Entries always contain an `hmac`.
 */
function webhookSink(target: WebhookTarget): Sink {
  const client = new WebhookClient(target);
  return {
    async send(entries, signal) {
      const sentAt = Date.now();
      const timestamp = new Date(sentAt).toISOString();
      const body = JSON.stringify({ type: 'audit.entries', timestamp, data: { entries } });
      const failure = failureOf(await client.send({ id: idOf(entries), body, sentAt }, signal));
      if (failure !== null) throw failure;
    },
    close: async () => undefined,
  };
}

/** WHY the MAC: after a restored backup or an accepted rollback, other entries have the same sequence numbers. */
function idOf(entries: readonly AuditEntry[]): string {
  const [first, last] = [entries[0], entries.at(-1)];
  return `audit-${first?.seq ?? 0}-${last?.seq ?? 0}-${last?.hmac ?? ''}`;
}
