/** Starts the configured streams. Loaded only if there are any. */
import { parseWebhookSecret } from '../../crypto/webhook-signature.ts';
import { StartupError } from '../../platform/errors.ts';
import { warnIfReadableByOthers } from '../../platform/private-files.ts';
import { readBearerToken, readTrimmed } from '../receiver-secrets.ts';
import { FileSink } from './file-sink.ts';
import type { Sink } from './sink.ts';
import { LogStream, type StreamParts } from './stream.ts';
import type { StreamFiles, StreamOption } from './stream-options.ts';
import { WebhookSink } from './webhook-sink.ts';

/** The contents of the files. */
interface Secrets {
  readonly key: Uint8Array | null;
  readonly token: string | null;
  readonly ca: string | null;
}

/** Reads the files at each start. @throws StartupError */
export function startStreams(
  options: readonly StreamOption[],
  files: StreamFiles,
  warn: (line: string) => void,
  partsOf: (name: string) => Omit<StreamParts, 'name' | 'openSink'>,
): readonly LogStream[] {
  const secrets = readSecrets(files, warn);
  return options.map(({ name, sink }) => {
    return new LogStream({ ...partsOf(name), name, openSink: () => openSink(sink, secrets) });
  });
}

function openSink(sink: StreamOption['sink'], { key, token, ca }: Secrets): Sink {
  switch (sink.kind) {
    case 'file':
      return new FileSink(sink.path);
    case 'webhook':
      if (key === null) throw new Error('a webhook has no secret');
      return new WebhookSink({ url: sink.url, token, ca, key });
  }
}

function readSecrets({ secretFile, tokenFile, caFile }: StreamFiles, warn: (line: string) => void): Secrets {
  const secret = secretFile === null ? null : readTrimmed(secretFile);
  const key = secret === null ? null : parseWebhookSecret(secret);
  if (secret !== null && key === null)
    throw new StartupError(`${secretFile} must contain whsec_ and 24 to 64 bytes as base64.`);
  if (secretFile !== null) warnIfReadableByOthers(secretFile, warn);
  const token = tokenFile === null ? null : readBearerToken(tokenFile, warn);
  return { key, token, ca: caFile === null ? null : readTrimmed(caFile) };
}
