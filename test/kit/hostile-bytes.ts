/** Random HTTP/1.1 messages, valid and not, with the parts that break parsers, and how a hostile peer sends them. */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import type { Dice } from './dice.ts';

/** Bytes in the pieces in which they are sent, and how the connection ends. */
export interface Script {
  readonly pieces: readonly Buffer[];
  /** `stay`: the other side ends it. */
  readonly end: 'reset' | 'destroy' | 'end' | 'stay';
}

const NAMES = [
  '__proto__',
  '__PROTO__',
  'constructor',
  'hasOwnProperty',
  'toString',
  'valueOf',
  'then',
  'prototype',
  'Connection',
  'Upgrade',
  'Expect',
  'Transfer-Encoding',
  'Content-Length',
  'Trailer',
  'TE',
  'Host',
  'Cookie',
  'Content-Encoding',
  'Content-Type',
  'Set-Cookie',
  'Location',
  'Link',
  'Retry-After',
  'Keep-Alive',
  'Date',
  'Sec-WebSocket-Key',
  'X-Forwarded-For',
  'X-Forwarded-Proto',
  'Forwarded',
  'Authorization',
  'If-None-Match',
  'Idempotency-Key',
  'Origin',
  'Range',
  'Accept-Version',
  'Accept-Encoding',
  'X-Leasehold-Error',
  'a b',
  '',
  'é',
] as unknown as readonly [string, ...string[]];
const VALUES = [
  'x',
  '',
  '__proto__',
  'websocket',
  'upgrade',
  'Upgrade, close',
  'close',
  'keep-alive',
  '100-continue',
  '200-ok',
  'chunked',
  'gzip, chunked',
  'chunked, chunked',
  'identity',
  'gzip',
  'br',
  'deflate',
  'zstd',
  'gzip, gzip',
  '0',
  '5',
  '-1',
  '1e9',
  '99999999999999999999',
  '0x10',
  '5, 5',
  'text/event-stream',
  'application/json',
  '*/*',
  'text/html; charset=utf-16',
  'multipart/mixed; boundary=',
  'localhost',
  'http://[',
  '//',
  'timeout=0',
  '[::1',
  'Thu, 01 Jan 1970 00:00:00 GMT',
  'bytes=0-1',
  '"',
  '\u00e9\u00ff',
  '\t',
  'a\u0000b',
  'a\rb',
  'a\nb: c',
] as unknown as readonly [string, ...string[]];

function header(dice: Dice): string {
  const value = dice.chance(0.9) ? dice.pick(VALUES) : dice.text(dice.chance(0.05) ? 20_000 : 40);
  return `${dice.pick(NAMES)}: ${value}`;
}

/** Lines with a few odd ones at random places. */
export function withOddHeaders(dice: Dice, lines: readonly string[]): string[] {
  const all = [...lines];
  for (let count = dice.below(4); count > 0; count--) all.splice(dice.below(all.length + 1), 0, header(dice));
  return all;
}

function chunked(dice: Dice, body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (const piece of dice.split(body)) {
    const extension = dice.chance(0.1) ? ';__proto__=x' : '';
    parts.push(Buffer.from(`${piece.length.toString(16)}${extension}\r\n`), piece, Buffer.from('\r\n'));
  }
  const trailers = dice.chance(0.3) ? `${header(dice)}\r\n` : '';
  if (dice.chance(0.1)) parts.push(Buffer.from(dice.pick(['ffffffffffffffff\r\n', '-1\r\n', 'zz\r\n', '5\r\nab'])));
  return Buffer.concat([...parts, Buffer.from(`0\r\n${trailers}\r\n`, 'latin1')]);
}

/** A body and the lines that frame it, usually as they should. */
export function framed(dice: Dice, body: Buffer): { lines: string[]; bytes: Buffer } {
  switch (dice.below(8)) {
    case 0:
      return { lines: [], bytes: body };
    case 1:
      return { lines: [`Content-Length: ${body.length + dice.below(20) - 10}`], bytes: body };
    case 2:
    case 3:
      return { lines: ['Transfer-Encoding: chunked'], bytes: chunked(dice, body) };
    default:
      return { lines: [`Content-Length: ${body.length}`], bytes: body };
  }
}

