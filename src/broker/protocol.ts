/**
 * What the service and the broker's process say to each other, for both sides. Every use is one HTTP/2 stream: the
 * request is a frame with the order and then the raw body, the response a frame with the head and then the redacted
 * body, and the trailers are the result. Values travel in frames only, never in HTTP/2 headers, which HPACK would keep.
 */
import type { Readable } from 'node:stream';
import type { Placement } from '../core/target.ts';

/** Headers as they are on the wire: in order, with repetitions. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** One use that was decided and recorded: everything that the broker needs for it. */
export interface Order {
  readonly method: string;
  readonly scheme: 'https' | 'http';
  /** As WHATWG URL normalises it: a lower-case DNS name, an IPv4 address, or an IPv6 address in brackets. */
  readonly host: string;
  readonly port: number;
  /** With the query, as the caller wrote it. */
  readonly path: string;
  /** The caller's headers; those that may carry authority are removed by the broker. */
  readonly headers: HeaderPairs;
  /** In bytes; 0 without a body, null if it is not known. Ignored for an upgrade. */
  readonly bodyLength: number | null;
  readonly placement: Placement;
  readonly value: string;
  /** CIDR blocks that the guards would otherwise refuse. */
  readonly allowNetworks: readonly string[];
  /** Replaces the default certificate authorities. */
  readonly caPem: string | null;
  /** Further values to redact; the value itself and its rendered forms are always redacted. */
  readonly redact: readonly string[];
  /** Whether the caller asked for a WebSocket. Then the request's body is what the caller sends after the handshake. */
  readonly isUpgrade: boolean;
  /** The prefix that replaces the target's origin in links, without a slash at the end; null to leave links. */
  readonly linkPrefix: string | null;
}

/** `broker`: the broker's process ended or could not be started; all others are about the upstream. */
export type FailureClass = 'dns' | 'refused_address' | 'connect' | 'tls' | 'timeout' | 'protocol' | 'coding' | 'broker';

/** INVARIANT: a failure has a class only, never an address or a message of the upstream. */
export type BrokerHead =
  | { readonly kind: 'response'; readonly status: number; readonly headers: HeaderPairs }
  | { readonly kind: 'error'; readonly failure: FailureClass };

/**
 * `complete`: the whole response was sent. `upstream`: it broke off after its head. `client`: the stream was reset by
 * the service. `failed`: no head arrived, or the broker died.
 */
type Ended = 'complete' | 'upstream' | 'client' | 'failed';

export interface UseResult {
  /** The upstream's status; null without a head. */
  readonly status: number | null;
  /** Bytes of the caller's body that were sent to the upstream. */
  readonly bytesIn: number;
  /** Bytes of the redacted body. */
  readonly bytesOut: number;
  readonly redactions: number;
  readonly ended: Ended;
}

const LENGTH_BYTES = 4;
/** Above every order and head: headers are at most 64 KiB, a value and a list of authorities have limits too. */
const MAX_FRAME_BYTES = 8 * 1024 * 1024;

/** Settings of both ends of the HTTP/2 connection. */
export const SESSION_OPTIONS = {
  // WHY: the limits guard against hostile peers. Here, reaching one would end the uses of every caller, such as when
  // many are cut together.
  maxSessionMemory: 1024,
  maxSessionInvalidFrames: 1_000_000,
  maxSessionRejectedStreams: 1_000_000,
  streamResetBurst: 1_000_000,
  streamResetRate: 1_000_000,
  peerMaxConcurrentStreams: 100_000,
  settings: {
    enablePush: false,
    initialWindowSize: 256 * 1024,
    maxConcurrentStreams: 100_000,
    maxFrameSize: 64 * 1024,
  },
} as const;

export function encodeFrame(content: Order | BrokerHead): Buffer {
  const text = Buffer.from(JSON.stringify(content), 'utf8');
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + text.length);
  frame.writeUInt32BE(text.length);
  text.copy(frame, LENGTH_BYTES);
  return frame;
}

/**
 * Reads the frame at the start of the stream, and leaves what follows in it.
 * @throws Error if the stream ends within the frame or the frame is too large
 */
export async function readFrame(stream: Readable): Promise<unknown> {
  const length = (await readBytes(stream, LENGTH_BYTES)).readUInt32BE();
  if (length === 0 || length > MAX_FRAME_BYTES) throw new Error('a frame has an invalid length');
  return JSON.parse((await readBytes(stream, length)).toString('utf8'));
}

function readBytes(stream: Readable, count: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const read = (): void => {
    const bytes: unknown = stream.read(count);
    if (bytes instanceof Buffer && bytes.length === count) settle(() => resolve(bytes));
    else if (bytes !== null || stream.destroyed) fail();
  };
  const fail = (): void => settle(() => reject(new Error('a stream ended within a frame')));
  const settle = (outcome: () => void): void => {
    stream.off('readable', read).off('end', fail).off('close', fail).off('error', fail);
    outcome();
  };
  stream.on('readable', read).on('end', fail).on('close', fail).on('error', fail);
  read();
  return promise;
}

/** The result and the upstream's trailers as HTTP/2 trailers. */
export function encodeResult(result: UseResult, trailers: HeaderPairs): Record<string, string> {
  return {
    status: String(result.status ?? 0),
    bytes_in: String(result.bytesIn),
    bytes_out: String(result.bytesOut),
    redactions: String(result.redactions),
    ended: result.ended,
    trailers: Buffer.from(JSON.stringify(trailers)).toString('base64'),
  };
}

export function decodeResult(fields: Readonly<Record<string, unknown>>): { result: UseResult; trailers: HeaderPairs } {
  const number = (name: string): number => Number(fields[name] ?? 0);
  const ended = (['complete', 'upstream'] as const).find((each) => each === fields['ended']) ?? 'failed';
  const trailers = JSON.parse(Buffer.from(String(fields['trailers'] ?? 'W10='), 'base64').toString('utf8'));
  return {
    result: {
      status: number('status') || null,
      bytesIn: number('bytes_in'),
      bytesOut: number('bytes_out'),
      redactions: number('redactions'),
      ended,
    },
    trailers,
  };
}
