/**
 * Requests that wait for approvals: their bodies, which are read before anything is sent, and the part that is shown.
 */
import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import { forwardedHeaders } from '../../broker/injection.ts';
import type { HeaderPairs } from '../../broker/protocol.ts';
import type { Context } from '../../core/operation.ts';
import { Sha256, sha256Base64 } from '../../crypto/primitives.ts';
import { ApiError } from '../../engine/errors.ts';
import { nameVersion, type RetrieveRequest } from '../credentials/retrieve.ts';
import { originOf, type UseRequest } from '../use/target.ts';
import { type AdmittedRequest, startUse } from '../use/use-operations.ts';
import type { ReceivedRequest } from '../use/uses.ts';
import type { ApprovalHolds, HeldRequest } from './approval-holds.ts';
import type { ApprovalAttempt, ApprovalPending } from './approval-requests.ts';

/** A body is kept in memory while its request waits. */
const MAX_BODY_BYTES = 1024 * 1024;
const MAX_HELD_BYTES = 64 * 1024 * 1024;
/** Keeps one agent from taking the place of all others. */
const MAX_HELD_BYTES_OF_AGENT = 16 * 1024 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
/** More of a body is not shown; its length and digest are. */
const MAX_SHOWN_BYTES = 16 * 1024;

interface ShownHeader {
  readonly name: string;
  readonly value: string;
}

export interface ShownCall {
  readonly method: string;
  readonly url: string;
  /** The headers that are sent and bound, sorted by name in lower case. */
  readonly headers: readonly ShownHeader[];
  /** Later messages are not shown. */
  readonly opens_websocket: boolean;
  readonly content_type: string | null;
  readonly body: string;
  readonly body_encoding: 'utf8' | 'base64';
  readonly body_bytes: number;
  readonly body_sha256: string;
  readonly truncated: boolean;
}

export function heldRetrieval(request: RetrieveRequest): HeldRequest {
  const { path } = request;
  return {
    action: 'retrieve',
    path,
    version: nameVersion(request),
    bodyDigest: '',
    isUpgrade: false,
    shown: () => 'null',
  };
}

/** A brokered request that was admitted, with its body, which may be in memory until `release` is called. */
export interface AdmittedCall {
  readonly admitted: AdmittedRequest;
  readonly call: ReceivedRequest;
  release(): void;
}

/** Holds brokered requests that need an approval. The body of one is in memory until its request has ended. */
export class HeldUses {
  readonly #approvals: ApprovalHolds;
  #bytes = 0;
  readonly #bytesOfAgent = new Map<string, number>();

  constructor(approvals: ApprovalHolds) {
    this.#approvals = approvals;
  }

  /** @throws APPROVAL_PENDING, PAYLOAD_TOO_LARGE, UNAVAILABLE; the decision's error */
  async hold(context: Context, undecided: ApprovalPending, requested: ReceivedRequest): Promise<AdmittedCall> {
    const { held, ...read } = await this.#readWhole(requested, callerOf(context));
    const attempt = (ask: ApprovalAttempt) => startUse(context, requested, ask);
    try {
      return { admitted: await this.#approvals.hold(context, undecided, attempt, held, requested.signal), ...read };
    } catch (error) {
      read.release();
      throw error;
    }
  }

  /**
   * Reads the body of a use. The returned call sends it from memory; `release` frees it.
   * @throws PAYLOAD_TOO_LARGE; UNAVAILABLE if too many bodies wait
   */
  async #readWhole(
    call: ReceivedRequest,
    agent: string,
  ): Promise<{ held: HeldRequest; call: ReceivedRequest; release: () => void }> {
    const headerBytes = boundHeaders(call).reduce((sum, { name, value }) => sum + name.length + value.length, 0);
    if (headerBytes > MAX_HEADER_BYTES) {
      throw new ApiError('PAYLOAD_TOO_LARGE', 'A request that needs an approval may have headers of 16 KiB at most.');
    }
    const stream = call.isUpgrade ? null : call.openBody();
    const body = stream === null ? null : await this.#read(stream, agent);
    const size = body?.length ?? 0;
    const digest = new Sha256();
    if (body !== null) digest.update(body);
    const bodySha256 = digest.hex();
    const held: HeldRequest = {
      action: 'use',
      path: call.path,
      version: null,
      bodyDigest: digestOf(call, bodySha256),
      isUpgrade: call.isUpgrade,
      shown: (request) => JSON.stringify(request === null ? null : toShown(request, call, body, bodySha256)),
    };
    return {
      held,
      call: body === null ? call : { ...call, openBody: () => Readable.from([body]), bodyLength: size },
      release: () => this.#count(agent, -size),
    };
  }

