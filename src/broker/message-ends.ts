/**
 * Finds where the messages of a streamed body end, so that a message does not wait for the next one. INVARIANT: only
 * the bytes decide, never what has matched; and at an end no value continues, but for one that itself contains it.
 */

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const EVENTS = /^text\/event-stream\b/i;
/** Types of documents. A stream of documents, such as a watched list, may have the type of one document. */
const DOCUMENTS = /^application\/(?:x-ndjson|ndjson|jsonl|x-jsonlines|json-seq|json|[\w.-]{1,40}\+json(?:-seq)?)\b/i;
/** A brace or a bracket. WHY not any line: base64 in lines would be divided at each. */
const DOCUMENT_ENDS = new Set(Buffer.from('}]'));

export class MessageEnds {
  readonly #isEvents: boolean;
  readonly #isDocuments: boolean;
  /** The last byte, and the last one that is no blank. */
  #last = 0;
  #lastMark = 0;
  /** Whether the line has no byte yet, and is not the first. */
  #isEmptyLine = false;

  constructor(contentType: string) {
    this.#isEvents = EVENTS.test(contentType.trim());
    this.#isDocuments = DOCUMENTS.test(contentType.trim());
  }

  /** The places after the ends in the chunk. An event ends with an empty line, a document with its line. */
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

  /** The last byte that is no blank; if there is none, that of what came before in the line. */
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
