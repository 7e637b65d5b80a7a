/** Serves one use in the broker's process: from the order on its stream to the result in the trailers. */
import type { ServerHttp2Stream } from 'node:http2';
import type { Readable } from 'node:stream';
import { isFullyMasked } from '../masking/encodings.ts';
import type { ConnectionPool } from './connections.ts';
import { decodeBody } from './decoding.ts';
import type { Maskings } from './maskings.ts';
import { encodeFrame, encodeResult, type HeaderPairs, type Order, readFrame, type UseResult } from './protocol.ts';
import { Redactor } from './redaction.ts';
import { headerText, responseHeaders } from './response-headers.ts';
import { drained, type Timeouts, UpstreamRequest, type UpstreamResponse } from './upstream.ts';
import { UpstreamError } from './upstream-error.ts';

/**
 * Responses without a body, whatever their headers say of one. SOURCE: RFC 9110, 6.4.1. WHY not 205: Node reads a body
 * after it, which must be decoded to be redacted.
 */
const BODILESS = new Set([204, 304]);

/** What all uses share. */
export interface UseContext {
  readonly pool: ConnectionPool;
  readonly maskings: Maskings;
  readonly timeouts: Timeouts;
}

/** Never rejects. A reset of the stream ends the request to the upstream. */
export async function serveUse(stream: ServerHttp2Stream, { pool, maskings, timeouts }: UseContext): Promise<void> {
  stream.on('error', () => undefined);
  let request: UpstreamRequest | null = null;
  try {
    // INVARIANT: only the service writes to this socket, and it is checked by the same types.
    const order = (await readFrame(stream)) as Order;
    // WHY: an upstream could repeat it in a form that the redaction does not find.
    if (!isFullyMasked(order.value)) throw new UpstreamError('protocol');
    request = new UpstreamRequest(order, pool, timeouts);
    stream.on('close', () => request?.close());
    if (stream.destroyed) return;
    request.send(stream).catch(() => request?.close());
    const response = await request.response;
    const redactor = new Redactor(maskings.for(order));
    await answer(stream, order, request, { ...response, redactor });
  } catch (error) {
    fail(stream, error, request?.bytesIn ?? 0);
  } finally {
    request?.close();
  }
}

async function answer(
  stream: ServerHttp2Stream,
  order: Order,
  request: UpstreamRequest,
  response: UpstreamResponse & { readonly redactor: Redactor },
): Promise<void> {
  const { redactor } = response;
  const isHandshake = response.status === 101;
  const body = isHandshake ? response.body : decodedBody(order, response);
  redactor.setContentType(headerText(response.headers, 'content-type'));
  const headers = responseHeaders(response.headers, order, isHandshake, redactor);
  const sent = { bytesOut: 0, trailers: [] as HeaderPairs, ended: 'upstream' as UseResult['ended'] };
  startResponse(stream, () => {
    const { bytesOut, ended, trailers } = sent;
    const { status } = response;
    return encodeResult({ status, bytesIn: request.bytesIn, bytesOut, redactions: redactor.count, ended }, trailers);
  });
  stream.write(encodeFrame({ kind: 'response', status: response.status, headers }));
  const write = async (bytes: Uint8Array): Promise<void> => {
    if (bytes.length === 0) return;
    sent.bytesOut += bytes.length;
    if (!stream.write(bytes)) await drained(stream);
  };
  try {
    for await (const chunk of chunksOf(body)) {
      if (stream.destroyed) return;
      request.touch();
      // WHY not after a handshake: a message of a WebSocket has a length and may be compressed. Only the head of the
      // handshake is redacted.
      await write(isHandshake ? chunk : redactor.write(chunk));
    }
    if (!isHandshake) await write(redactor.end());
    sent.trailers = responseHeaders(response.trailers(), order, false, redactor);
    sent.ended = 'complete';
  } catch {
    // The trailers say that the response broke off. What the redaction holds back is not sent.
  }
  stream.end();
}

async function* chunksOf(body: Readable): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) if (chunk instanceof Uint8Array) yield chunk;
}

function decodedBody(order: Order, { status, headers, body }: UpstreamResponse): Readable {
  const isEmpty = order.method === 'HEAD' || BODILESS.has(status);
  return isEmpty ? body : decodeBody(body, headerText(headers, 'content-encoding'));
}

function startResponse(stream: ServerHttp2Stream, trailers: () => Record<string, string>): void {
  stream.on('wantTrailers', () => stream.sendTrailers(trailers()));
  stream.respond({ ':status': 200 }, { waitForTrailers: true });
}

/** Sends the class of a failure, if nothing was sent yet. */
function fail(stream: ServerHttp2Stream, error: unknown, bytesIn: number): void {
  if (stream.destroyed || stream.closed) return;
  if (stream.headersSent) {
    stream.destroy();
    return;
  }
  const failure = error instanceof UpstreamError ? error.failure : 'protocol';
  startResponse(stream, () => encodeResult({ status: null, bytesIn, bytesOut: 0, redactions: 0, ended: 'failed' }, []));
  stream.end(encodeFrame({ kind: 'error', failure }));
}
