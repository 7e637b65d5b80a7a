/**
 * One brokered request on the channel. The readable side carries data from the other process, the writable side data to
 * it. The event `head` carries the message that precedes the bytes.
 */
import { Duplex } from 'node:stream';
import { encodeMessage, FRAME, type FrameKind } from './protocol.ts';

/** How much one side may send before the other has read it. A longer chunk is sent whole. */
const WINDOW_BYTES = 256 * 1024;
/**
 * Cost of a chunk in addition to its bytes. WHY: a window of single bytes would need a hundred times as much memory.
 */
const CHUNK_COST_BYTES = 256;
/** Credit is returned in portions, because each is a frame. */
const CREDIT_BYTES = WINDOW_BYTES / 2;

export interface ChannelStreamOptions {
  send(kind: FrameKind, payload?: Uint8Array): void;
  /** Calls back when the socket accepts more data. */
  whenWritable(callback: () => void): void;
  /** Neither side will send more. */
  forget(): void;
  /** Whether the last message ends a complete body. If not, the readable side fails after all data was read. */
  isComplete(endMessage: unknown): boolean;
}

export class ChannelStream extends Duplex {
  readonly #options: ChannelStreamOptions;
  /** Received chunks that are not yet read. WHY not in the buffer of the base class: an error would discard it. */
  readonly #chunks: Uint8Array[] = [];
  #isWanted = false;
  #hasEnded = false;
  #hasSentEnd = false;
  #isLost = false;
  #isReset = false;
  #bytesRead = 0;
  #redactions = 0;
  #uncredited = 0;
  #credit = WINDOW_BYTES;
  #resume: (() => void) | null = null;
  #ownEndMessage: unknown = null;
  #endMessage: unknown = null;

  constructor(options: ChannelStreamOptions) {
    // WHY so low: waiting chunks are merged at their source, and not kept one by one here.
    super({ readableHighWaterMark: 1, writableHighWaterMark: 1 });
    this.#options = options;
    this.on('error', () => undefined);
  }

  /** The last message of the other side; null before it arrives, or if there is none. */
  get endMessage(): unknown {
    return this.#endMessage;
  }

  get bytesRead(): number {
    return this.#bytesRead;
  }

  get redactions(): number {
    return this.#redactions;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  get isReset(): boolean {
    return this.#isReset;
  }

  sendHead(message: unknown): void {
    if (!this.destroyed) this.#options.send(FRAME.head, encodeMessage(message));
  }

  /** Sends the count before the bytes that contain these redactions. */
  sendRedactions(count: number): void {
    if (!this.destroyed) this.#options.send(FRAME.redactions, encodeCount(count));
  }

  endWith(message: unknown): void {
    this.#ownEndMessage = message;
    this.end();
  }

  /** WHY a copy of a waiting chunk: the original would keep the whole received buffer in memory. */
  receive(chunk: Uint8Array): void {
    this.#chunks.push(this.#isWanted ? chunk : new Uint8Array(chunk));
    if (this.#isWanted) this.#deliver();
  }

  receiveRedactions(count: number): void {
    this.#redactions = count;
  }

  receiveEnd(message: unknown): void {
    this.#endMessage = message;
    this.#hasEnded = true;
    if (this.#isWanted) this.#deliver();
  }

  receiveCredit(bytes: number): void {
    this.#credit += bytes;
    const resume = this.#resume;
    if (this.#credit <= 0 || resume === null) return;
    this.#resume = null;
    resume();
  }

  receiveReset(): void {
    this.#isReset = true;
    this.destroy(new Error('the stream was reset'));
  }

  /** Call when the other side's process has ended, or can no longer be trusted. */
  lose(): void {
    this.#isLost = true;
    this.destroy(new Error('the broker was lost'));
  }

  override _read(): void {
    this.#isWanted = true;
    this.#deliver();
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void): void {
    this.#options.send(FRAME.data, chunk);
    this.#credit -= costOf(chunk);
    const next = (): void => this.#options.whenWritable(done);
    if (this.#credit > 0) next();
    else this.#resume = next;
  }

  override _final(done: () => void): void {
    this.#options.send(FRAME.end, this.#ownEndMessage === null ? undefined : encodeMessage(this.#ownEndMessage));
    this.#hasSentEnd = true;
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const isOver = this.#isLost || this.#isReset || (this.#hasSentEnd && this.#hasEnded);
    if (!isOver) this.#options.send(FRAME.reset);
    this.#options.forget();
    done(error);
  }

  #deliver(): void {
    const chunk = this.#chunks.shift();
    if (chunk === undefined && !this.#hasEnded) return;
    this.#isWanted = false;
    if (chunk === undefined) {
      if (this.#options.isComplete(this.#endMessage)) this.push(null);
      else this.destroy(new Error('the body broke off'));
      return;
    }
    this.#bytesRead += chunk.length;
    this.#uncredited += costOf(chunk);
    if (this.#uncredited >= CREDIT_BYTES) {
      this.#options.send(FRAME.credit, encodeCount(this.#uncredited));
      this.#uncredited = 0;
    }
    this.push(chunk);
  }
}

const costOf = (chunk: Uint8Array): number => chunk.length + CHUNK_COST_BYTES;

function encodeCount(count: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(count);
  return payload;
}
