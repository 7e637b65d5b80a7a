/**
 * What a model gets of an upstream's response. Everything in it is untrusted: values in use are masked, invisible
 * characters are escaped, and headers and body are truncated to what a model can read.
 */
import type { UseResponse } from '../client/types.ts';
import type { Secret } from '../core/secret.ts';
import { createMasking, type Masking } from '../masking/masking.ts';
import { maskAndTruncate, maskAndTruncateBytes } from './output.ts';
import { escapeInvisible } from './untrusted.ts';

const MAX_HEADERS = 64;
const MAX_HEADER_BYTES = 1024;
/** Cookies are secrets of the upstream, and a model cannot send them. */
const OMITTED_HEADERS: ReadonlySet<string> = new Set(['set-cookie', 'set-cookie2']);

export interface ShownResponse {
  readonly headers: Record<string, string | string[]>;
  readonly body: string;
  readonly encoding: 'utf8' | 'base64';
  readonly isCut: boolean;
  readonly areHeadersCut: boolean;
}

export function showResponse(response: UseResponse, values: readonly Secret[], maxBodyBytes: number): ShownResponse {
  const masking = createMasking(values.map((value) => ['', value]));
  const { body, body_encoding: encoding, truncated: isOver } = response;
  const captured = { bytes: Buffer.from(body, encoding), isOver, isWhole: !isOver };
  const { bytes, isCut } = maskAndTruncateBytes(captured, masking, maxBodyBytes);
  const text = toText(bytes, isCut);
  const visible = text === null ? null : escapeInvisible(text);
  return {
    ...showHeaders(response.headers, masking),
    // Escapes are longer than the characters that they replace.
    body: visible === null ? bytes.toString('base64') : visible.slice(0, maxBodyBytes),
    encoding: visible === null ? 'base64' : 'utf8',
    isCut: isCut || (visible?.length ?? 0) > maxBodyBytes,
  };
}

/** Null if the bytes are not text. A character that the end divides is left out. */
function toText(bytes: Uint8Array, isCut: boolean): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut });
  } catch {
    return null;
  }
}

function showHeaders(headers: UseResponse['headers'], masking: Masking) {
  const all = Object.entries(headers).filter(([name]) => !OMITTED_HEADERS.has(name));
  let left = MAX_HEADERS;
  let areHeadersCut = all.flatMap(([, value]) => value).length > left;
  const show = (value: string): string => {
    const captured = { bytes: Buffer.from(value), isOver: false, isWhole: true };
    const { text, isCut } = maskAndTruncate(captured, masking, MAX_HEADER_BYTES);
    areHeadersCut ||= isCut;
    return escapeInvisible(text);
  };
  const shown: [string, string | string[]][] = [];
  for (const [name, value] of all) {
    if (left <= 0) break;
    shown.push([name, typeof value === 'string' ? show(value) : value.slice(0, left).map(show)]);
    left -= typeof value === 'string' ? 1 : value.length;
  }
  return { headers: Object.fromEntries(shown), areHeadersCut };
}
