/**
 * The messages of a WebSocket from an upstream. Each message is assembled, redacted whole and written as one frame,
 * because a frame's length precedes its bytes. A malformed frame ends the connection. SOURCE: RFC 6455, 5.
 */

/** Longer messages end the connection. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const FRAGMENT_BYTES = 64;
/** WHY frames that arrive together are sent together: each write takes both processes as long as some KiB. */
const MAX_JOINED_FRAMES = 64;
const MAX_CONTROL_BYTES = 125;
const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const KNOWN: ReadonlySet<number> = new Set(Object.values(OPCODE));
const FIN = 0x80;
/** A close frame begins with a code of two bytes. */
const CLOSE_CODE_BYTES = 2;
const LENGTH_16 = 126;
const LENGTH_64 = 127;

interface Frame {
  readonly isLast: boolean;
  readonly opcode: number;
  readonly payload: Buffer;
  /** Bytes of the frame with its header. */
  readonly size: number;
}

type Redact = (payload: Uint8Array) => Promise<Uint8Array>;

/**
 * The frames for the client, several in one piece if they arrive together. Calls `onChunk` for each chunk of the
 * source. @throws Error for a malformed frame, a message above the limit, or an end within a message
 */
export async function* redactedFrames(
  source: AsyncIterable<unknown>,
  redact: Redact,
  onChunk: () => void = () => undefined,
): AsyncGenerator<Uint8Array> {
  const joined: Buffer[] = [];
  const message: Buffer[] = [];
  let opcode: number = OPCODE.continuation;
  let size = 0;
  try {
    for await (const frame of readFrames(source, onChunk)) {
      if (joined.length >= MAX_JOINED_FRAMES || (frame === null && joined.length > 0))
        yield joinFrames(joined.splice(0));
      if (frame === null) continue;
      const { isLast, opcode: own, payload } = frame;
      if (own >= OPCODE.close) {
        joined.push(await controlFrame(own, payload, redact));
        continue;
      }
      if ((own === OPCODE.continuation) === (opcode === OPCODE.continuation))
        throw new Error('a fragment out of order');
      if (own !== OPCODE.continuation) opcode = own;
      message.push(payload);
      // Empty fragments also take memory.
      size += isLast ? payload.length : Math.max(payload.length, FRAGMENT_BYTES);
      if (size > MAX_MESSAGE_BYTES) throw new Error('a long message');
      if (!isLast) continue;
      const whole = Buffer.concat(message.splice(0));
      size = 0;
      joined.push(encodeFrame(opcode, await redact(whole)));
      opcode = OPCODE.continuation;
    }
  } catch (error) {
    // The frames before a malformed one are sent.
    if (joined.length > 0) yield joinFrames(joined);
    throw error;
  }
}

function joinFrames(frames: readonly Buffer[]): Buffer {
  const [first, ...more] = frames;
  return first !== undefined && more.length === 0 ? first : Buffer.concat(frames);
}

async function controlFrame(opcode: number, payload: Buffer, redact: Redact): Promise<Buffer> {
  const fixedBytes = opcode === OPCODE.close ? CLOSE_CODE_BYTES : 0;
  const text = await redact(payload.subarray(fixedBytes));
  const all = Buffer.concat([payload.subarray(0, fixedBytes), text]);
  // A mask may be longer than a value.
  return encodeFrame(opcode, all.length > MAX_CONTROL_BYTES ? all.subarray(0, fixedBytes) : all);
}

/** Null after the last frame that a chunk completes. */
async function* readFrames(source: AsyncIterable<unknown>, onChunk: () => void): AsyncGenerator<Frame | null> {
  let chunks: Buffer[] = [];
  let [length, needed] = [0, 2];
  for await (const chunk of source) {
    onChunk();
    if (!(chunk instanceof Uint8Array)) continue;
    chunks.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length));
    length += chunk.length;
    if (length < needed) continue;
    let bytes = Buffer.concat(chunks);
    for (let frame = decodeFrame(bytes); ; frame = decodeFrame(bytes)) {
      if (typeof frame === 'number') {
        needed = frame;
        break;
      }
      bytes = bytes.subarray(frame.size);
      yield frame;
    }
    yield null;
    chunks = [bytes];
    length = bytes.length;
  }
  if (length > 0) throw new Error('an incomplete frame');
}

/** The first frame, or the number of bytes that are needed to continue. */
function decodeFrame(bytes: Buffer): Frame | number {
  if (bytes.length < 2) return 2;
  const first = bytes.readUInt8(0);
  const short = bytes.readUInt8(1);
  const opcode = first & 0x0f;
  const isControl = opcode >= OPCODE.close;
  // A server does not mask. The other bits are for extensions, which were not requested.
  if ((first & 0x70) !== 0 || (short & 0x80) !== 0 || !KNOWN.has(opcode)) throw new Error('an unknown frame');
  if (isControl && ((first & FIN) === 0 || short > MAX_CONTROL_BYTES)) throw new Error('an unknown frame');
  const headerBytes = short === LENGTH_64 ? 10 : short === LENGTH_16 ? 4 : 2;
  if (bytes.length < headerBytes) return headerBytes;
  const length =
    headerBytes === 10 ? Number(bytes.readBigUInt64BE(2)) : headerBytes === 4 ? bytes.readUInt16BE(2) : short;
  if (length > MAX_MESSAGE_BYTES) throw new Error('a long message');
  const size = headerBytes + length;
  if (bytes.length < size) return size;
  return { isLast: (first & FIN) !== 0, opcode, payload: bytes.subarray(headerBytes, size), size };
}

function encodeFrame(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload;
  const isLong = length > 0xffff;
  const header = Buffer.alloc(isLong ? 10 : length >= LENGTH_16 ? 4 : 2);
  header.writeUInt8(FIN | opcode, 0);
  header.writeUInt8(isLong ? LENGTH_64 : length >= LENGTH_16 ? LENGTH_16 : length, 1);
  if (isLong) header.writeBigUInt64BE(BigInt(length), 2);
  else if (length >= LENGTH_16) header.writeUInt16BE(length, 2);
  return Buffer.concat([header, payload]);
}
