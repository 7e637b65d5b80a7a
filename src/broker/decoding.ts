/**
 * Decodes a response that the upstream compressed although identity was requested. Memory is bounded: a decoder
 * receives more input only once its output has been read, however small the input of a large output is.
 */
import { pipeline, Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib';
import { UpstreamError } from './protocol.ts';

/** More than one coding is unusual, and each costs memory. */
const MAX_CODINGS = 2;

/**
 * The decoded body. An error of the decoder destroys the body, and an error of the body destroys the decoder. @throws
 * UpstreamError for an unknown coding
 */
export function decodeBody(body: Readable, contentEncoding: string): Readable {
  const codings = contentEncoding.split(',').map((coding) => coding.trim().toLowerCase());
  const applied = codings.filter((coding) => coding !== '' && coding !== 'identity').reverse();
  if (applied.length > MAX_CODINGS) throw new UpstreamError('coding');
  const decoders = applied.map(decoderOf);
  return decoders.reduce<Readable>((source, decoder) => decoder(source), body);
}

function decoderOf(coding: string): (source: Readable) => Readable {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return (source) => connect(source, createGunzip());
    case 'deflate':
      return (source) => Readable.from(inflate(source), { objectMode: false });
    case 'br':
      return (source) => connect(source, createBrotliDecompress());
    case 'zstd':
      return (source) => connect(source, createZstdDecompress());
    default:
      throw new UpstreamError('coding');
  }
}

function connect(source: Readable, decoder: Transform): Readable {
  // WHY: it decodes ahead of its reader, and an error without a listener ends the process.
  decoder.on('error', () => undefined);
  return pipeline(source, decoder, () => undefined);
}

/**
 * WHY two formats: by RFC 9110 deflate is the zlib format, but some servers send raw deflate data. The first byte
 * distinguishes them.
 */
async function* inflate(source: Readable): AsyncGenerator<Uint8Array> {
  const chunks: AsyncIterator<Uint8Array> = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const isZlib = ((first.value[0] ?? 0) & 0x0f) === 8;
  async function* whole(): AsyncGenerator<Uint8Array> {
    yield first.value;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  }
  try {
    yield* connect(Readable.from(whole(), { objectMode: false }), isZlib ? createInflate() : createInflateRaw());
  } finally {
    source.destroy();
  }
}
