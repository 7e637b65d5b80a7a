/**
 * Shares of a slot's secret: any `threshold` of them restore it, and fewer disclose nothing. A share is a text of
 * base32 in groups; its checksum detects a typing error. SOURCE: docs/formats.md, "Keys".
 */
import { hash, randomBytes } from 'node:crypto';
import { combine, split } from 'shamir-secret-sharing';
import { invalidRequest } from '../engine/errors.ts';
import { Secret } from '../vault/credentials/credential.ts';
import type { SlotParameters } from '../vault/keys/keyset.ts';
import { decodeStrictBase64, KEY_BYTES } from './primitives.ts';

const FORMAT_VERSION = 1;
const GROUP_BYTES = 4;
const HEADER_BYTES = 3 + GROUP_BYTES;
const CHECKSUM_BYTES = 5;
const DIGEST_BYTES = 16;
const SHARE_BYTES = HEADER_BYTES + KEY_BYTES + 1 + CHECKSUM_BYTES;
const MIN_THRESHOLD = 2;
/** An index is one byte, and not zero. */
const MAX_SHARES = 255;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const GROUP_LETTERS = 6;

export interface Share {
  /** 8 hexadecimal digits, equal for all shares of a secret. */
  readonly group: string;
  readonly threshold: number;
  /** The number of the share, from 1. */
  readonly index: number;
  readonly bytes: Uint8Array;
}

export interface NewShares {
  readonly secret: Uint8Array;
  readonly group: string;
  /** Base64 of the hashes of all shares in order, by which the server recognises each of them. */
  readonly digests: string;
  /** One text for each holder. */
  readonly shares: readonly Secret[];
}

/** A new secret and its shares: 2 ≤ threshold ≤ count ≤ 255. */
export async function newShares(count: number, threshold: number): Promise<NewShares> {
  const secret = new Uint8Array(randomBytes(KEY_BYTES));
  const group = randomBytes(GROUP_BYTES);
  const parts = await split(secret, count, threshold);
  const shares = parts.map(
    (bytes, index) => new Secret(formatShare({ group: group.toString('hex'), threshold, index: index + 1, bytes })),
  );
  const digests = Buffer.concat(parts.map(digestOf)).toString('base64');
  return { secret, group: group.toString('hex'), digests, shares };
}

/** @throws INVALID_REQUEST for parameters with which no shares open the slot */
export function assertShareParameters({ group, threshold, shares, digests }: SlotParameters): void {
  if (!/^[0-9a-f]{8}$/.test(String(group))) {
    throw invalidRequest('parameters.group', `must be ${2 * GROUP_BYTES} hexadecimal digits in lower case`);
  }
  const count = toCount(shares, MAX_SHARES);
  if (count === null) {
    throw invalidRequest('parameters.shares', `must be an integer from ${MIN_THRESHOLD} to ${MAX_SHARES}`);
  }
  if (toCount(threshold, count) === null) {
    throw invalidRequest('parameters.threshold', `must be an integer from ${MIN_THRESHOLD} to the number of shares`);
  }
  if (decodeStrictBase64(String(digests))?.length !== count * DIGEST_BYTES) {
    throw invalidRequest('parameters.digests', `must be the base64 of ${DIGEST_BYTES} bytes for each share`);
  }
}

function toCount(value: unknown, max: number): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= MIN_THRESHOLD && value <= max ? value : null;
}

/** Whether it is one of the shares whose digests are in the slot's parameters. A forged share has no effect. */
export function isShareOf({ index, bytes }: Share, { digests, threshold }: SlotParameters): boolean {
  const known = Buffer.from(String(digests), 'base64').subarray((index - 1) * DIGEST_BYTES, index * DIGEST_BYTES);
  return index > 0 && Number(threshold) >= 2 && known.equals(digestOf(bytes));
}

/** The hash of a share. It discloses nothing, because a share has 32 random bytes. */
function digestOf(bytes: Uint8Array): Buffer {
  return hash('sha256', bytes, 'buffer').subarray(0, DIGEST_BYTES);
}

export function formatShare({ group, threshold, index, bytes }: Share): string {
  const body = Buffer.concat([Buffer.from([FORMAT_VERSION, threshold, index]), Buffer.from(group, 'hex'), bytes]);
  return toText(Buffer.concat([body, checksum(body)]));
}

/** Null if the text is not a share, or was mistyped. Case, spaces and hyphens do not matter. */
export function parseShare(text: string): Share | null {
  const bytes = fromText(text);
  if (bytes?.length !== SHARE_BYTES || bytes[0] !== FORMAT_VERSION) return null;
  const body = bytes.subarray(0, -CHECKSUM_BYTES);
  if (!checksum(body).equals(bytes.subarray(-CHECKSUM_BYTES))) return null;
  const [, threshold = 0, index = 0] = body;
  return {
    group: body.subarray(3, HEADER_BYTES).toString('hex'),
    threshold,
    index,
    bytes: new Uint8Array(body.subarray(HEADER_BYTES)),
  };
}

/** The secret of shares with different indices. Shares of different secrets yield a secret that opens nothing. */
export function combineShares(shares: readonly Share[]): Promise<Uint8Array> {
  return combine(shares.map(({ bytes }) => bytes));
}

function checksum(body: Uint8Array): Buffer {
  return Buffer.from(hash('sha256', body, 'buffer')).subarray(0, CHECKSUM_BYTES);
}

function toText(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const letters = (bits.match(/.{5}/g) ?? []).map((five) => ALPHABET[Number.parseInt(five, 2)]).join('');
  return (letters.match(new RegExp(`.{1,${GROUP_LETTERS}}`, 'g')) ?? []).join('-');
}

function fromText(text: string): Buffer | null {
  const letters = text.replaceAll(/[\s-]/g, '').toUpperCase();
  if (letters.length !== (SHARE_BYTES * 8) / 5 || !/^[A-Z2-7]+$/.test(letters)) return null;
  const bits = [...letters].map((letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, '0')).join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((eight) => Number.parseInt(eight, 2)));
}
