/** The streams in the service's flags, checked before the service creates anything. */
import { UsageError } from '../../platform/errors.ts';
import { parseFilePath, parseHttpUrl, parseUrl, splitScheme } from '../receiver-address.ts';

export interface StreamOption {
  /** Labels metrics, and names the position: another address under the same name continues there. */
  readonly name: string;
  readonly sink:
    | { readonly kind: 'file'; readonly path: string }
    | { readonly kind: 'syslog'; readonly host: string; readonly port: number; readonly isTls: boolean }
    | { readonly kind: 'webhook' | 'otlp'; readonly url: URL };
}

/** Files that all streams share; null without one. */
export interface StreamFiles {
  /** The secret with which webhooks are signed. */
  readonly secretFile: string | null;
  /** The bearer token for webhooks and OTLP. */
  readonly tokenFile: string | null;
  /** Authorities for TLS, in PEM. */
  readonly caFile: string | null;
}

const NAMED = /^([a-z][a-z0-9-]{0,31})=(.+)$/;
const [SYSLOG_PORT, SYSLOG_TLS_PORT] = [601, 6514];
const FLAG = {
  name: '--log-stream',
  forms: 'file:/PATH, syslog+tcp://HOST, syslog+tls://HOST, webhook+https://… or otlp+https://…',
};

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
    case 'syslog+tcp':
    case 'syslog+tls':
      return parseSyslog(text, scheme === 'syslog+tls');
    case 'webhook+https':
    case 'webhook+http':
      return { kind: 'webhook', url: parseHttpUrl(FLAG, text.slice('webhook+'.length)) };
    case 'otlp+https':
    case 'otlp+http':
      return { kind: 'otlp', url: parseHttpUrl(FLAG, text.slice('otlp+'.length)) };
    default:
      throw new UsageError(`--log-stream must be ${FLAG.forms}; several are separated by commas.`);
  }
}

function parseSyslog(text: string, isTls: boolean): StreamOption['sink'] {
  const { hostname, port, pathname, username, search } = parseUrl(FLAG, text);
  if (hostname === '' || pathname.length > 1 || username !== '' || search !== '')
    throw new UsageError('--log-stream: a syslog address has a host and a port only.');
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return { kind: 'syslog', host, port: port === '' ? (isTls ? SYSLOG_TLS_PORT : SYSLOG_PORT) : Number(port), isTls };
}
