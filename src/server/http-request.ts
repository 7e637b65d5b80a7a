/**
 * One HTTP request of the service to another program. WHY not `fetch`: Node loads its client of browsers for that,
 * which takes 15 MiB. A redirect is an ordinary response, because the operator named the address.
 */
import type { Agent, IncomingMessage } from 'node:http';
import { request as requestSecure } from 'node:https';
import { errnoSuffix } from '../platform/errno.ts';
import { http } from '../platform/node-http.ts';

const MAX_RESPONSE_CHARACTERS = 64 * 1024;

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty for none. */
  readonly body: string;
  /** Authorities in PEM; null for those that Node trusts, or those of the agent. */
  readonly ca: string | null;
  /** Null for a connection that is closed after the response. */
  readonly agent: Agent | null;
  readonly signal: AbortSignal;
}

export interface HttpResponse {
  readonly status: number;
  /** Cut off after 64 KiB. */
  readonly text: string;
  readonly isCutOff: boolean;
  readonly retryAfter: string | undefined;
}

/** A request without a complete response. The message is a predicate, such as `cannot be reached (ECONNREFUSED)`. */
export class HttpError extends Error {}

/** Resolves to any response. @throws HttpError; the signal's reason */
export async function sendRequest(request: HttpRequest): Promise<HttpResponse> {
  const { url, method, headers, body, ca, agent, signal } = request;
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  const fail = (what: string, error: unknown): void => {
    reject(signal.aborted ? signal.reason : new HttpError(what + errnoSuffix(error)));
  };
  const content = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const options = {
    method,
    agent: agent ?? false,
    signal,
    headers: { 'user-agent': 'leasehold', ...content, ...headers },
    ...(ca === null ? {} : { ca }),
  };
  let isAnswered = false;
  try {
    const call = (url.protocol === 'https:' ? requestSecure : http.request)(url, options);
    call.on('error', (error) => fail('cannot be reached', error));
    call.on('socket', (socket) => {
      // WHY: Node removes its own listener when it hands the socket over, and between two requests.
      if (!call.reusedSocket) socket.on('error', () => undefined);
    });
    call.on('response', (response) => {
      isAnswered = true;
      readResponse(response).then(resolve, (error) => fail('broke off its response', error));
    });
    // WHY: Node reports a switch of protocols by this event alone, and then leaves the socket to its listener.
    call.on('upgrade', (_response, socket) => {
      socket.destroy();
      fail('switched protocols', null);
    });
    call.on('close', () => {
      if (!isAnswered) fail('closed the connection', null);
    });
    call.end(body);
  } catch (error) {
    // A header with characters that HTTP does not allow.
    fail('cannot be called', error);
  }
  return promise;
}

/** WHY a promise: whatever a receiver sent, an exception here fails its request, and is not one of a listener. */
async function readResponse(response: IncomingMessage): Promise<HttpResponse> {
  let text = '';
  let isCutOff = false;
  response.setEncoding('utf8');
  for await (const chunk of response) {
    isCutOff ||= text.length + chunk.length > MAX_RESPONSE_CHARACTERS;
    text += chunk.slice(0, MAX_RESPONSE_CHARACTERS - text.length);
  }
  return { status: response.statusCode ?? 0, text, isCutOff, retryAfter: response.headers['retry-after'] };
}
