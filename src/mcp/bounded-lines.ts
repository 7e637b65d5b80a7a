/**
 * Splits standard input into lines of bounded length, one message each. A longer line is discarded and reported, and
 * reading continues with the next one. WHY: the SDK's reader stops permanently when its buffer is full.
 */
import { Transform } from 'node:stream';

const NEWLINE = 0x0a;
const END = Buffer.of(NEWLINE);
/** The part of each end of a long line that is searched for the id: some clients write it first, others last. */
const EDGE_BYTES = 512;
/** Every match is valid JSON. */
const ID = String.raw`"id"\s*:\s*(-?(?:0|[1-9]\d{0,14})|"[^"\\\p{Cc}]{0,100}")`;
const SHORT = String.raw`"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"`;
/**
 * In valid JSON they match only the message's own id, not one in `params` or in a string: only short members precede or
 * follow it.
 */
const FIRST = new RegExp(String.raw`^\s*\{\s*(?:${SHORT}\s*,\s*)*${ID}\s*,`, 'u');
const LAST = new RegExp(String.raw`,\s*${ID}\s*(?:,\s*${SHORT}\s*)*\}\s*$`, 'u');

/** As in JSON-RPC; null when unknown. */
export type MessageId = string | number | null;

/** Emits each line with its line feed as one chunk. Calls `refuse` at the end of a line of more than `maxBytes`. */
export function splitLines(maxBytes: number, refuse: (id: MessageId) => void): Transform {
  // WHY one buffer: a client that writes single bytes would otherwise cause a million allocations.
  const line = Buffer.alloc(maxBytes);
  let length = 0;
  /** The end of a line that is too long; null for other lines. */
  let tail: Buffer | null = null;
  const add = (part: Uint8Array): void => {
    const kept = part.subarray(0, maxBytes - length);
    line.set(kept, length);
    length += kept.length;
    if (kept.length === part.length) return;
    tail = Buffer.concat([tail ?? line.subarray(-EDGE_BYTES), part.subarray(kept.length).subarray(-EDGE_BYTES)]);
    tail = Buffer.from(tail.subarray(-EDGE_BYTES));
  };
  return new Transform({
    readableObjectMode: true,
    transform(chunk: Buffer, _encoding, done) {
      let from = 0;
      for (let to = chunk.indexOf(NEWLINE); to !== -1; to = chunk.indexOf(NEWLINE, from)) {
        add(chunk.subarray(from, to));
        if (tail === null) this.push(Buffer.concat([line.subarray(0, length), END]));
        else refuse(findId(line.toString('utf8', 0, EDGE_BYTES), tail.toString('utf8')));
        [from, length, tail] = [to + 1, 0, null];
      }
      add(chunk.subarray(from));
      done();
    },
  });
}

function findId(beginning: string, end: string): MessageId {
  const found = FIRST.exec(beginning)?.[1] ?? LAST.exec(end)?.[1];
  return found === undefined ? null : (JSON.parse(found) as string | number);
}
