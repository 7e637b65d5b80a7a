/**
 * Makes one request to an upstream and returns its response as a stream. Every phase has a time limit, and every error
 * becomes a class. Redirects are returned, never followed.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Duplex, Readable, Writable } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { errnoSuffix } from '../platform/errors.ts';
import { http } from '../platform/node-http.ts';
import { drained } from '../platform/waiting.ts';
import { buildRequest } from './injection.ts';
import {
  type FailureClass,
  groupHeaders,
  type HeaderPairs,
  UpstreamError,
  type UpstreamRequestSpec,
} from './protocol.ts';
import type { ConnectionPool } from './upstream-connections.ts';

export interface Timeouts {
  readonly connectMs: number;
  /** The time from the last byte of the request's body that was sent to the response's head. */
  readonly headMs: number;
  /** The time between two chunks of a body, in either direction. */
  readonly idleMs: number;
}

/** WHY ten minutes to the head: that is how long SDKs of model APIs wait for a response that is not streamed. */
export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 10_000, headMs: 600_000, idleMs: 300_000 };

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: HeaderPairs;
  readonly body: Readable;
  trailers(): HeaderPairs;
}

const MAX_HEAD_BYTES = 64 * 1024;
/**
 * More headers or trailers in one response are an error. WHY: Node drops headers beyond its own limit. No check would
 * see them, such as a coding in which a value would not be found.
 */
const MAX_HEADERS = 1000;
/** Interim responses to one request. WHY: nothing slows their sender down, and parsing them delays other requests. */
const MAX_INTERIM_RESPONSES = 100;
/**
 * All heads before a response together. WHY a limit: the parser skips empty lines before a response without a limit.
 */
const MAX_BYTES_BEFORE_RESPONSE = 256 * 1024;
/** How long a head waits for the start of the body, with which it shares a packet. */
const HEAD_DELAY_MS = 20;

export class UpstreamRequest {
  readonly #spec: UpstreamRequestSpec;
  readonly #timeouts: Timeouts;
  readonly #request: ClientRequest;
  readonly #response = Promise.withResolvers<UpstreamResponse>();
  #phase: Phase = 'connect';
  #timer: NodeJS.Timeout;
  #upgraded: Duplex | null = null;
  #bytesIn = 0;
  #isAnswered = false;
  #isStopped = false;
  #failure: UpstreamError | null = null;
  readonly #stopped = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  #timedOut: () => void = () => undefined;

  constructor(spec: UpstreamRequestSpec, pool: ConnectionPool, timeouts: Timeouts) {
    this.#spec = spec;
    this.#timeouts = timeouts;
    const { path, headers } = buildRequest(spec);
    const { agent, host, servername } = pool.connectorFor(spec);
    const options = { agent, host, port: spec.port, method: spec.method, path, setHost: false };
    const limits = { maxHeaderSize: MAX_HEAD_BYTES, insecureHTTPParser: false };
    const named = { headers: groupHeaders(headers) };
    this.#request =
      spec.scheme === 'https'
        ? https.request({ ...options, ...limits, ...named, servername })
        : http.request({ ...options, ...limits, ...named });
    this.#request.maxHeadersCount = MAX_HEADERS + 1;
    this.#timer = this.#startTimer(timeouts.connectMs);
    this.#response.promise.catch(() => undefined);
    this.#closed.promise.catch(() => undefined);
    this.#listen(this.#request);
    if (spec.isUpgrade) this.#request.end();
  }

  get bytesIn(): number {
    return this.#bytesIn;
  }

  get response(): Promise<UpstreamResponse> {
    return this.#response.promise;
  }

  /** Resolves when nothing more is sent or received; rejects with UpstreamError if a time limit passed. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** The callback runs before the request fails. */
  whenTimedOut(callback: () => void): void {
    this.#timedOut = callback;
  }

  touch(): void {
    this.#timer.refresh();
  }

