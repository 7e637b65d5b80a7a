/** Frozen vectors. They were made once, without this project's code; no test writes them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { deriveKeys, parseRootKey, type VaultKeys } from '../../src/crypto/keys.ts';

/** The content of the file; its test knows the type. */
export function readVectors<T>(name: string): T {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../vectors', name), 'utf8'));
}

export function keysOf(rootKey: string): VaultKeys {
  const bytes = parseRootKey(rootKey);
  if (bytes === null) throw new Error('the vectors hold no root key');
  return deriveKeys(bytes);
}

/** A root key of a test's own: 32 times the byte. */
export function keysFrom(byte: number): VaultKeys {
  return deriveKeys(new Uint8Array(32).fill(byte));
}

/** Each copy of the bytes with one bit altered. */
export function* flipped(bytes: Uint8Array): Generator<{ altered: Buffer; bit: number }> {
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const altered = Buffer.from(bytes);
    altered[bit >> 3] = (altered[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    yield { altered, bit };
  }
}
