/** Redacts one response while it streams: header values, trailers and the body, in every form of the values. */
import type { Masker } from '../masking/masker.ts';
import type { Masking } from '../masking/masking.ts';
import type { HeaderPairs } from './protocol.ts';

const LF = 0x0a;
const CR = 0x0d;
/** Bodies that are sequences of messages, each of which ends with a line. */
const MESSAGES = /^(?:text\/event-stream|application\/(?:x-ndjson|ndjson|jsonl|json-seq|stream\+json))\b/i;

export class Redactor {
  readonly #body: Masker;
  /** One for all: each text ends before the next. */
  readonly #headers: Masker;
  #isMessages = false;

  constructor(masking: Masking) {
    this.#body = masking.masker();
    this.#headers = masking.masker();
  }

  get count(): number {
    return this.#headers.maskCount + this.#body.maskCount;
  }

  /** Headers are Latin-1 texts of bytes. A header whose name contains a value is removed. */
  headers(pairs: HeaderPairs): HeaderPairs {
    return pairs.flatMap(([name, value]) => (this.#mask(name) === name ? [[name, this.#mask(value)] as const] : []));
  }

  /** Call before `write`, with the response's `content-type`. */
  setContentType(contentType: string): void {
    this.#isMessages = MESSAGES.test(contentType.trim());
  }

  /** Returns what the chunk decides of the output; empty while all of it may become part of a match. */
  write(chunk: Uint8Array): Uint8Array {
    const decided = this.#body.write(chunk);
    const last = chunk.at(-1);
    if (!this.#isMessages || (last !== LF && last !== CR) || !this.#body.isHolding) return decided;
    // WHY: the end of a message can look like the start of a value, whose rest would arrive with the next message, in
    // a minute or never. Of a value's start at most a quarter is sent, and its rest is redacted all the same.
    return Buffer.concat([decided, this.#body.release()]);
  }

  /**
   * For messages with lengths, which a mask would break: returns the bytes as they are. Of a value's start at most a
   * quarter is passed on. @throws Error if the bytes complete a value; then nothing more may be sent
   */
  unchanged(chunk: Uint8Array): Uint8Array {
    const before = this.#body.maskCount;
    const bytes = Buffer.concat([this.#body.write(chunk), this.#body.release()]);
    if (this.#body.maskCount !== before) throw new Error('a message contains a value');
    return bytes;
  }

  end(): Uint8Array {
    return this.#body.end();
  }

  #mask(text: string): string {
    const decided = this.#headers.write(Buffer.from(text, 'latin1'));
    return Buffer.concat([decided, this.#headers.end()]).toString('latin1');
  }
}
