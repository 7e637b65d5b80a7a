/** Passkeys: the public halves of the keys with which operators sign in to the console. SOURCE: WebAuthn, level 3. */
import { invalidRequest } from './errors.ts';
import type { Brand } from './names.ts';

/** The id that the authenticator gave to the credential, in base64url. */
export type PasskeyId = Brand<string, 'PasskeyId'>;

export interface Passkey {
  readonly id: PasskeyId;
  /** COSE, in base64url. */
  readonly publicKey: string;
  /** The authenticator's count of signatures; 0 from one that does not count. */
  readonly counter: number;
  /** How a browser reaches the authenticator, such as `internal` and `usb`. */
  readonly transports: readonly string[];
  /** The operator's own name for it. */
  readonly label: string;
  /** Whether the authenticator copies it to other devices. */
  readonly isSynced: boolean;
  readonly addedAt: number;
}

export const MAX_PASSKEYS = 16;
export const MAX_LABEL_LENGTH = 64;
/** SOURCE: WebAuthn, level 3, section 5.8.3: at most 1023 bytes. */
export const PASSKEY_ID = /^[A-Za-z0-9_-]{1,1364}$/;
/** No control characters, marks that change the direction of text, or lone surrogates. */
export const LABEL = String.raw`^[^\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]*$`;
const LABEL_GRAMMAR = new RegExp(LABEL, 'u');

/** @throws INVALID_REQUEST naming `field` and the rule */
export function parsePasskeyId(text: string, field = 'id'): PasskeyId {
  if (!PASSKEY_ID.test(text)) throw invalidRequest(field, 'must be the id of a passkey, in base64url');
  return text as PasskeyId;
}

/** @throws INVALID_REQUEST */
export function parseLabel(text: string): string {
  const { length } = [...text];
  if (length >= 1 && length <= MAX_LABEL_LENGTH && LABEL_GRAMMAR.test(text)) return text;
  throw invalidRequest('label', `must be 1 to ${MAX_LABEL_LENGTH} characters without control characters`);
}
