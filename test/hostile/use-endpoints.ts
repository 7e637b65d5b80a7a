/**
 * The two endpoints through which an agent uses a credential, for tests that try the same at both: one call at
 * `POST /api/v1/use`, and a request to the base URL, whose bytes are sent as they are given.
 */
import { sendRaw } from '../kit/raw.ts';

/** What an agent tries, as the fields of one call. Others than these exist only there. */
export interface ReceivedRequest {
  readonly path: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

export interface EndpointResponse {
  /** The status of the upstream if it answered; otherwise the status of the server. */
  readonly status: number;
  readonly head: string;
  /** Whether the upstream's response was passed on. */
  readonly isUpstream: boolean;
  /** Whether the body did not break off. */
  readonly isComplete: boolean;
  /** Everything that was received. */
  readonly bytes: Buffer;
  /** The body without its framing. */
  readonly body: Buffer;
}

/** The server, and who calls it. `token` null: without one. */
export interface Caller {
  readonly address: string;
  readonly token: string | null;
}

const HEAD_END = '\r\n\r\n';
const CONTINUE = `HTTP/1.1 100 Continue${HEAD_END}`;

/** Sends the call as a request to the base URL. `origin` is that of the credential's target. */
export async function sendByBaseUrl(
  caller: Caller,
  call: ReceivedRequest,
  origin: string,
  variant = 0,
): Promise<EndpointResponse> {
  const { bytes } = await sendRaw(caller.address, toRequest(caller, call, origin, variant));
  const start = bytes.indexOf(CONTINUE) === 0 ? CONTINUE.length : 0;
  const end = bytes.indexOf(HEAD_END, start);
  const head = bytes.toString('latin1', start, end === -1 ? bytes.length : end);
  const isUpstream = /^x-leasehold-lease:/im.test(head) && !/^x-leasehold-error:/im.test(head);
  const rest = bytes.subarray(end === -1 ? bytes.length : end + HEAD_END.length);
  const isChunked = /^transfer-encoding: chunked/im.test(head);
  const { body, isComplete } = isChunked ? withoutChunks(rest) : { body: rest, isComplete: true };
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
  return { status, head, isUpstream, isComplete, bytes, body };
}

function toRequest({ token }: Caller, call: ReceivedRequest, origin: string, variant: number): Buffer {
  const names = Object.keys(call.headers).map((name) => name.toLowerCase());
  const { target, host } = addressOf(call, origin, variant);
  const isFramed = names.includes('content-length') || names.includes('transfer-encoding');
  const { body = '' } = call;
  const lines = [
    `${call.method} ${target} HTTP/1.1`,
    // An agent that names another host sends it instead of the server's own, or in addition.
    ...(names.includes('host') && variant % 2 === 0 ? [] : [`Host: ${host}`]),
    ...(token === null ? [] : [`Authorization: Bearer ${token}`]),
    ...Object.entries(call.headers).map(([name, value]) => `${name}: ${value}`),
    ...(isFramed || call.body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
    'Connection: close',
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}

/**
 * The request's target. A base URL names no host: a URL of another origin is written in the places where a server could
 * take it for one.
 */
function addressOf({ path, url }: ReceivedRequest, origin: string, variant: number): { target: string; host: string } {
  const base = `/use/${path}/-`;
  if (url.startsWith(origin) && /^(?:[/?#]|$)/.test(url.slice(origin.length)))
    return { target: `${base}${url.slice(origin.length)}`, host: 'localhost' };
  const [, rest = url] = /^[a-z]*:?[/\\]*(.*)$/is.exec(url) ?? [];
  const [authority = ''] = rest.split(/[/\\?#]/, 1);
  const places = [
    { target: url, host: 'localhost' },
    { target: `${base}/${url}`, host: 'localhost' },
    { target: `${base}//${rest}`, host: 'localhost' },
    { target: `${base}@${rest}`, host: 'localhost' },
    { target: `${base}/v1/../../${rest}`, host: 'localhost' },
    { target: `${base}\\@${rest}`, host: 'localhost' },
    { target: `//${rest}${base}/v1/a`, host: 'localhost' },
    // These can be requests to the target itself.
    { target: `${base}/v1/a`, host: authority },
    { target: `${base}/v1/${rest}`, host: 'localhost' },
  ];
  return places[variant % places.length] ?? { target: url, host: 'localhost' };
}

/** The body of a chunked message, as far as it was received. */
export function withoutChunks(bytes: Buffer): { readonly body: Buffer; readonly isComplete: boolean } {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const start = bytes.indexOf('\r\n', at) + 2;
    const length = Number.parseInt(bytes.toString('latin1', at, start), 16);
    if (start === 1 || !(length > 0)) return { body: Buffer.concat(chunks), isComplete: length === 0 };
    chunks.push(bytes.subarray(start, start + length));
    at = start + length + 2;
  }
}
