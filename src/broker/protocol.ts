/**
 * What the service and the broker's process say to each other. Every use is one stream of the channel: an order and the
 * raw body of the request go one way; a head, the redacted body and a final message come back.
 * INVARIANT: only these two processes have the socket, and both are checked by the same types.
 */
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

/** What the broker says of a use when its response has ended. */
export interface FinalMessage {
  readonly result: UseResult;
  readonly trailers: HeaderPairs;
}

/**
 * Frames of a stream: an order opens it; the head precedes the redacted body; a final message, or nothing in the other
 * direction, ends a body; a reset ends both directions; credit is the number of bytes that the other side has read.
 */
export const FRAME = { open: 1, head: 2, data: 3, end: 4, reset: 5, credit: 6 } as const;

export type FrameKind = (typeof FRAME)[keyof typeof FRAME];

export function encodeMessage(message: unknown): Buffer {
  return Buffer.from(JSON.stringify(message), 'utf8');
}

export function decodeMessage(payload: Buffer): unknown {
  return JSON.parse(payload.toString('utf8'));
}
