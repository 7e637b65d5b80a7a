/**
 * Makes text from other sources visible to a model, because it may contain instructions. Descriptions are quoted and
 * shortened. In an upstream's response, characters that are invisible or move a cursor are escaped, and headers and
 * body are truncated to a size that a model can read.
 */
import type { UseResponse } from '../client/types.ts';

/**
 * Control, format and unassigned characters, lone surrogates and line ends; and characters that close a quote or open a
 * tag.
 */
const UNSAFE_CHARACTERS = /[\p{C}\p{Zl}\p{Zp}"\\<>`]/gu;

/**
 * The invisible characters of that set, without tabs and line ends, and without the joiners that scripts and emoji
 * need.
 */
const INVISIBLE_CHARACTERS = /[\p{Zl}\p{Zp}]|(?![\t\n\r\u200c\u200d])\p{C}/gu;

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

/** Returns at most `maxLength` characters in double quotes, with unsafe ones as `\u{…}`. */
export function quote(text: string, maxLength = 200): string {
  const characters = Array.from(text);
  const kept = characters.length > maxLength ? `${characters.slice(0, maxLength - 1).join('')}…` : text;
  return `"${kept.replaceAll(UNSAFE_CHARACTERS, escaped)}"`;
}

const MAX_HEADERS = 64;
const MAX_HEADER_LENGTH = 1024;
/** Cookies are secrets of the upstream, and a model cannot send them. */
const OMITTED_HEADERS: ReadonlySet<string> = new Set(['set-cookie', 'set-cookie2']);

export function showResponse(response: UseResponse, maxBodyBytes: number) {
  const all = Buffer.from(response.body, response.body_encoding);
  const bytes = all.subarray(0, maxBodyBytes);
  const isTruncated = response.truncated || bytes.length < all.length;
  const text = toText(bytes, isTruncated);
  const visible = text?.replaceAll(INVISIBLE_CHARACTERS, escaped) ?? null;
  return {
    ...showHeaders(response.headers),
    // Escapes are longer than the characters that they replace.
    body: visible === null ? bytes.toString('base64') : visible.slice(0, maxBodyBytes),
    encoding: visible === null ? ('base64' as const) : ('utf8' as const),
    isTruncated: isTruncated || (visible?.length ?? 0) > maxBodyBytes,
  };
}

/** The text; null if the bytes are not text. A character that is incomplete at the end is omitted. */
function toText(bytes: Uint8Array, isTruncated: boolean): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isTruncated });
  } catch {
    return null;
  }
}

function showHeaders(headers: UseResponse['headers']) {
  const all = Object.entries(headers).filter(([name]) => !OMITTED_HEADERS.has(name));
  let left = MAX_HEADERS;
  let areHeadersTruncated = all.flatMap(([, value]) => value).length > left;
  const show = (value: string): string => {
    const visible = value.replaceAll(INVISIBLE_CHARACTERS, escaped);
    areHeadersTruncated ||= visible.length > MAX_HEADER_LENGTH;
    return visible.slice(0, MAX_HEADER_LENGTH);
  };
  const shown: [string, string | string[]][] = [];
  for (const [name, value] of all) {
    if (left <= 0) break;
    shown.push([name, typeof value === 'string' ? show(value) : value.slice(0, left).map(show)]);
    left -= typeof value === 'string' ? 1 : value.length;
  }
  return { headers: Object.fromEntries(shown), areHeadersTruncated };
}
