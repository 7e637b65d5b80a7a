/**
 * Parses Ed25519 private keys, in PKCS#8 (PEM, as openssl writes it) or OpenSSH format (as ssh-keygen writes it), to
 * the bytes of PKCS#8. Encrypted keys are rejected: a program cannot enter a passphrase.
 * SOURCE: RFC 8410, section 7; OpenSSH, PROTOCOL.key
 */
const PKCS8 = /^\s*-----BEGIN PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END PRIVATE KEY-----\s*$/;
const OPENSSH =
  /^\s*-----BEGIN OPENSSH PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END OPENSSH PRIVATE KEY-----\s*$/;
/** DER header of PKCS#8, which precedes the 32 bytes of an Ed25519 key. */
const DER_PREFIX = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
const SEED_BYTES = 32;

export type ParsedKey = { readonly pkcs8: Uint8Array<ArrayBuffer> } | { readonly problem: string };

export function parsePrivateKey(text: string): ParsedKey {
  const [, pem] = PKCS8.exec(text) ?? [];
  const [, ssh] = OPENSSH.exec(text) ?? [];
  const body = pem ?? ssh;
  if (body === undefined) return { problem: 'must be PKCS#8 in PEM or an OpenSSH key, without a passphrase' };
  try {
    const bytes = fromBase64(body.replaceAll(/\s/g, ''));
    return pem === undefined ? parseOpenSsh(new Fields(bytes)) : { pkcs8: bytes };
  } catch {
    return { problem: 'is damaged' };
  }
}

/** @throws RangeError for truncated data */
function parseOpenSsh(outer: Fields): ParsedKey {
  if (outer.text(15) !== 'openssh-key-v1\0') return { problem: 'is damaged' };
  const cipher = outer.text();
  if (cipher !== 'none') return { problem: 'has a passphrase; use ssh-agent, or remove it with ssh-keygen -p' };
  outer.text(); // name and options of the key derivation, empty without a passphrase
  outer.text();
  if (outer.number() !== 1) return { problem: 'must be one key' };
  outer.text(); // the public key
  const inner = new Fields(outer.bytes());
  const [check, repeated] = [inner.number(), inner.number()];
  if (check !== repeated) return { problem: 'is damaged' };
  if (inner.text() !== 'ssh-ed25519') return { problem: 'is not an Ed25519 key' };
  inner.text(); // the public key again
  const both = inner.bytes();
  if (both.length !== 2 * SEED_BYTES) return { problem: 'is damaged' };
  return { pkcs8: Uint8Array.from([...DER_PREFIX, ...both.subarray(0, SEED_BYTES)]) };
}

/** Reads SSH's length-prefixed fields in order. @throws RangeError beyond the end */
class Fields {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  number(): number {
    const { buffer, byteOffset, byteLength } = this.#bytes;
    const value = new DataView(buffer, byteOffset, byteLength).getUint32(this.#at);
    this.#at += 4;
    return value;
  }

  bytes(length = this.number()): Uint8Array {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new RangeError('the key is truncated');
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }

  text(length = this.number()): string {
    return new TextDecoder('latin1').decode(this.bytes(length));
  }
}

/** WHY not Buffer: browsers do not provide it. */
export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** @throws DOMException for invalid base64 */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