const STATUSES = [
  '200 OK',
  '200 OK',
  '200 OK',
  '200 OK',
  '201 Created',
  '204 No Content',
  '205 Reset',
  '206 Partial',
  '304 Same',
  '301 Moved',
  '302 Found',
  '400 Bad',
  '401 No',
  '409 Conflict',
  '413 Large',
  '429 Many',
  '500 Error',
  '503 Later',
  '101 Switching Protocols',
  '100 Continue',
  '103 Early Hints',
  '199 x',
  '099 x',
  '000',
  '999 x',
  '200',
  '2',
  'OK',
] as unknown as readonly [string, ...string[]];

function coded(dice: Dice, body: Buffer): { lines: string[]; body: Buffer } {
  const [name, encode] = dice.pick<readonly [string, (bytes: Buffer) => Buffer]>([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', (bytes) => bytes],
    ['unknown', (bytes) => bytes],
  ]);
  const whole = dice.chance(0.02) ? Buffer.alloc(4_000_000) : body;
  const bytes = encode(whole);
  return { lines: [`Content-Encoding: ${name}`], body: dice.chance(0.3) ? bytes.subarray(0, dice.below(20)) : bytes };
}

/** What a peer of any kind may answer with; `body` is what a well-behaved one would send. */
export function randomResponse(dice: Dice, body: string): Script {
  if (dice.chance(0.05)) return { pieces: [dice.bytes(200)], end: dice.pick(['reset', 'end', 'destroy']) };
  const parts: Buffer[] = [];
  for (let count = dice.chance(0.1) ? 1 + dice.below(20) : 0; count > 0; count--) {
    const status = dice.pick(['100 Continue', '103 Early Hints', '102 Processing']);
    parts.push(Buffer.from(`${[`HTTP/1.1 ${status}`, ...withOddHeaders(dice, [])].join('\r\n')}\r\n\r\n`, 'latin1'));
  }
  const plain = dice.chance(0.6) ? Buffer.from(body) : dice.bytes(600);
  const { lines: coding, body: inner } = dice.chance(0.2) ? coded(dice, plain) : { lines: [], body: plain };
  const { lines, bytes } = framed(dice, inner);
  const version = dice.chance(0.9) ? 'HTTP/1.1' : dice.pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', 'http/1.1', 'ICY']);
  const types = ['Content-Type: application/json', ...(dice.chance(0.2) ? ['Connection: close'] : [])];
  const head = [`${version} ${dice.pick(STATUSES)}`, ...withOddHeaders(dice, [...types, ...coding, ...lines])];
  parts.push(Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), bytes);
  if (dice.chance(0.05)) parts.push(Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
  return cut(dice, Buffer.concat(parts));
}

/** Usually whole; sometimes it stops at any byte. */
export function cut(dice: Dice, bytes: Buffer): Script {
  const isCut = dice.chance(0.25);
  const sent = isCut ? bytes.subarray(0, dice.below(bytes.length + 1)) : bytes;
  return {
    pieces: dice.split(sent),
    end: dice.pick(['reset', 'end', 'destroy', ...(isCut ? [] : (['end'] as const))]),
  };
}

/** Sends the script, one piece in each turn of the event loop. */
export async function play(socket: Socket, { pieces, end }: Script): Promise<void> {
  for (const piece of pieces) {
    if (socket.destroyed) return;
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (end === 'reset') reset(socket);
  else if (end === 'destroy') socket.destroy();
  else if (end === 'end') socket.end();
}

const carriers = new WeakMap<Socket, Socket>();

/** Lets `reset` reach the TCP connection below the TLS socket. */
export function carriedBy(socket: TLSSocket, carrier: Socket): TLSSocket {
  carriers.set(socket, carrier);
  return socket;
}

/** Resets the TCP connection. A Unix socket is closed, which resets it if the other side has sent bytes not read. */
export function reset(socket: Socket): void {
  const carrier = socket instanceof TLSSocket ? carriers.get(socket) : socket;
  // WHY: libuv rejects a reset while a socket shuts down, and Node then never closes it, so the process does not end.
  const isEnding = socket.readableEnded || socket.writableEnded;
  if (carrier === undefined || carrier.remoteAddress === undefined || isEnding) socket.destroy();
  else carrier.resetAndDestroy();
}
