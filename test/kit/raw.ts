/** Sends requests byte for byte over a raw socket, because a client library would normalise them. */
import { connect } from 'node:net';
import type { TestResponse } from './client.ts';

export interface RawResponse {
  /** 0 if no HTTP response was received. */
  readonly status: number;
  readonly head: string;
  readonly body: string;
  /** Everything that was received. */
  readonly bytes: Buffer;
  /** Whether the server closed the connection; false where the test did. */
  readonly isClosed: boolean;
}

/** Only a hang reaches this limit. */
const HANG_MS = 120_000;

/** What is expected of a connection that may stay open, and how long it is watched when that has arrived. */
interface Expected {
  readonly isComplete: (text: string) => boolean;
  readonly thenMs: number;
}

/**
 * Sends the bytes and resolves to the received bytes until the server closes the connection, or until the expected has
 * arrived. WHY no shorter limit: a busy machine takes any time for a response. @throws Error if the connection stays
 * open without the expected
 */
export function sendRaw(address: string, bytes: string | Uint8Array, expected?: Expected): Promise<RawResponse> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname.replace(/^\[|\]$/g, ''), () => socket.write(bytes));
    const finish = (isClosed: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      const received = Buffer.concat(chunks);
      const text = received.toString('utf8');
      const border = text.indexOf('\r\n\r\n');
      const head = border === -1 ? text : text.slice(0, border);
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
      resolve({ status, head, body: text.slice(border + 4), bytes: received, isClosed });
    };
    let timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`the connection stays open, after ${Buffer.concat(chunks)}`));
    }, HANG_MS);
    let isWatched = false;
    socket.on('data', (chunk) => {
      chunks.push(Buffer.from(chunk));
      if (expected === undefined || isWatched || !expected.isComplete(Buffer.concat(chunks).toString('utf8'))) return;
      isWatched = true;
      clearTimeout(timer);
      timer = setTimeout(() => finish(false), expected.thenMs);
    });
    socket.on('close', () => finish(true));
    socket.on('error', () => finish(true));
  });
}

/** A request with `Connection: close` and the given header lines. */
export function rawRequest(lines: readonly string[], body = ''): string {
  return `${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`;
}

/** Parses headers, a chunked body and JSON as a client would. */
export function toResponse({ status, head, body }: Omit<RawResponse, 'bytes' | 'isClosed'>): TestResponse {
  const headers = new Headers();
  for (const line of head.split('\r\n').slice(1)) {
    const colon = line.indexOf(':');
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const text = headers.get('transfer-encoding') === 'chunked' ? withoutChunks(body) : body;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  return { status, headers, text, body: parsed };
}

/** Sizes are in bytes, so tests with chunked responses use ASCII only. */
function withoutChunks(body: string): string {
  let text = '';
  let rest = body;
  for (;;) {
    const size = Number.parseInt(rest, 16);
    if (!(size > 0)) return text;
    const start = rest.indexOf('\r\n') + 2;
    text += rest.slice(start, start + size);
    rest = rest.slice(start + size + 2);
  }
}
