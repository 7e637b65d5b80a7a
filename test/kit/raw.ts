/** Requests byte for byte over a raw socket, where a client library would tidy them. */
import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** Sends the bytes and resolves to everything that comes back until the server closes, or `waitMs` pass. */
export function sendRaw(address: string, bytes: string | Uint8Array, waitMs = 3000): Promise<RawAnswer> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      const text = Buffer.concat(chunks).toString('utf8');
      const border = text.indexOf('\r\n\r\n');
      const head = border === -1 ? text : text.slice(0, border);
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0), head, body: text.slice(border + 4) });
    };
    const timer = setTimeout(finish, waitMs);
    socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
    socket.on('close', finish);
    socket.on('error', finish);
  });
}

/** One request with `Connection: close`, its head lines as they are given. */
export function rawRequest(lines: readonly string[], body = ''): string {
  return `${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`;
}
