/**
 * The body of a request that is streamed, in chunks of a useful size, and at a bounded rate of chunks. WHY: a client
 * may send single bytes. Each costs as much processor time as a large chunk, and while the reader waits, each would be
 * kept as an object of some hundred bytes.
 */
import { Readable } from 'node:stream';

const MAX_MERGED_BYTES = 64 * 1024;
/** Smaller chunks are charged. */
const SMALL_CHUNK_BYTES = 512;
const MS_PER_SMALL_CHUNK = 0.5;
/** The lead that a client may have before the body is paused for as long. */
const MAX_AHEAD_MS = 50;

export class CoalescingBody extends Readable {
  readonly #source: Readable;
  #merged: Buffer | null = null;
  #length = 0;
  #isWanted = false;
  #hasEnded = false;
  #aheadMs = 0;
  #chargedAt = performance.now();
  #pause: NodeJS.Timeout | null = null;

  constructor(source: Readable) {
    super({ highWaterMark: 1 });
    this.#source = source;
    this.on('error', () => undefined);
    if (source.destroyed) this.destroy(new Error('the body broke off'));
    source.on('data', (chunk: Buffer) => this.#add(chunk));
    source.on('end', () => {
      this.#hasEnded = true;
      if (this.#isWanted) this.#deliver();
    });
    source.on('error', (error) => this.destroy(error));
    source.on('close', () => {
      if (!this.#hasEnded) this.destroy(new Error('the body broke off'));
    });
  }

  override _read(): void {
    this.#isWanted = true;
    this.#deliver();
  }

  /** Later chunks are dropped, as Node does for a body without a reader. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#merged = null;
    this.#length = 0;
    this.#resume();
    done(error);
  }

  #add(chunk: Buffer): void {
    if (chunk.length < SMALL_CHUNK_BYTES) this.#charge();
    if (this.destroyed) return;
    if (this.#isWanted && this.#length === 0) {
      this.#isWanted = false;
      this.push(chunk);
      return;
    }
    const needed = this.#length + chunk.length;
    if (this.#merged === null || needed > this.#merged.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, Math.min(MAX_MERGED_BYTES, 2 * needed)));
      this.#merged?.copy(larger, 0, 0, this.#length);
      this.#merged = larger;
    }
    this.#length += chunk.copy(this.#merged, this.#length);
    if (this.#length >= MAX_MERGED_BYTES) this.#source.pause();
  }

  #charge(): void {
    this.#aheadMs += MS_PER_SMALL_CHUNK;
    if (this.#aheadMs <= MAX_AHEAD_MS || this.#pause !== null) return;
    const now = performance.now();
    this.#aheadMs = Math.max(0, this.#aheadMs - (now - this.#chargedAt));
    this.#chargedAt = now;
    if (this.#aheadMs <= MAX_AHEAD_MS) return;
    this.#source.pause();
    this.#pause = setTimeout(() => {
      this.#pause = null;
      this.#resume();
    }, this.#aheadMs);
  }

  #resume(): void {
    if (this.#pause === null && this.#length < MAX_MERGED_BYTES) this.#source.resume();
  }

  #deliver(): void {
    if (this.#length > 0 && this.#merged !== null) {
      const bytes = this.#merged.subarray(0, this.#length);
      this.#merged = null;
      this.#length = 0;
      this.#isWanted = false;
      this.#resume();
      this.push(bytes);
    } else if (this.#hasEnded) this.push(null);
  }
}
