/** Posts to a receiver that the operator named. A redirect is a failure: the operator named the address. */
import { Agent as SecureAgent } from 'node:https';
import { http, IDLE_CONNECTION_MS } from '../../platform/node-http.ts';
import { HttpError, type HttpResponse, sendRequest } from '../http-request.ts';
import { SinkError } from './sink.ts';

const TIMEOUT_MS = 30_000;

/** What all requests of a sink share. */
export interface PostTarget {
  readonly url: URL;
  /** Sent as a bearer token; null without one. */
  readonly token: string | null;
  /** Authorities in PEM; null for those that Node trusts. */
  readonly ca: string | null;
}

export class Poster {
  readonly #target: PostTarget;
  readonly #agent: InstanceType<typeof http.Agent>;

  constructor(target: PostTarget) {
    this.#target = target;
    const options = { keepAlive: true, maxSockets: 1, timeout: IDLE_CONNECTION_MS };
    this.#agent = target.url.protocol === 'https:' ? new SecureAgent(options) : new http.Agent(options);
  }

  /** Resolves to the body of a successful response. @throws SinkError; the signal's reason */
  async post(body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<string> {
    const { status, text, retryAfter } = await this.exchange(body, headers, signal);
    if (status >= 200 && status < 300) return text;
    throw new SinkError(`the receiver returned HTTP ${status}`, retryAfterMs(retryAfter));
  }

  /** Resolves to any response. @throws SinkError; the signal's reason */
  async exchange(body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpResponse> {
    const { url, token, ca } = this.#target;
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    try {
      return await sendRequest({
        method: 'POST',
        url,
        headers: { 'content-type': 'application/json', ...authorization, ...headers },
        body,
        ca,
        agent: this.#agent,
        signal: AbortSignal.any([signal, timeout]),
      });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (timeout.aborted) throw new SinkError('the receiver did not respond in time');
      throw error instanceof HttpError ? new SinkError(`the receiver ${error.message}`) : error;
    }
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Seconds or a date. SOURCE: RFC 9110, section 10.2.3. */
function retryAfterMs(text: string | undefined): number | null {
  if (text === undefined) return null;
  const milliseconds = /^\d{1,6}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(milliseconds) && milliseconds > 0 ? milliseconds : null;
}
