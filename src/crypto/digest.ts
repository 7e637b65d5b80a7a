/** SHA-256 over bytes that come in parts. */
import { createHash } from 'node:crypto';

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
