/**
 * The output of a command or an upstream: read up to a limit, masked after its end, when all values that it can contain
 * are known, then truncated.
 */
import type { Readable } from 'node:stream';
import { MASK } from '../masking/masker.ts';
import type { Masking } from '../masking/masking.ts';

/** Read in addition to twice the limit, because masks are shorter than the values that they replace. */
const SPARE_BYTES = 64 * 1024;
/** Bytes masked at a time: output beyond the limit is not masked. */
const STEP_BYTES = 16 * 1024;

export interface CapturedOutput {
  readonly bytes: Uint8Array;
  /** Whether further output was discarded. */
  readonly isOver: boolean;
  /** Whether the output is complete, so that its end is the command's own. */
  readonly isWhole: boolean;
}

export interface ShownOutput {
  readonly text: string;
  readonly isCut: boolean;
}

/** Reads to the end of the stream and keeps a part. WHY to the end: a full pipe would block the program. */
export async function readRaw(stream: Readable, limitBytes: number): Promise<CapturedOutput> {
  // WHY one buffer: a program that writes single bytes would otherwise cause millions of allocations.
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
    // The stream was closed by this server.
    return { bytes: bytes.subarray(0, length), isOver, isWhole: false };
  }
  return { bytes: bytes.subarray(0, length), isOver, isWhole: !isOver };
}

export function maskAndTruncate(captured: CapturedOutput, masking: Masking, limitBytes: number): ShownOutput {
  const { bytes, isCut } = maskAndTruncateBytes(captured, masking, limitBytes);
  return { text: bytes.toString('utf8'), isCut };
}

/** ORDER: masked, then truncated: half of a value that the limit divides would not be recognised. */
export function maskAndTruncateBytes(
  { bytes, isOver, isWhole }: CapturedOutput,
  masking: Masking,
  limitBytes: number,
): { readonly bytes: Buffer; readonly isCut: boolean } {
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
  // Complete output may end like the beginning of a value by chance, and a part of that is shown. Of truncated output
  // nothing is.
  if (isWhole) keep(masker.release());
  if (masker.isHolding) keep(Buffer.from(MASK));
  return { bytes: Buffer.concat(kept), isCut };
}