  /** Bytes count as soon as they arrive, because many bodies may arrive at the same time. */
  async #read(stream: Readable, agent: string): Promise<Buffer> {
    const chunks: Uint8Array[] = [];
    let length = 0;
    try {
      for await (const chunk of stream) {
        if (!(chunk instanceof Uint8Array)) continue;
        chunks.push(chunk);
        length += chunk.length;
        this.#count(agent, chunk.length);
        if (length > MAX_BODY_BYTES) {
          throw new ApiError('PAYLOAD_TOO_LARGE', 'A request that needs an approval may have a body of 1 MiB at most.');
        }
        if (this.#bytes > MAX_HELD_BYTES || (this.#bytesOfAgent.get(agent) ?? 0) > MAX_HELD_BYTES_OF_AGENT) {
          throw new ApiError('UNAVAILABLE', 'Too many requests wait for approvals. Try again in a few seconds.', 5);
        }
      }
      return Buffer.concat(chunks);
    } catch (error) {
      this.#count(agent, -length);
      throw error;
    }
  }

  #count(agent: string, bytes: number): void {
    this.#bytes += bytes;
    const ofAgent = (this.#bytesOfAgent.get(agent) ?? 0) + bytes;
    if (ofAgent > 0) this.#bytesOfAgent.set(agent, ofAgent);
    else this.#bytesOfAgent.delete(agent);
  }
}

/** The digest includes the headers that are bound. An upgrade has no body, and then sends more than was shown. */
function digestOf(call: ReceivedRequest, bodySha256: string): string {
  return sha256Base64(JSON.stringify([boundHeaders(call), call.isUpgrade, bodySha256]));
}

/**
 * What a retry sends with other values, and what does not change what a request does: the client, what it accepts,
 * caches, traces and the ids of tries. `Sec-WebSocket-Protocol` is not among them: it may choose what a connection
 * does.
 */
const VOLATILE =
  /^(?:user-agent|accept|accept-(?:charset|encoding|language)|cache-control|pragma|date|dnt|priority|origin|referer|sec-(?:ch-ua.*|fetch-(?:dest|mode|site|user)|gpc|websocket-(?:key|version))|traceparent|tracestate|baggage|sentry-trace|b3|x-b3-.*|x-datadog-.*|x-amzn-trace-id|x-request-id|x-correlation-id|x-client-request-id|x-stainless-.*|x-amz-date|amz-sdk-.*|idempotency-key)$/;

const sentHeaders = (call: ReceivedRequest): HeaderPairs => forwardedHeaders({ ...call, method: call.request.method });

/** Sorted by name; headers of one name stay in order. */
function boundHeaders(call: ReceivedRequest): readonly ShownHeader[] {
  return sentHeaders(call)
    .map(([name, value]) => ({ name: name.toLowerCase(), value }))
    .filter(({ name }) => !VOLATILE.test(name))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function callerOf({ auth }: Context): string {
  return auth.kind === 'admin' ? '' : auth.agentName;
}

/** The header as it is sent. */
function headerOf(call: ReceivedRequest, wanted: string): string | null {
  const values = sentHeaders(call).flatMap(([name, value]) => (name.toLowerCase() === wanted ? [value] : []));
  return values.length === 0 ? null : values.join(', ');
}

function toShown(
  { method, url }: UseRequest,
  call: ReceivedRequest,
  body: Buffer | null,
  bodySha256: string,
): ShownCall {
  const shown = (body ?? Buffer.alloc(0)).subarray(0, MAX_SHOWN_BYTES);
  // An encoded body may look like another text.
  const text = headerOf(call, 'content-encoding') === null ? withoutCutCharacter(shown) : null;
  return {
    method,
    url: `${originOf(url)}${url.path}${url.query}`,
    headers: boundHeaders(call),
    opens_websocket: call.isUpgrade,
    content_type: headerOf(call, 'content-type'),
    body: text === null ? shown.toString('base64') : text.toString('utf8'),
    body_encoding: text === null ? 'base64' : 'utf8',
    body_bytes: body?.length ?? 0,
    body_sha256: bodySha256,
    truncated: (body?.length ?? 0) > shown.length,
  };
}

/** Null for bytes that are not text. Text that was cut within a character of UTF-8, of up to four bytes, stays text. */
function withoutCutCharacter(bytes: Buffer): Buffer | null {
  const lengths = [0, 1, 2, 3].map((rest) => bytes.length - rest).filter((length) => length >= 0);
  const length = lengths.find((each) => isUtf8(bytes.subarray(0, each)));
  return length === undefined ? null : bytes.subarray(0, length);
}
