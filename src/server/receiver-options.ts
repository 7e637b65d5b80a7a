/**
 * The servers that flags name: receivers of log streams and of the webhook for approvals, and an OpenID Connect
 * provider. They are checked before the server creates anything. Messages never repeat a URL.
 */
import { UsageError } from '../platform/errors.ts';
import { isLoopbackHost } from './hosts.ts';

export interface StreamOption {
  /** The label in metrics, and the name of the saved position. Another receiver under the same name continues there. */
  readonly name: string;
  readonly sink: { readonly kind: 'file'; readonly path: string } | { readonly kind: 'webhook'; readonly url: URL };
}

/** Files that all streams share; null without one. */
export interface StreamFiles {
  readonly secretFile: string | null;
  readonly tokenFile: string | null;
  readonly caFile: string | null;
}

export interface ApprovalWebhookOption {
  readonly url: URL;
  readonly secretFile: string;
}

interface UrlFlag {
  readonly name: string;
  /** The flag of the token's file; null for a receiver without a token. */
  readonly tokenFlag: string | null;
  readonly forms: string;
}

const NAMED = /^([a-z][a-z0-9-]{0,31})=(.+)$/;
const STREAM = {
  name: '--log-stream',
  tokenFlag: '--log-stream-token-file',
  forms: 'file:/PATH or webhook+https://…',
};
const APPROVALS = { name: '--approval-webhook', tokenFlag: null, forms: 'https://HOST/PATH' };

/** Each of `items` is `[NAME=]URL`. @throws UsageError */
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
  const [, scheme, rest = ''] = /^([a-z+]+):(.*)$/.exec(text) ?? [];
  switch (scheme) {
    case 'file':
      if (!rest.startsWith('/')) throw new UsageError('--log-stream: file: needs an absolute path.');
      return { kind: 'file', path: rest.replace(/^\/\/(?=\/)/, '') };
    case 'webhook+https':
    case 'webhook+http':
      return { kind: 'webhook', url: parseHttpUrl(STREAM, text.slice('webhook+'.length)) };
    default:
      throw new UsageError(`--log-stream must be ${STREAM.forms}; several are separated by commas.`);
  }
}

/** Null without a webhook. @throws UsageError */
export function parseApprovalWebhook(
  text: string | undefined,
  secretFile: string | null,
): ApprovalWebhookOption | null {
  if (text === undefined && secretFile === null) return null;
  if (text === undefined || secretFile === null)
    throw new UsageError('--approval-webhook and --approval-webhook-secret-file go together.');
  return { url: parseHttpUrl(APPROVALS, text), secretFile };
}

/** The URL must use TLS unless the receiver is on this machine. @throws UsageError */
function parseHttpUrl({ name, tokenFlag, forms }: UrlFlag, text: string): URL {
  const url = URL.parse(text);
  if (url === null) throw new UsageError(`${name} must be ${forms}.`);
  if (url.username !== '' || url.password !== '') {
    const where = tokenFlag === null ? '' : ` in ${tokenFlag},`;
    throw new UsageError(`${name}: give credentials${where} not in the address.`);
  }
  if (url.protocol !== 'https:' && !isLoopbackHost(url.hostname))
    throw new UsageError(`${name}: use https; http is for receivers on this machine only.`);
  return url;
}

export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  /** Null for a public client. */
  readonly secretFile: string | null;
  /** The provider's host, which the console shows. */
  readonly label: string;
}

interface GivenFlags {
  readonly issuer: string | undefined;
  readonly clientId: string | undefined;
  readonly secretFile: string | null;
}

const CLIENT_ID = /^[\x21-\x7e]{1,255}$/;

/** Null without a provider. @throws UsageError */
export function parseOidc({ issuer, clientId, secretFile }: GivenFlags): OidcSettings | null {
  if (issuer === undefined) {
    if (clientId === undefined && secretFile === null) return null;
    throw new UsageError('--oidc-client-id and --oidc-client-secret-file need --oidc-issuer.');
  }
  const url = URL.parse(issuer);
  const isPrivate = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  if (url === null || !isPrivate || url.search !== '' || url.hash !== '' || url.username !== '')
    throw new UsageError('--oidc-issuer must be https://HOST or https://HOST/PATH; http:// only for this machine.');
  if (clientId === undefined || !CLIENT_ID.test(clientId))
    throw new UsageError('--oidc-issuer needs --oidc-client-id, 1 to 255 visible ASCII characters.');
  return { issuer, clientId, secretFile, label: url.host };
}
