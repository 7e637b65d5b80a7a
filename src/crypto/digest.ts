/** SHA-256 of texts, and of bytes that come in parts. */
import { createHash, hash } from 'node:crypto';

export class Sha256 {
  readonly #hash = createHash('sha256');

  update(bytes: Uint8Array): void {
    this.#hash.update(bytes);
  }

  /** In hexadecimal. Ends the digest. */
  hex(): string {
    return this.#hash.digest('hex');
  }
}

export function sha256Base64(text: string): string {
  return hash('sha256', text, 'base64');
}
