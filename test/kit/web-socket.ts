/** Frames of a WebSocket. SOURCE: RFC 6455, 5.2. */

/** The opcode of a text message. */
export const TEXT = 1;

/** A frame as a server writes it: without a mask. */
export function frame(opcode: number, payload: string | Buffer, isLast = true): Buffer {
  const bytes = Buffer.from(payload);
  const { length } = bytes;
  const size = length < 126 ? [length] : length < 65_536 ? [126, length >> 8, length & 255] : null;
  const long = Buffer.alloc(9, 127);
  if (size === null) long.writeBigUInt64BE(BigInt(length), 1);
  return Buffer.concat([Buffer.from([(isLast ? 0x80 : 0) | opcode]), size === null ? long : Buffer.from(size), bytes]);
}
