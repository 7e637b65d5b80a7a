/**
 * The broker's end of the socket that it shares with the server. Serves each brokered request from the message that
 * opens its stream to the final message.
 */
import type { Duplex, Readable } from 'node:stream';
import { isFullyMasked } from '../masking/plain-forms.ts';
import { drained } from '../platform/waiting.ts';
import { Channel } from './channel.ts';
import type { ChannelStream } from './channel-stream.ts';
import { Maskings } from './maskings.ts';
import type { BrokerHead, FinalMessage, HeaderPairs, UpstreamRequestSpec, UseResult } from './protocol.ts';
import { UpstreamError } from './protocol.ts';
import { Redactor } from './redaction.ts';
import { type TurnShare, Turns } from './turns.ts';
import { DEFAULT_TIMEOUTS, type Timeouts, UpstreamRequest, type UpstreamResponse } from './upstream.ts';
import { ConnectionPool, type Resolve } from './upstream-connections.ts';
import { decodeBody, headerText, rejectPartial, responseHeaders } from './upstream-response.ts';
import { redactedFrames } from './websocket.ts';

/**
 * Statuses of responses without a body, even if their headers describe one. SOURCE: RFC 9110, 6.4.1. WHY not 205: Node
 * reads a body after it, which must be decoded to be redacted.
 */
const BODILESS = new Set([204, 304]);
const FIRST_UNSUCCESSFUL_STATUS = 300;

export interface BrokerOptions {
  readonly timeouts?: Timeouts;
  readonly resolve?: Resolve;
}

/** Serves brokered requests until the socket closes; then ends them and calls `closed`. */
export function serveBroker(socket: Duplex, closed: () => void, options: BrokerOptions = {}): Channel {
  const pool = new ConnectionPool(options.resolve);
  const shared = { maskings: new Maskings(), turns: new Turns() };
  const context = { pool, ...shared, timeouts: options.timeouts ?? DEFAULT_TIMEOUTS };
  return new Channel(socket, {
    opened(stream, spec) {
      serveUse(stream, spec as UpstreamRequestSpec, context).catch(() => stream.destroy());
    },
    closed() {
      pool.close();
      context.maskings.clear();
      closed();
    },
  });
}

interface UseContext {
  readonly pool: ConnectionPool;
  readonly maskings: Maskings;
  readonly turns: Turns;
  readonly timeouts: Timeouts;
}

async function serveUse(stream: ChannelStream, spec: UpstreamRequestSpec, context: UseContext): Promise<void> {
  const { pool, maskings, turns, timeouts } = context;
  const share = turns.shareOf(spec.caller);
  let request: UpstreamRequest | null = null;
  try {
    // WHY: an upstream could repeat the value in a form that the redaction does not find.
    if (!isFullyMasked(spec.value)) throw new UpstreamError('value');
    request = new UpstreamRequest(spec, pool, timeouts);
    stream.on('close', () => request?.close());
    const hasBody = spec.isUpgrade || spec.bodyLength !== 0;
    const sending = request.send(hasBody ? stream : null).catch(() => request?.close());
    // The rest of the body is dropped, so that the stream ends.
    void sending.finally(() => stream.resume());
    const response = await request.response;
    // WHY: an upstream that echoes its input would otherwise answer one guess after another within one request. An
    // upstream that rejects the request reads no more of it.
    if (!spec.isUpgrade) {
      if (response.status >= FIRST_UNSUCCESSFUL_STATUS) request.stopSending();
      else await Promise.race([sending, request.closed]);
    }
    if (stream.destroyed) return;
    const redactor = new Redactor(await maskings.for(spec, share), whileOpen(stream, share));
    await answer(stream, spec, request, { ...response, redactor });
  } catch (error) {
    fail(stream, error, request?.bytesIn ?? 0);
  } finally {
    request?.close();
    if (request === null) stream.resume();
  }
}

/** The processor share for one stream. Waiting work fails if the stream has ended. */
function whileOpen(stream: ChannelStream, share: TurnShare): TurnShare {
  const proceed = (): void => {
    if (stream.destroyed) throw new Error('the stream has ended');
  };
  return { ...share, ready: () => share.ready()?.then(proceed) ?? null };
}

async function answer(
  stream: ChannelStream,
  spec: UpstreamRequestSpec,
  request: UpstreamRequest,
  response: UpstreamResponse & { readonly redactor: Redactor },
): Promise<void> {
  const { redactor, status } = response;
  rejectPartial(status, response.headers);
  const isHandshake = status === 101;
  const headers = await responseHeaders(response.headers, spec, isHandshake, redactor);
  const body = isHandshake ? response.body : decodedBody(spec, response);
  stream.sendHead({ kind: 'response', status, headers } satisfies BrokerHead);
  let [bytesOut, redactions] = [0, 0];
  let trailers: HeaderPairs = [];
  let ended: UseResult['ended'] = 'upstream';
  // Resets the stream of a client that has not read for the idle timeout.
  request.whenTimedOut(() => {
    if (stream.writableNeedDrain) stream.destroy();
  });
  const onChunk = (): void => request.touch();
  const redacted = isHandshake
    ? redactedFrames(body, (payload) => redactor.message(payload), onChunk)
    : redactor.body(body, headerText(response.headers, 'content-type'), onChunk);
  try {
    for await (const bytes of redacted) {
      if (stream.destroyed) return;
      if (redactor.count > redactions) {
        redactions = redactor.count;
        stream.sendRedactions(redactions);
      }
      bytesOut += bytes.length;
      if (bytes.length > 0 && !stream.write(bytes)) await drained(stream);
    }
    trailers = await responseHeaders(response.trailers(), spec, false, redactor);
    ended = 'complete';
    redactor.release();
  } catch {
    // The final message reports that the response broke off. Bytes that the redaction holds back are not sent, and
    // neither is an incomplete message of a WebSocket.
  }
  stream.endWith({
    result: { status, bytesIn: request.bytesIn, bytesOut, redactions: redactor.count, ended },
    trailers,
  } satisfies FinalMessage);
}

function decodedBody(spec: UpstreamRequestSpec, { status, headers, body }: UpstreamResponse): Readable {
  const isEmpty = spec.method === 'HEAD' || BODILESS.has(status);
  return isEmpty ? body : decodeBody(body, headerText(headers, 'content-encoding'));
}

function fail(stream: ChannelStream, error: unknown, bytesIn: number): void {
  const failure = error instanceof UpstreamError ? error.failure : 'protocol';
  stream.sendHead({ kind: 'error', failure } satisfies BrokerHead);
  stream.endWith({
    result: { status: null, bytesIn, bytesOut: 0, redactions: 0, ended: 'failed' },
    trailers: [],
  } satisfies FinalMessage);
}
