/** The streams in the service's flags, checked before the service creates anything. */
import { UsageError } from '../../platform/errors.ts';
import { parseFilePath, parseHttpUrl, splitScheme } from '../receiver-address.ts';

export interface StreamOption {
  /** Labels metrics, and names the position: another address under the same name continues there. */
  readonly name: string;
  readonly sink: { readonly kind: 'file'; readonly path: string } | { readonly kind: 'webhook'; readonly url: URL };
}

/** Files that all streams share; null without one. */
export interface StreamFiles {
  /** The secret with which webhooks are signed. */
  readonly secretFile: string | null;
  /** The bearer token for webhooks. */
  readonly tokenFile: string | null;
  /** Authorities for TLS, in PEM. */
  readonly caFile: string | null;
}

const NAMED = /^([a-z][a-z0-9-]{0,31})=(.+)$/;
const FLAG = { name: '--log-stream', forms: 'file:/PATH or webhook+https://…' };

/** `items`: each `[NAME=]URL`. @throws UsageError */
export function parseStreams(items: readonly string[], { secretFile }: StreamFiles): StreamOption[] {
  const streams = items.map((item): StreamOption => {
    const [, name, text] = NAMED.exec(item) ?? [null, null, item];
    const sink = parseSink(text ?? '');
    return { name: name ?? sink.kind, sink };
  });
  const names = streams.map(({ name }) => name);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined)
    throw new UsageError(`--log-stream has two streams named ${repeated}. Name them, as in archive=file:/PATH.`);
  if (secretFile === null && streams.some(({ sink }) => sink.kind === 'webhook'))
    throw new UsageError('--log-stream with a webhook needs --log-stream-secret-file.');
  return streams;
}

function parseSink(text: string): StreamOption['sink'] {
  const [scheme, rest] = splitScheme(text);
  switch (scheme) {
    case 'file':
      return { kind: 'file', path: parseFilePath(FLAG, rest) };
    case 'webhook+https':
    case 'webhook+http':
      return { kind: 'webhook', url: parseHttpUrl(FLAG, text.slice('webhook+'.length)) };
    default:
      throw new UsageError(`--log-stream must be ${FLAG.forms}; several are separated by commas.`);
  }
}
