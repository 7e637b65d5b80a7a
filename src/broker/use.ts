/** Serves one use in the broker's process: from the order that opened its stream to the final message. */
import type { Readable } from 'node:stream';
import { isFullyMasked } from '../masking/encodings.ts';
import type { ChannelStream } from './channel-stream.ts';
import type { ConnectionPool } from './connections.ts';
import { decodeBody } from './decoding.ts';
import type { Maskings } from './maskings.ts';
import type { BrokerHead, FinalMessage, HeaderPairs, Order, UseResult } from './protocol.ts';
import { Redactor } from './redaction.ts';
import { headerText, rejectPartial, responseHeaders } from './response-headers.ts';
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
export async function serveUse(stream: ChannelStream, order: Order, context: UseContext): Promise<void> {
  const { pool, maskings, timeouts } = context;
  let request: UpstreamRequest | null = null;
  try {
    // WHY: an upstream could repeat it in a form that the redaction does not find.
    if (!isFullyMasked(order.value)) throw new UpstreamError('protocol');
    request = new UpstreamRequest(order, pool, timeouts);
    stream.on('close', () => request?.close());
    const hasBody = order.isUpgrade || order.bodyLength !== 0;
    const sending = request.send(hasBody ? stream : null).catch(() => request?.close());
    // What is not sent is dropped, so that the stream ends.
    void sending.finally(() => stream.resume());
    const response = await request.response;
    const redactor = new Redactor(maskings.for(order));
    await answer(stream, order, request, { ...response, redactor });
  } catch (error) {
    fail(stream, error, request?.bytesIn ?? 0);
  } finally {
    request?.close();
    if (request === null) stream.resume();
  }
}

async function answer(
  stream: ChannelStream,
  order: Order,
  request: UpstreamRequest,
  response: UpstreamResponse & { readonly redactor: Redactor },
): Promise<void> {
  const { redactor } = response;
  rejectPartial(response.status, response.headers);
  const isHandshake = response.status === 101;
  const body = isHandshake ? response.body : decodedBody(order, response);
  redactor.setContentType(headerText(response.headers, 'content-type'));
  const headers = responseHeaders(response.headers, order, isHandshake, redactor);
  const { status } = response;
  stream.sendHead({ kind: 'response', status, headers } satisfies BrokerHead);
  let [bytesOut, redactions] = [0, 0];
  let trailers: HeaderPairs = [];
  let ended: UseResult['ended'] = 'upstream';
  const write = async (bytes: Uint8Array): Promise<void> => {
    if (redactor.count > redactions) {
      redactions = redactor.count;
      stream.sendRedactions(redactions);
    }
    if (bytes.length === 0) return;
    bytesOut += bytes.length;
    if (!stream.write(bytes)) await drained(stream);
  };
  // A caller that does not read for as long as an upstream may pause: nothing more can be sent to it.
  request.whenTimedOut(() => {
    if (stream.writableNeedDrain) stream.destroy();
  });
  try {
    for await (const chunk of body) {
      if (stream.destroyed) return;
      if (!(chunk instanceof Uint8Array)) continue;
      request.touch();
      await write(isHandshake ? redactor.unchanged(chunk) : redactor.write(chunk));
    }
    if (!isHandshake) await write(redactor.end());
    trailers = responseHeaders(response.trailers(), order, false, redactor);
    ended = 'complete';
  } catch {
    // The final message says that the response broke off. What the redaction holds back is not sent, and neither is a
    // message of a WebSocket with a value.
  }
  stream.endWith({
    result: { status, bytesIn: request.bytesIn, bytesOut, redactions: redactor.count, ended },
    trailers,
  } satisfies FinalMessage);
}

function decodedBody(order: Order, { status, headers, body }: UpstreamResponse): Readable {
  const isEmpty = order.method === 'HEAD' || BODILESS.has(status);
  return isEmpty ? body : decodeBody(body, headerText(headers, 'content-encoding'));
}

/** Sends the class of a failure. */
function fail(stream: ChannelStream, error: unknown, bytesIn: number): void {
  const failure = error instanceof UpstreamError ? error.failure : 'protocol';
  stream.sendHead({ kind: 'error', failure } satisfies BrokerHead);
  stream.endWith({
    result: { status: null, bytesIn, bytesOut: 0, redactions: 0, ended: 'failed' },
    trailers: [],
  } satisfies FinalMessage);
}
