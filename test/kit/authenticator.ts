/**
 * An authenticator in software, which makes passkeys of ES256 and real signatures with them, and breaks the rules that
 * a test asks it to break. SOURCE: WebAuthn, level 3, sections 6.1, 6.3 and 6.5; RFC 8949.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const BACKUP_ELIGIBLE = 0x08;
const BACKED_UP = 0x10;
const HAS_CREDENTIAL = 0x40;

type Cbor = number | string | Uint8Array | ReadonlyMap<number | string, Cbor>;

function cborHead(major: number, value: number): Buffer {
  if (value < 24) return Buffer.of((major << 5) | value);
  if (value < 256) return Buffer.of((major << 5) | 24, value);
  return Buffer.of((major << 5) | 25, value >> 8, value & 0xff);
}

function toCbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? cborHead(1, -1 - value) : cborHead(0, value);
  if (typeof value === 'string') return Buffer.concat([cborHead(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (value instanceof Uint8Array) return Buffer.concat([cborHead(2, value.length), value]);
  const pairs = [...value].flatMap(([key, inner]) => [toCbor(key), toCbor(inner)]);
  return Buffer.concat([cborHead(5, value.size), ...pairs]);
}

const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest();
const base64url = (data: string | Uint8Array): string => Buffer.from(data).toString('base64url');

/** What a browser passes to the authenticator, and what a test changes about it. */
export interface Page {
  /** The origin, by default the page's. `rpId` is by default the one in the options. */
  readonly origin: string;
  readonly rpId?: string;
  readonly isVerified?: boolean;
  readonly challenge?: string;
  readonly type?: string;
  readonly crossOrigin?: boolean;
}

interface CreationOptions {
  readonly rp: { readonly id: string };
  readonly user: { readonly id: string };
  readonly challenge: string;
}

export class Authenticator {
  readonly #key: KeyObject;
  readonly #publicKey: Map<number, Cbor>;
  readonly id: string;
  #userHandle = '';
  /** Incremented with each signature. Once a test sets it to 0, it stays 0. */
  counter: number;

  /** `padding`: the bytes of a member of the public key that no algorithm uses. */
  constructor(counter = 0, id = base64url(randomBytes(32)), padding = 0) {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
    this.#key = privateKey;
    // SOURCE: RFC 9053, section 7.1: key type EC2, ES256, curve P-256.
    this.#publicKey = new Map<number, Cbor>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(x, 'base64url')],
      [-3, Buffer.from(y, 'base64url')],
    ]);
    if (padding > 0) this.#publicKey.set(99, Buffer.alloc(padding));
    this.id = id;
    this.counter = counter;
  }

  /** `attestation`: the format and statement, in place of `none`. */
  register(
    options: CreationOptions,
    page: Page,
    attestation: { readonly fmt: string; readonly attStmt: ReadonlyMap<string, Cbor> } = {
      fmt: 'none',
      attStmt: new Map(),
    },
  ) {
    this.#userHandle = options.user.id;
    const id = Buffer.from(this.id, 'base64url');
    const length = Buffer.of(id.length >> 8, id.length & 0xff);
    const credential = Buffer.concat([Buffer.alloc(16), length, id, toCbor(this.#publicKey)]);
    const authData = Buffer.concat([this.#data(page.rpId ?? options.rp.id, page, HAS_CREDENTIAL), credential]);
    const object = new Map<string, Cbor>([
      ['fmt', attestation.fmt],
      ['attStmt', attestation.attStmt],
      ['authData', authData],
    ]);
    return this.#response({
      clientDataJSON: clientData('webauthn.create', options.challenge, page),
      attestationObject: base64url(toCbor(object)),
      transports: ['internal', 'hybrid'],
    });
  }

  signIn(options: { readonly rpId: string; readonly challenge: string }, page: Page, userHandle = this.#userHandle) {
    if (this.counter > 0) this.counter += 1;
    const authenticatorData = this.#data(page.rpId ?? options.rpId, page, 0);
    const clientDataJSON = clientData('webauthn.get', options.challenge, page);
    const signed = Buffer.concat([authenticatorData, sha256(Buffer.from(clientDataJSON, 'base64url'))]);
    return this.#response({
      clientDataJSON,
      authenticatorData: base64url(authenticatorData),
      signature: base64url(sign('sha256', signed, this.#key)),
      userHandle,
    });
  }

  #data(rpId: string, { isVerified = true }: Page, more: number): Buffer {
    const flags = USER_PRESENT | (isVerified ? USER_VERIFIED : 0) | BACKUP_ELIGIBLE | BACKED_UP | more;
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(this.counter);
    return Buffer.concat([sha256(rpId), Buffer.of(flags), counter]);
  }

  #response<T>(response: T) {
    const { id } = this;
    return {
      id,
      rawId: id,
      type: 'public-key' as const,
      authenticatorAttachment: 'platform' as const,
      clientExtensionResults: {},
      response,
    };
  }
}

function clientData(usual: string, asked: string, page: Page): string {
  const { origin, challenge = asked, type = usual, crossOrigin = false } = page;
  return base64url(JSON.stringify({ type, challenge, origin, crossOrigin }));
}
