/**
 * HTTP requests of the server to programs that the operator named, including signed webhooks. A redirect is an ordinary
 * response, because the operator named the URL. SOURCE: Standard Webhooks 1.0.0.
 */
import { caFetch, safeFetch } from '../client/node-fetch.ts';
import { parseWebhookSecret, webhookSignature } from '../crypto/signatures.ts';
import { errnoSuffix, StartupError } from '../platform/errors.ts';
import { readSecretBytes, warnIfReadableByOthers } from '../platform/private-files.ts';

const MAX_RESPONSE_CHARACTERS = 64 * 1024;
/** A receiver that sends single bytes would otherwise take thousands of steps of the event loop. */
const MAX_RESPONSE_CHUNKS = 256;
const TIMEOUT_MS = 30_000;
const TOKEN = /^[!-~]{1,8192}$/;

export interface HttpPost {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

export interface HttpResponse {
  readonly status: number;
  /** Shortened to 64 KiB. */
  readonly text: string;
  readonly retryAfter: string | null;
}

/** A request without a complete response. The message is a predicate, such as `cannot be reached (ECONNREFUSED)`. */
export class HttpError extends Error {}

/** A failure of a receiver. The message is for the operator, and repeats no data from the receiver. */
export class ReceiverError extends Error {
  /** The wait that the receiver asked for; null if it asked for none. */
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null = null) {
    super(message);
    this.name = 'ReceiverError';
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Trusts the authorities in PEM, or with null the authorities that Node trusts. WHY not `fetch` in plain text: it may
 * use a proxy, which would then see data meant only for this machine. @throws LeaseholdError for a text that is not PEM
 */
export function fetchFor({ protocol }: URL, ca: string | null): typeof fetch {
  return ca === null || protocol !== 'https:' ? safeFetch : caFetch(ca);
}

/** Resolves to any response. @throws HttpError; the signal's reason */
export async function post(send: typeof fetch, { url, headers, body, signal }: HttpPost): Promise<HttpResponse> {
  let failure = 'cannot be reached';
  try {
    const response = await send(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'user-agent': 'leasehold', ...headers },
      body,
      signal,
    });
    failure = 'broke off its response';
    const text = await readStart(response);
    return { status: response.status, text, retryAfter: response.headers.get('retry-after') };
  } catch (error) {
    signal.throwIfAborted();
    throw new HttpError(failure + errnoSuffix(error instanceof Error ? (error.cause ?? error) : error));
  }
}

async function readStart(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let chunks = 0;
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    chunks += 1;
    // Leaving the loop cancels the body.
    if (text.length >= MAX_RESPONSE_CHARACTERS || chunks >= MAX_RESPONSE_CHUNKS) break;
  }
  return text.slice(0, MAX_RESPONSE_CHARACTERS);
}

export interface WebhookTarget {
  readonly url: URL;
  readonly key: Uint8Array;
  /** Sent as a bearer token; null without one. */
  readonly token: string | null;
  /** Authorities in PEM; null for the authorities that Node trusts. */
  readonly ca: string | null;
}

export interface WebhookMessage {
  /** The same for a repetition. */
  readonly id: string;
  readonly body: string;
  readonly sentAt: number;
}

export class WebhookClient {
  readonly #target: WebhookTarget;
  readonly #fetch: typeof fetch;

  constructor(target: WebhookTarget) {
    this.#target = target;
    this.#fetch = fetchFor(target.url, target.ca);
  }

  /** Resolves to any response. @throws ReceiverError; the signal's reason */
  async send({ id, body, sentAt }: WebhookMessage, signal: AbortSignal): Promise<HttpResponse> {
    const { url, token, key } = this.#target;
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const seconds = Math.floor(sentAt / 1000);
    const headers = {
      'content-type': 'application/json',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': webhookSignature(key, id, seconds, body),
    };
    try {
      return await post(this.#fetch, { url, headers, body, signal: AbortSignal.any([signal, timeout]) });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (timeout.aborted) throw new ReceiverError('the receiver did not respond in time');
      throw error instanceof HttpError ? new ReceiverError(`the receiver ${error.message}`) : error;
    }
  }
}

/** The failure that a response reports; null if it reports success. */
export function failureOf({ status, retryAfter }: HttpResponse): ReceiverError | null {
  if (status >= 200 && status < 300) return null;
  return new ReceiverError(`the receiver returned HTTP ${status}`, retryAfterMs(retryAfter));
}

/** Seconds or a date. SOURCE: RFC 9110, section 10.2.3. */
function retryAfterMs(text: string | null): number | null {
  if (text === null) return null;
  const milliseconds = /^\d{1,6}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(milliseconds) && milliseconds > 0 ? milliseconds : null;
}

/** The key in a file with a secret of the form `whsec_…`. @throws StartupError */
export function readWebhookKey(file: string, warn: (line: string) => void): Uint8Array {
  const key = parseWebhookSecret(readTrimmed(file));
  if (key === null) throw new StartupError(`${file} must contain whsec_ and 24 to 64 bytes as base64.`);
  warnIfReadableByOthers(file, warn);
  return key;
}

/** @throws StartupError */
export function readBearerToken(file: string, warn: (line: string) => void): string {
  const token = readTrimmed(file);
  if (!TOKEN.test(token)) throw new StartupError(`${file} must contain one token of printable characters.`);
  warnIfReadableByOthers(file, warn);
  return token;
}

/** @throws StartupError */
export function readTrimmed(file: string): string {
  return readSecretBytes(file).toString('utf8').trim();
}
