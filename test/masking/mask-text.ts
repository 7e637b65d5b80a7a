// Masks a complete text.
import type { Masking } from '../../src/masking/masking.ts';

export function maskText(masking: Masking, text: string): string {
  const masker = masking.masker();
  return Buffer.concat([masker.write(Buffer.from(text)), masker.end()]).toString();
}
