/**
 * Compresses a picture of the browser: the 256 most frequent colours, one byte for each pixel, and zlib's best level.
 * The browser writes three bytes for each pixel, because it prefers speed.
 */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE_BYTES = 8;
const MAX_COLOURS = 256;
/** Colours that differ less are one: the edges of letters have hundreds. */
const PRECISION = 0xf8;

export function compressPng(png: Buffer): Buffer {
  const chunks = readChunks(png);
  const header = chunks.find(({ type }) => type === 'IHDR')?.data ?? Buffer.alloc(0);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const channels = header[9] === 6 ? 4 : 3;
  const data = chunks.filter(({ type }) => type === 'IDAT').map((each) => each.data);
  const pixels = unfilter(inflateSync(Buffer.concat(data)), width * channels, height, channels);
  const { indexes, palette } = toPalette(pixels, channels);
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y++) rows.set(indexes.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const indexed = Buffer.from(header);
  // Eight bits for each pixel, which is an index into the palette.
  indexed.set([8, 3], 8);
  return Buffer.concat([
    png.subarray(0, SIGNATURE_BYTES),
    chunk('IHDR', indexed),
    chunk('PLTE', palette),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function readChunks(png: Buffer): { type: string; data: Buffer }[] {
  const chunks = [];
  for (let at = SIGNATURE_BYTES; at < png.length; ) {
    const length = png.readUInt32BE(at);
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return chunks;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

/** SOURCE: the PNG specification, "Filter types for filter method 0". */
function unfilter(rows: Buffer, rowBytes: number, height: number, channels: number): Buffer {
  const pixels = Buffer.alloc(rowBytes * height);
  for (let y = 0; y < height; y++) {
    const filter = rows[y * (rowBytes + 1)];
    for (let x = 0; x < rowBytes; x++) {
      const at = y * rowBytes + x;
      const left = x < channels ? 0 : (pixels[at - channels] ?? 0);
      const above = y === 0 ? 0 : (pixels[at - rowBytes] ?? 0);
      const corner = x < channels || y === 0 ? 0 : (pixels[at - rowBytes - channels] ?? 0);
      const predicted =
        filter === 1
          ? left
          : filter === 2
            ? above
            : filter === 3
              ? (left + above) >> 1
              : filter === 4
                ? paeth(left, above, corner)
                : 0;
      pixels[at] = (rows[y * (rowBytes + 1) + 1 + x] ?? 0) + predicted;
    }
  }
  return pixels;
}

function paeth(left: number, above: number, corner: number): number {
  const estimate = left + above - corner;
  const [a, b, c] = [Math.abs(estimate - left), Math.abs(estimate - above), Math.abs(estimate - corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}

function toPalette(pixels: Buffer, channels: number): { indexes: Uint8Array; palette: Buffer } {
  const colourAt = (at: number): number =>
    ((pixels[at] ?? 0) << 16) | ((pixels[at + 1] ?? 0) << 8) | (pixels[at + 2] ?? 0);
  const coarse = (colour: number): number => colour & ((PRECISION << 16) | (PRECISION << 8) | PRECISION);
  /** The exact colours within each coarse colour, and how often each occurs. */
  const groups = new Map<number, Map<number, number>>();
  for (let at = 0; at < pixels.length; at += channels) {
    const colour = colourAt(at);
    const group = groups.getOrInsertComputed(coarse(colour), () => new Map<number, number>());
    group.set(colour, (group.get(colour) ?? 0) + 1);
  }
  const counted = [...groups].map(([key, colours]) => {
    const exact = [...colours].sort((a, b) => b[1] - a[1])[0]?.[0] ?? key;
    return { key, exact, count: [...colours.values()].reduce((sum, count) => sum + count, 0) };
  });
  const chosen = counted.sort((a, b) => b.count - a.count || a.key - b.key).slice(0, MAX_COLOURS);
  const byGroup = new Map(
    counted.map(({ key, exact }) => [
      key,
      nearest(
        exact,
        chosen.map((each) => each.exact),
      ),
    ]),
  );
  const indexes = new Uint8Array(pixels.length / channels);
  for (let index = 0; index < indexes.length; index++) {
    indexes[index] = byGroup.get(coarse(colourAt(index * channels))) ?? 0;
  }
  const palette = Buffer.from(chosen.flatMap(({ exact }) => [exact >> 16, (exact >> 8) & 255, exact & 255]));
  return { indexes, palette };
}

function nearest(colour: number, palette: readonly number[]): number {
  let [found, least] = [0, Number.POSITIVE_INFINITY];
  for (const [index, other] of palette.entries()) {
    const part = (shift: number): number => ((colour >> shift) & 255) - ((other >> shift) & 255);
    const distance = part(16) ** 2 + part(8) ** 2 + part(0) ** 2;
    if (distance < least) [found, least] = [index, distance];
  }
  return found;
}
