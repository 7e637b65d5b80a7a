/**
 * Reads a value out of bytes as a thief would: by undoing the encodings that servers use, several on top of each other.
 * Shares no code with the redaction that it tests.
 */
import zlib from 'node:zlib';

/** Part of a value that is worth as much as the value: fewer characters can be guessed or are known anyway. */
const WINDOW = 8;
const MAX_DEPTH = 3;
const MAX_DECODED_LENGTH = 256 * 1024;

type Decoder = (text: string) => readonly string[];

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
/** Decompressors by the first two bytes of their form. */
const DECOMPRESSORS: Readonly<Record<number, (bytes: Buffer) => Buffer>> = {
  8075: zlib.gunzipSync,
  30721: zlib.inflateSync,
  30814: zlib.inflateSync,
  30876: zlib.inflateSync,
  30938: zlib.inflateSync,
  10421: zlib.zstdDecompressSync,
};
/** Their form has no beginning to recognise. WHY on whole bodies only: trying them takes most of the time. */
const WITHOUT_MARK = [zlib.inflateRawSync, zlib.brotliDecompressSync];

const DECODERS: readonly Decoder[] = [
  // UTF-16, UTF-32.
  (text) => [text.replaceAll('\0', '')],
  (text) => [text.replaceAll(/\s/g, '')],
  (text) => [
    text
      .split('\x1b')
      .map((part) => part.replace(/^\[[0-9;]*[mK]/, ''))
      .join(''),
  ],
  (text) => [text.replaceAll(/%([0-9a-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))],
  (text) => [text.replaceAll(/\\u([0-9a-f]{4})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))],
  (text) => [text.replaceAll(/\\(.)/g, '$1')],
  (text) => [
    text
      .replaceAll(/&#x([0-9a-f]+);/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
      .replaceAll(/&#([0-9]+);/g, (_, code) => String.fromCharCode(Number(code)))
      .replaceAll(/&([a-z]+);/g, (whole, name) => ENTITIES[name] ?? whole),
  ],
  (text) => decodeRuns(text, /[0-9a-f]{16,}/gi, 2, 'hex'),
  (text) => decodeRuns(text.replaceAll('-', '+').replaceAll('_', '/'), /[A-Za-z0-9+/]{12,}/g, 4, 'base64'),
  decompress,
];

function decodeRuns(text: string, runs: RegExp, alignments: number, encoding: 'hex' | 'base64'): string[] {
  return [...text.matchAll(runs)].flatMap(([run]) =>
    Array.from({ length: alignments }, (_, from) => Buffer.from(run.slice(from), encoding).toString('latin1')),
  );
}

function decompress(text: string): string[] {
  if (text.length < 2) return [];
  const bytes = Buffer.from(text, 'latin1');
  const decoder = DECOMPRESSORS[bytes.readUInt16BE()];
  return decoder === undefined ? [] : attempted(decoder, bytes);
}

function attempted(decoder: (bytes: Buffer) => Buffer, bytes: Buffer): string[] {
  try {
    return [decoder(bytes).toString('latin1')];
  } catch {
    return [];
  }
}

/** Whether any reading of the bytes contains eight consecutive characters of the value. */
export function canRead(bytes: Uint8Array, value: string): boolean {
  const plain = Buffer.from(value, 'utf8').toString('latin1');
  const windows = Array.from({ length: plain.length - WINDOW + 1 }, (_, at) => plain.slice(at, at + WINDOW));
  const isFound = (text: string): boolean => windows.some((window) => text.includes(window));
  const whole = Buffer.from(bytes);
  let texts = new Set([whole.toString('latin1'), ...WITHOUT_MARK.flatMap((decoder) => attempted(decoder, whole))]);
  for (let depth = 0; ; depth++) {
    if ([...texts].some(isFound)) return true;
    if (depth === MAX_DEPTH) return false;
    const small = [...texts].filter(({ length }) => length >= WINDOW && length <= MAX_DECODED_LENGTH);
    texts = new Set(small.flatMap((text) => DECODERS.flatMap((decoder) => decoder(text)))).difference(texts);
  }
}
