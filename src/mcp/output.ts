/**
 * What a command printed: read up to a bound, masked when it has ended and it is known what it could have printed, and cut after that.
 */
import type { Readable } from 'node:stream';
import { MASK } from '../masking/masker.ts';
import type { Masking } from '../masking/masking.ts';

/** What is read beyond twice the limit, so that enough is left where masks are shorter than what they hide. */
const SPARE_BYTES = 64 * 1024;
/** Masked at a time: what lies behind the limit needs no masking. */
const STEP_BYTES = 16 * 1024;

export interface CapturedOutput {
  readonly bytes: Uint8Array;
  /** Whether there was more, which was thrown away. */
  readonly isOver: boolean;
  /** Whether it is all of it: what stands at the end was meant to. */
  readonly isWhole: boolean;
}

export interface Output {
  readonly text: string;
  readonly isCut: boolean;
}

/** To the end of the stream, whatever of it is kept: a pipe that is full would stop the program. */
export async function readRaw(stream: Readable, limitBytes: number): Promise<CapturedOutput> {
  // WHY one buffer: a program that writes byte by byte would make millions of them.
  const bytes = Buffer.alloc(2 * limitBytes + SPARE_BYTES);
  let length = 0;
  let isOver = false;
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      const kept = chunk.subarray(0, bytes.length - length);
      bytes.set(kept, length);
      length += kept.length;
      isOver ||= kept.length < chunk.length;
    }
  } catch {
    // It was closed from this side.
    return { bytes: bytes.subarray(0, length), isOver, isWhole: false };
  }
  return { bytes: bytes.subarray(0, length), isOver, isWhole: !isOver };
}

/** ORDER: masked, then cut: a value that the limit cuts in two would not be known by its first half. */
export function maskAndTruncate(
  { bytes, isOver, isWhole }: CapturedOutput,
  masking: Masking,
  limitBytes: number,
): Output {
  const masker = masking.masker();
  const kept: Uint8Array[] = [];
  let room = limitBytes;
  let isCut = isOver;
  const keep = (masked: Uint8Array): void => {
    if (masked.length > room) isCut = true;
    kept.push(masked.subarray(0, room));
    room -= Math.min(masked.length, room);
  };
  for (let at = 0; at < bytes.length && !(isCut && room === 0); at += STEP_BYTES) {
    keep(masker.write(bytes.subarray(at, at + STEP_BYTES)));
  }
  // What came to its own end may end like the beginning of a value by chance: some of that is shown. Of what was cut off, nothing is.
  if (isWhole) keep(masker.release());
  if (masker.isHolding) keep(Buffer.from(MASK));
  return { text: Buffer.concat(kept).toString('utf8'), isCut };
}
