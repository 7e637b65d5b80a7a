/**
 * Redacts one response while it streams: header values, trailers, and the body or the messages of a WebSocket. What is
 * released, and when, must not depend on how much of a value has matched: of a body the last bytes are held back until
 * more arrive, a message ends or the body does, whatever they are.
 */
import type { Masker } from '../masking/masker.ts';
import type { Masking } from '../masking/masking.ts';
import { MessageEnds } from './message-ends.ts';
import type { HeaderPairs } from './protocol.ts';

/** Longer than a piece of a value of which each character is written in fifteen bytes. */
export const HELD_BYTES = 1024;
/** Bytes that are matched without a pause: at most 60 steps for each, and less than three milliseconds. */
const SLICE_BYTES = 4096;
/** Steps after which other requests get their turn. */
const STEPS_IN_A_TURN = 50_000;

export class Redactor {
  readonly #masking: Masking;
  readonly #nextTurn: () => Promise<unknown>;
  /** One for all headers and messages: each text ends before the next. */
  #texts: Masker | null = null;
  #body: Masker | null = null;
  /** Masks of the maskers that were given back. */
  #released = 0;
  #ends = new MessageEnds('');
  #stepsBefore = 0;

  /** `nextTurn` is awaited between pieces of the work. */
  constructor(masking: Masking, nextTurn: () => Promise<unknown> = async () => undefined) {
    this.#nextTurn = nextTurn;
    this.#masking = masking;
  }

  get count(): number {
    return this.#released + (this.#texts?.maskCount ?? 0) + (this.#body?.maskCount ?? 0);
  }

  /** Headers are Latin-1 texts of bytes. A header whose name contains a value is removed. */
  async headers(pairs: HeaderPairs): Promise<HeaderPairs> {
    const kept: (readonly [name: string, value: string])[] = [];
    for (const [name, value] of pairs) {
      // WHY not always awaited: a response has many short headers.
      const isShort = name.length + value.length <= SLICE_BYTES;
      const masked = isShort ? this.#maskShort(name) : await this.#mask(name);
      if (masked === name) kept.push([name, isShort ? this.#maskShort(value) : await this.#mask(value)]);
      const turn = this.#turn();
      if (turn !== null) await turn;
    }
    return kept;
  }

  /** The redacted body, as it is decided. */
  async *body(source: AsyncIterable<unknown>, contentType: string): AsyncGenerator<Uint8Array> {
    this.setContentType(contentType);
    for await (const chunk of source) {
      if (!(chunk instanceof Uint8Array)) continue;
      const parts: Uint8Array[] = [];
      for (let from = 0; from < chunk.length; from += SLICE_BYTES) {
        parts.push(this.write(chunk.subarray(from, from + SLICE_BYTES)));
        const turn = this.#turn();
        if (turn !== null) await turn;
      }
      const decided = Buffer.concat(parts);
      if (decided.length > 0) yield decided;
    }
    yield this.end();
  }

  /** A text, such as a message of a WebSocket, redacted whole. */
  async message(payload: Uint8Array): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    const texts = this.#textMasker();
    for (let from = 0; from < payload.length; from += SLICE_BYTES) {
      parts.push(texts.write(payload.subarray(from, from + SLICE_BYTES)));
      const turn = this.#turn();
      if (turn !== null) await turn;
    }
    return Buffer.concat([...parts, texts.end()]);
  }

  /** Call before `write`, with the response's `content-type`. */
  setContentType(contentType: string): void {
    this.#ends = new MessageEnds(contentType);
  }

  /** Returns what is decided of the output: all but the window, or all up to the end of a message. */
  write(chunk: Uint8Array): Uint8Array {
    this.#body ??= this.#masking.masker(HELD_BYTES);
    return this.#body.write(chunk, this.#ends.find(chunk));
  }

  end(): Uint8Array {
    return this.#body?.end() ?? new Uint8Array(0);
  }

  /** Gives its maskers to the next response. Call when all of this one is redacted. */
  release(): void {
    this.#released = this.count;
    for (const masker of [this.#texts, this.#body]) if (masker !== null) this.#masking.reuse(masker);
    [this.#texts, this.#body] = [null, null];
  }

  #textMasker(): Masker {
    this.#texts ??= this.#masking.masker();
    return this.#texts;
  }

  #maskShort(text: string): string {
    const texts = this.#textMasker();
    const before = texts.maskCount;
    const parts = [texts.write(Buffer.from(text, 'latin1')), texts.end()];
    return texts.maskCount === before ? text : Buffer.concat(parts).toString('latin1');
  }

  async #mask(text: string): Promise<string> {
    return Buffer.from(await this.message(Buffer.from(text, 'latin1'))).toString('latin1');
  }

  /** WHY: bytes that are expensive to match must not delay other requests. */
  #turn(): Promise<unknown> | null {
    const steps = (this.#texts?.steps ?? 0) + (this.#body?.steps ?? 0);
    if (steps - this.#stepsBefore < STEPS_IN_A_TURN) return null;
    this.#stepsBefore = steps;
    return this.#nextTurn();
  }
}
