/**
 * Standard input as lines that are not too long: a message a line. One that is longer is not kept, however long it goes on; it is
 * answered with an error, and the next line is read. WHY here: the SDK's own reader gives up for good where its buffer is full.
 */
import { Transform } from 'node:stream';

const NEWLINE = 0x0a;
const END = Buffer.of(NEWLINE);
/** What is looked at of a line that is too long: some clients write the id first, others last. */
const EDGE_BYTES = 512;
/** Each is read by JSON.parse without an error. */
const ID = String.raw`"id"\s*:\s*(-?(?:0|[1-9]\d{0,14})|"[^"\\\p{Cc}]{0,100}")`;
const SHORT = String.raw`"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"`;
/** If the line is JSON at all, what they find is the message's own, and no part of its `params` or of a text: only short members stand between it and an edge. */
const FIRST = new RegExp(String.raw`^\s*\{\s*(?:${SHORT}\s*,\s*)*${ID}\s*,`, 'u');
const LAST = new RegExp(String.raw`,\s*${ID}\s*(?:,\s*${SHORT}\s*)*\}\s*$`, 'u');

/** As JSON-RPC has it; null where it cannot be known. */
export type MessageId = string | number | null;

/** Gives whole lines, each with its end as one chunk. `refuse` is called at the end of each that has more than `mostBytes`. */
export function splitLines(mostBytes: number, refuse: (id: MessageId) => void): Transform {
  // WHY one buffer: a client that writes byte by byte would make a million of them.
  const line = Buffer.alloc(mostBytes);
  let length = 0;
  /** Of a line that is too long. */
  let tail: Buffer | null = null;
  const add = (part: Uint8Array): void => {
    const kept = part.subarray(0, mostBytes - length);
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
