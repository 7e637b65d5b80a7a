/**
 * The protocol between the server and the broker's process. Every brokered request is one stream of the channel: its
 * spec and its raw body are sent one way; a head, the redacted body and a final message come back. INVARIANT: only
 * these two processes have the socket. The server nevertheless checks all data that it reads, because an upstream could
 * take over the broker's process.
 */
import type { Placement } from '../vault/use/target.ts';

/** Headers as they are on the wire: in order, with repetitions. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** Values by name, as in Node: a repeated header has an array. `spell` changes the first spelling of a name. */
export function groupHeaders(
  pairs: HeaderPairs,
  spell = (name: string): string => name,
): Record<string, string | string[]> {
  const groups = Map.groupBy(pairs, ([name]) => name.toLowerCase());
  return Object.fromEntries(
    Array.from(groups.values(), (group) => {
      const [first = '', ...others] = group.map(([, value]) => value);
      return [spell(group[0]?.[0] ?? ''), others.length === 0 ? first : [first, ...others]];
    }),
  );
}

/** One brokered request that was decided and recorded, with everything that the broker needs for it. */
export interface UpstreamRequestSpec {
  /** The caller. All its requests together receive one share of the processor time. */
  readonly caller: string;
  readonly method: string;
  readonly scheme: 'https' | 'http';
  /** The host as WHATWG URL normalises it: a lower-case DNS name, an IPv4 address, or an IPv6 address in brackets. */
  readonly host: string;
  readonly port: number;
  /** The path with the query, as the client wrote it. */
  readonly path: string;
  /** The client's headers. The broker removes headers that may carry authority. */
  readonly headers: HeaderPairs;
  /** The length in bytes; 0 without a body, null if it is not known. Ignored for an upgrade. */
  readonly bodyLength: number | null;
  readonly placement: Placement;
  readonly value: string;
  /** CIDR blocks that the guards would otherwise reject. */
  readonly allowNetworks: readonly string[];
  /** The only networks in which `allowNetworks` counts; null for all. */
  readonly targetNetworks: readonly string[] | null;
  /** The server's own ports, to which no request is made at an address of this machine. */
  readonly ownPorts: readonly number[];
  /** Replaces the default certificate authorities. */
  readonly caPem: string | null;
  /** Further values to redact; the value itself and its rendered forms are always redacted. */
  readonly redact: readonly string[];
  /** Whether the client asked for a WebSocket. The request's body is then the client's data after the handshake. */
  readonly isUpgrade: boolean;
  /** The prefix that replaces the target's origin in links, without a slash at the end; null leaves links unchanged. */
  readonly linkPrefix: string | null;
}

/**
 * `value`: the value cannot be redacted or placed in a header, so nothing was sent. `partial`: the response was a part
 * of a representation, which was not requested. `broker`: the broker's process ended or could not be started. All
 * others are about the upstream.
 */
const FAILURES = [
  'value',
  'dns',
  'refused_address',
  'connect',
  'tls',
  'timeout',
  'protocol',
  'coding',
  'partial',
  'broker',
] as const;

export type FailureClass = (typeof FAILURES)[number];

/** A failed request to an upstream, with the failure class that the client sees. */
export class UpstreamError extends Error {
  readonly failure: FailureClass;

  constructor(failure: FailureClass) {
    super(`the request to the upstream failed: ${failure}`);
    this.name = 'UpstreamError';
    this.failure = failure;
  }
}

/** INVARIANT: a failure contains only a class, never an address or a message of the upstream. */
export type BrokerHead =
  | { readonly kind: 'response'; readonly status: number; readonly headers: HeaderPairs }
  | { readonly kind: 'error'; readonly failure: FailureClass };

/**
 * `complete`: the whole response was sent. `upstream`: the upstream aborted it after its head. `client`: the server
 * reset the stream, or the client did not read for too long. `failed`: no head arrived, or the broker died.
 */
const ENDS = ['complete', 'upstream', 'client', 'failed'] as const;

export interface UseResult {
  /** The upstream's status; null without a head. */
  readonly status: number | null;
  /** Bytes of the client's body that were sent to the upstream. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly redactions: number;
  readonly ended: (typeof ENDS)[number];
}

export interface FinalMessage {
  readonly result: UseResult;
  readonly trailers: HeaderPairs;
}

/**
 * Kinds of frames. `open` starts a stream with the spec of its request. `head` precedes the redacted body. `end` ends a
 * body, with a final message or, in the other direction, without one. `reset` ends both directions. `credit` is the
 * amount that the other side has read. `redactions` is their count so far.
 */
export const FRAME = { open: 1, head: 2, data: 3, end: 4, reset: 5, credit: 6, redactions: 7 } as const;

export type FrameKind = (typeof FRAME)[keyof typeof FRAME];

export function encodeMessage(message: unknown): Buffer {
  return Buffer.from(JSON.stringify(message), 'utf8');
}

export function decodeMessage(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The head of a response; null for a message of another form. */
export function toHead(message: unknown): BrokerHead | null {
  if (!isObject(message)) return null;
  const { kind, failure, status, headers } = message;
  const known = FAILURES.find((each) => each === failure);
  if (kind === 'error' && known !== undefined) return { kind, failure: known };
  const isResponse = kind === 'response' && isStatus(status) && isHeaderPairs(headers);
  return isResponse ? { kind, status, headers } : null;
}

/** The final message; null for a message of another form. */
export function toFinalMessage(message: unknown): FinalMessage | null {
  if (!isObject(message) || !isObject(message['result']) || !isHeaderPairs(message['trailers'])) return null;
  const { status, bytesIn, bytesOut, redactions, ended } = message['result'];
  const known = ENDS.find((each) => each === ended);
  if (known === undefined || (status !== null && !isStatus(status))) return null;
  if (!isCount(bytesIn) || !isCount(bytesOut) || !isCount(redactions)) return null;
  return { result: { status, bytesIn, bytesOut, redactions, ended: known }, trailers: message['trailers'] };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
const isStatus = (value: unknown): value is number => isCount(value) && value >= 100 && value <= 999;

function isHeaderPairs(value: unknown): value is HeaderPairs {
  const isPair = (each: unknown): boolean =>
    Array.isArray(each) && each.length === 2 && each.every((text) => typeof text === 'string');
  return Array.isArray(value) && value.every(isPair);
}
