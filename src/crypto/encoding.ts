/** Strict base64, and the comparison of texts in constant time. */
import { timingSafeEqual } from 'node:crypto';

/** Decodes strict base64. Null if the text does not re-encode to itself. */
export function decodeStrictBase64(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

/** Whether two texts are equal, in constant time for texts of the same length. */
export function timingSafeEqualText(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