  /**
   * Sends the body at the upstream's speed; null for no body. For an upgrade, sends the client's data after the
   * handshake. Returns when everything was sent or the request is closed. The rest of the body then stays unread.
   */
  async send(body: Readable | null): Promise<void> {
    if (this.#spec.isUpgrade) await this.response.catch(() => undefined);
    const target: Writable | null = this.#spec.isUpgrade ? this.#upgraded : this.#request;
    if (target === null) return;
    const expected = this.#spec.isUpgrade ? null : this.#spec.bodyLength;
    // WHY: an upstream may reject a request after its head, and a client may wait for that before it sends its body.
    if (body !== null && !this.#spec.isUpgrade) setTimeout(() => this.#request.flushHeaders(), HEAD_DELAY_MS).unref();
    // WHY: leaving the loop must not destroy the body, because its stream also carries the response.
    for await (const chunk of body?.iterator({ destroyOnReturn: false }) ?? []) {
      if (!(chunk instanceof Uint8Array) || target.destroyed || this.#isStopped) return;
      this.#bytesIn += chunk.length;
      if (expected !== null && this.#bytesIn > expected) break;
      this.touch();
      if (!target.write(chunk)) await Promise.race([drained(target), this.#stopped.promise]);
    }
    if (this.#isStopped) return;
    if (expected !== null && this.#bytesIn !== expected) this.#request.destroy(new UpstreamError('protocol'));
    else target.end();
  }

  /**
   * Stops sending the body. The upstream is not told that the body has ended, because it has not. The connection is
   * closed after the response.
   */
  stopSending(): void {
    this.#isStopped = true;
    this.#stopped.resolve();
  }

  /** Ends the request in any state. A connection whose exchange is complete stays in the pool. */
  close(): void {
    clearTimeout(this.#timer);
    this.#upgraded?.destroy();
    this.#request.destroy();
  }

  classify(error: unknown): ReturnType<typeof classify> {
    return classify(error, this.#phase);
  }

  #startTimer(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#timedOut();
      this.#fail(new UpstreamError('timeout'));
    }, ms);
  }

  #fail(error: UpstreamError): void {
    this.#failure ??= error;
    this.#response.reject(error);
    this.#upgraded?.destroy(error);
    this.#request.destroy(error);
  }

  #enter(phase: Phase, ms?: number): void {
    this.#phase = phase;
    if (ms === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = this.#startTimer(ms);
  }

  /** WHY: an exception of a listener would end the process, and with it every other request. */
  #guarded<A extends unknown[]>(listener: (...values: A) => void): (...values: A) => void {
    return (...values) => {
      try {
        listener(...values);
      } catch {
        this.#fail(new UpstreamError('protocol'));
      }
    };
  }

  #listen(request: ClientRequest): void {
    request.on('error', (error) => this.#response.reject(new UpstreamError(this.classify(error))));
    request.on('close', () => {
      if (this.#failure === null) this.#closed.resolve();
      else this.#closed.reject(this.#failure);
      if (!this.#isAnswered) this.#response.reject(new UpstreamError(this.classify(null)));
    });
    request.on('socket', (socket) => {
      // WHY: Node removes its own listener when it hands the socket over, and between two requests.
      if (!request.reusedSocket) socket.on('error', () => undefined);
      const connected = (): void => this.#enter('exchange', this.#timeouts.headMs);
      if (!socket.connecting && !(socket instanceof TLSSocket && !request.reusedSocket)) connected();
      else if (socket instanceof TLSSocket) {
        socket.once('connect', () => this.#enter('tls'));
        socket.once('secureConnect', connected);
      } else socket.once('connect', connected);
      let bytes = 0;
      const count = ({ length }: Uint8Array): void => {
        bytes += length;
        if (bytes > MAX_BYTES_BEFORE_RESPONSE) this.#fail(new UpstreamError('protocol'));
      };
      socket.on('data', count);
      for (const event of ['response', 'upgrade', 'close']) request.once(event, () => socket.off('data', count));
    });
    let interimResponses = 0;
    request.on('information', () => {
      interimResponses += 1;
      if (interimResponses > MAX_INTERIM_RESPONSES) this.#fail(new UpstreamError('protocol'));
    });
    request.on(
      'response',
      this.#guarded((response: IncomingMessage) => this.#answer(response, response)),
    );
    request.on(
      'upgrade',
      this.#guarded((response: IncomingMessage, socket: Duplex, head: Buffer) => {
        // ORDER: first, because the request no longer closes the socket if anything fails.
        this.#upgraded = socket;
        // Another protocol uses other frames, in which nothing would be redacted.
        const isWebSocket = response.headers.upgrade?.toLowerCase() === 'websocket';
        if (!this.#spec.isUpgrade || !isWebSocket) throw new UpstreamError('protocol');
        if (head.length > 0) socket.unshift(head);
        this.#answer(response, socket);
      }),
    );
  }

  #answer(response: IncomingMessage, body: Readable): void {
    const status = response.statusCode ?? 0;
    // Node's parser accepts 000 to 099. It also accepts 101 without the header of an upgrade, which the client did not
    // request.
    const isHandshake = status === 101 && this.#upgraded !== null;
    if (status < 200 && !isHandshake) throw new UpstreamError('protocol');
    const coding = response.headers['transfer-encoding'];
    // WHY: Node passes on the bytes of another transfer coding, in which nothing would be redacted.
    if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
      this.#fail(new UpstreamError('coding'));
      return;
    }
    // WHY: the body may fail before it is read.
    body.on('error', () => undefined);
    this.#enter('exchange', this.#timeouts.idleMs);
    this.#isAnswered = true;
    this.#response.resolve({
      status,
      headers: toPairs(response.rawHeaders),
      body,
      trailers: () => toPairs(response.rawTrailers),
    });
  }
}

function toPairs(raw: readonly string[]): HeaderPairs {
  if (raw.length > 2 * MAX_HEADERS) throw new UpstreamError('protocol');
  return Array.from({ length: raw.length / 2 }, (_, at) => [raw[2 * at] ?? '', raw[2 * at + 1] ?? ''] as const);
}

/** The phase that a request reached. It determines the meaning of an error. */
type Phase = 'connect' | 'tls' | 'exchange';

/** OpenSSL's and Node's codes of rejected certificates, which can arrive after the handshake. */
const CERTIFICATE = /CERT|^ERR_(?:TLS|SSL)|^UNABLE_TO_|SIGNED|^HOSTNAME_MISMATCH/;
const CODINGS = /^(?:Z_|ERR__?ERROR|ERR_BROTLI|ERR_ZSTD|ZSTD_|ERR_BUFFER|ERR_PADDING)/;

function classify(error: unknown, phase: Phase): FailureClass {
  if (error instanceof UpstreamError) return error.failure;
  const code = /\((\w+)\)/.exec(errnoSuffix(error))?.[1] ?? '';
  if (/^(?:ENOTFOUND|EAI_|ENODATA)/.test(code)) return 'dns';
  if (CODINGS.test(code)) return 'coding';
  if (CERTIFICATE.test(code)) return 'tls';
  if (phase === 'connect') return code === 'ETIMEDOUT' ? 'timeout' : 'connect';
  return phase === 'tls' ? 'tls' : 'protocol';
}
