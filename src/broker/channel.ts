/**
 * One end of the socket between the server and the broker's process. It carries many brokered requests, each as a
 * stream. Backpressure on one stream pauses only that stream. SOURCE: docs/decisions.md, "Brokered use".
 */
import type { Duplex } from 'node:stream';
import { ChannelStream } from './channel-stream.ts';
import { decodeMessage, encodeMessage, FRAME, type FrameKind } from './protocol.ts';

/** The payload's length and the stream's number as 32-bit integers, big-endian, then the kind. */
const HEADER_BYTES = 9;
/** Larger than every message: headers are at most 64 KiB, and a value and a list of authorities have limits too. */
const MAX_PAYLOAD_BYTES = 8 * 1024 * 1024;
const MAX_ID = 0xffff_ffff;
/** Up to this size, copying the payload is cheaper than writing a second buffer. */
const MAX_COPIED_BYTES = 4096;
const EMPTY = Buffer.alloc(0);
const MESSAGES: ReadonlySet<number> = new Set([FRAME.open, FRAME.head, FRAME.end]);
const COUNTS: ReadonlySet<number> = new Set([FRAME.credit, FRAME.redactions]);
const isAlwaysComplete = (): boolean => true;

export interface ChannelOptions {
  /** The other side has opened a stream. Only one side of a channel may open streams. */
  opened?(stream: ChannelStream, message: unknown): void;
  /** The socket has closed, and every stream is destroyed. */
  closed(): void;
}

export class Channel {
  readonly #socket: Duplex;
  readonly #options: ChannelOptions;
  readonly #streams = new Map<number, ChannelStream>();
  #lastId = 0;
  #received: Buffer = EMPTY;
  #isCorked = false;
  /** Callbacks that wait until the socket accepts more data. */
  #waiting: (() => void)[] = [];

  constructor(socket: Duplex, options: ChannelOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('drain', () => {
      for (const resume of this.#waiting.splice(0)) resume();
    });
    // A `close` event follows every error or end.
    socket.on('error', () => undefined);
    socket.on('end', () => socket.destroy());
    socket.on('close', () => {
      for (const stream of [...this.#streams.values()]) stream.lose();
      options.closed();
    });
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  open(message: unknown, isComplete: (endMessage: unknown) => boolean): ChannelStream {
    do this.#lastId = (this.#lastId % MAX_ID) + 1;
    while (this.#streams.has(this.#lastId));
    const stream = this.#add(this.#lastId, isComplete);
    this.#send(this.#lastId, FRAME.open, encodeMessage(message));
    return stream;
  }

  close(): void {
    this.#socket.destroy();
  }

  #add(id: number, isComplete: (endMessage: unknown) => boolean): ChannelStream {
    const stream = new ChannelStream({
      send: (kind, payload) => this.#send(id, kind, payload),
      whenWritable: (callback) => {
        if (this.#socket.writableNeedDrain) this.#waiting.push(callback);
        else callback();
      },
      forget: () => this.#streams.delete(id),
      isComplete,
    });
    this.#streams.set(id, stream);
    return stream;
  }

  #send(id: number, kind: FrameKind, payload: Uint8Array = EMPTY): void {
    if (this.#socket.destroyed) return;
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#socket.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        this.#socket.uncork();
      });
    }
    const isCopied = payload.length <= MAX_COPIED_BYTES;
    const frame = Buffer.allocUnsafe(HEADER_BYTES + (isCopied ? payload.length : 0));
    frame.writeUInt32BE(payload.length);
    frame.writeUInt32BE(id, 4);
    frame.writeUInt8(kind, 8);
    if (isCopied) frame.set(payload, HEADER_BYTES);
    this.#socket.write(frame);
    if (!isCopied) this.#socket.write(payload);
  }

  #receive(chunk: Buffer): void {
    const bytes = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    let at = 0;
    // Frames after an invalid one are ignored.
    while (this.isOpen && bytes.length - at >= HEADER_BYTES) {
      const length = bytes.readUInt32BE(at);
      if (length > MAX_PAYLOAD_BYTES) {
        this.close();
        return;
      }
      const start = at + HEADER_BYTES;
      if (start + length > bytes.length) break;
      this.#take(bytes.readUInt32BE(at + 4), bytes.readUInt8(at + 8), bytes.subarray(start, start + length));
      at = start + length;
    }
    this.#received = bytes.subarray(at);
  }

  #take(id: number, kind: number, payload: Buffer): void {
    const message = MESSAGES.has(kind) && payload.length > 0 ? decodeMessage(payload) : null;
    const isInvalid = message === undefined || (COUNTS.has(kind) && payload.length !== 4);
    if (isInvalid || (kind === FRAME.open && (this.#options.opened === undefined || this.#streams.has(id)))) {
      this.close();
      return;
    }
    if (kind === FRAME.open) this.#add(id, isAlwaysComplete);
    const stream = this.#streams.get(id);
    // After a reset, frames can still arrive that were sent before the other side knew of it.
    if (stream === undefined) return;
    try {
      this.#dispatch(stream, kind, payload, message);
    } catch {
      // WHY: an exception about one stream would otherwise end the process, and with it every other stream.
      this.#send(id, FRAME.reset);
      stream.lose();
    }
  }

  #dispatch(stream: ChannelStream, kind: number, payload: Buffer, message: unknown): void {
    if (kind === FRAME.open) this.#options.opened?.(stream, message);
    else if (kind === FRAME.head) stream.emit('head', message);
    else if (kind === FRAME.data) stream.receive(payload);
    else if (kind === FRAME.end) stream.receiveEnd(message);
    else if (kind === FRAME.reset) stream.receiveReset();
    else if (kind === FRAME.credit) stream.receiveCredit(payload.readUInt32BE());
    else if (kind === FRAME.redactions) stream.receiveRedactions(payload.readUInt32BE());
  }
}
