/**
 * Redacts one response while it streams: header values, trailers, and the body or the messages of a WebSocket. The
 * released bytes, and the time of their release, must not depend on how much of a value has matched. The last bytes of
 * a body are therefore always held back until more bytes arrive, or until a message or the body ends.
 */
import type { Masker, Masking } from '../masking/masking.ts';
import type { HeaderPairs } from './protocol.ts';
import { type TurnShare, UNLIMITED } from './turns.ts';

/** Longer than a piece of a value in which each character is written in fifteen bytes. */
export const HELD_BYTES = 1024;
/** Bytes that are matched without a pause, in a few milliseconds. A byte takes at most 60 steps. */
const SLICE_BYTES = 4096;
/** The fixed cost of decoding and sending a message, a chunk or a slice: about ten microseconds. */
const PIECE_STEPS = 500;

export class Redactor {
  readonly #masking: Masking;
  readonly #share: TurnShare;
  /** One masker for all headers and messages, because each text ends before the next begins. */
  #texts: Masker | null = null;
  #body: Masker | null = null;
  /** The masks counted by maskers that were already released. */
  #released = 0;
  #ends = new MessageEnds('');
  #stepsBefore = 0;

  constructor(masking: Masking, share: TurnShare = UNLIMITED) {
    this.#share = share;
    this.#masking = masking;
  }

  get count(): number {
    return this.#released + (this.#texts?.maskCount ?? 0) + (this.#body?.maskCount ?? 0);
  }

  /** Headers are Latin-1 texts of bytes. A header whose name contains a value is removed. */
  async headers(pairs: HeaderPairs): Promise<HeaderPairs> {
    const kept: (readonly [name: string, value: string])[] = [];
    for (const [name, value] of pairs) {
      const turn = this.#share.ready();
      if (turn !== null) await turn;
      // WHY not always awaited: a response has many short headers.
      const isShort = name.length + value.length <= SLICE_BYTES;
      const masked = isShort ? this.#maskShort(name) : await this.#mask(name);
      if (masked === name) kept.push([name, isShort ? this.#maskShort(value) : await this.#mask(value)]);
      this.#spend();
    }
    return kept;
  }

  async *body(
    source: AsyncIterable<unknown>,
    contentType: string,
    onChunk: () => void = () => undefined,
  ): AsyncGenerator<Uint8Array> {
    this.setContentType(contentType);
    for await (const chunk of source) {
      onChunk();
      if (!(chunk instanceof Uint8Array)) continue;
      const decided = await this.#inSlices(chunk, (slice) => this.write(slice));
      if (decided.length > 0) yield decided;
    }
    yield this.end();
  }

  /** A text, such as a message of a WebSocket, redacted whole. */
  async message(payload: Uint8Array): Promise<Uint8Array> {
    const texts = this.#textMasker();
    const decided = await this.#inSlices(payload, (slice) => texts.write(slice));
    return Buffer.concat([decided, texts.end()]);
  }

  /** Call before `write`, with the response's `content-type`. */
  setContentType(contentType: string): void {
    this.#ends = new MessageEnds(contentType);
  }

  /** Returns the output that is decided: all but the window, or everything up to the end of a message. */
  write(chunk: Uint8Array): Uint8Array {
    this.#body ??= this.#masking.masker(HELD_BYTES);
    return this.#body.write(chunk, this.#ends.find(chunk));
  }

  end(): Uint8Array {
    return this.#body?.end() ?? new Uint8Array(0);
  }

  /** Returns its maskers for the next response. Call when all of this response is redacted. */
  release(): void {
    this.#released = this.count;
    for (const masker of [this.#texts, this.#body]) if (masker !== null) this.#masking.reuse(masker);
    [this.#texts, this.#body, this.#stepsBefore] = [null, null, 0];
  }

  async #inSlices(bytes: Uint8Array, write: (slice: Uint8Array) => Uint8Array): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for (let from = 0; from === 0 || from < bytes.length; from += SLICE_BYTES) {
      const turn = this.#share.ready();
      if (turn !== null) await turn;
      parts.push(write(bytes.subarray(from, from + SLICE_BYTES)));
      this.#spend(PIECE_STEPS);
    }
    return Buffer.concat(parts);
  }

  #textMasker(): Masker {
    this.#texts ??= this.#masking.masker();
    return this.#texts;
  }

  #maskShort(text: string): string {
    const texts = this.#textMasker();
    const before = texts.maskCount;
    const masked = texts.text(Buffer.from(text, 'latin1'));
    return texts.maskCount === before ? text : Buffer.from(masked).toString('latin1');
  }

  async #mask(text: string): Promise<string> {
    return Buffer.from(await this.message(Buffer.from(text, 'latin1'))).toString('latin1');
  }

  /** WHY steps and not bytes: some bytes are expensive to match, and must not delay other requests. */
  #spend(fixedSteps = 0): void {
    const steps = (this.#texts?.steps ?? 0) + (this.#body?.steps ?? 0);
    this.#share.spend(steps - this.#stepsBefore + fixedSteps);
    this.#stepsBefore = steps;
  }
}

// Finds the ends of messages in a streamed body, so that a message does not wait for the next one. INVARIANT: only the
// bytes decide, never a match. No value continues over an end, except one that itself contains such an end.

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const EVENTS = /^text\/event-stream\b/i;
/**
 * Content types of documents. A stream of documents, such as a watched list, may have the type of a single document.
 */
const DOCUMENTS = /^application\/(?:x-ndjson|ndjson|jsonl|x-jsonlines|json-seq|json|[\w.-]{1,40}\+json(?:-seq)?)\b/i;
/** The last byte of a document, a brace or a bracket. WHY not every line: base64 in lines would be divided at each. */
const DOCUMENT_ENDS = new Set(Buffer.from('}]'));

class MessageEnds {
  readonly #isEvents: boolean;
  readonly #isDocuments: boolean;
  /** The last byte, and the last byte that is no blank. */
  #last = 0;
  #lastMark = 0;
  /** Whether the line contains no byte yet, and is not the first. */
  #isEmptyLine = false;

  constructor(contentType: string) {
    this.#isEvents = EVENTS.test(contentType.trim());
    this.#isDocuments = DOCUMENTS.test(contentType.trim());
  }

  /** The positions after the ends in the chunk. An event ends with an empty line, a document with its line. */
  find(chunk: Uint8Array): number[] {
    if (this.#isEvents) return this.#findEvents(chunk);
    return this.#isDocuments ? this.#findDocuments(chunk) : [];
  }

  #findEvents(chunk: Uint8Array): number[] {
    const ends: number[] = [];
    for (const [at, byte] of chunk.entries()) {
      if (byte === LF) {
        if (this.#isEmptyLine) ends.push(at + 1);
        this.#isEmptyLine = true;
      } else if (byte === CR) {
        if (this.#last === CR) ends.push(at + 1);
      } else this.#isEmptyLine = false;
      this.#last = byte;
    }
    return ends;
  }

  /** The last byte of the line that is no blank, in these bytes or in previous ones. */
  #markOf(bytes: Uint8Array): number {
    return bytes[bytes.findLastIndex((byte) => byte > SPACE)] ?? this.#lastMark;
  }

  #findDocuments(chunk: Uint8Array): number[] {
    const ends: number[] = [];
    let lineStart = 0;
    for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, lineStart)) {
      if (DOCUMENT_ENDS.has(this.#markOf(chunk.subarray(lineStart, at)))) ends.push(at + 1);
      this.#lastMark = LF;
      lineStart = at + 1;
    }
    this.#lastMark = this.#markOf(chunk.subarray(lineStart));
    return ends;
  }
}
