// A kept-alive HTTP connection that sends one request at a time and reads its answer, by Content-Length.
// WHY not node:http: its client takes more processor time than the service does for a request, on the cores that both share.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface Answered {
  readonly status: number;
  readonly body: string;
}

const HEAD_END = '\r\n\r\n';

export class Connection {
  readonly #socket: Socket;
  readonly #host: string;
  #received = '';
  #waiting: PromiseWithResolvers<Answered> | null = null;

  static async open(address: string): Promise<Connection> {
    const { hostname, port, host } = new URL(address);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    return new Connection(socket, host);
  }

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => this.#take(text));
    const fail = (cause?: unknown): void => this.#waiting?.reject(new Error('the connection ended', { cause }));
    socket.on('error', fail);
    socket.on('close', () => fail());
  }

  /** `body` is sent as JSON. */
  send(method: 'GET' | 'POST', path: string, token: string | null, body: unknown = null): Promise<Answered> {
    const authorization = token === null ? '' : `authorization: Bearer ${token}\r\n`;
    const text = body === null ? '' : JSON.stringify(body);
    const content = body === null ? '' : `content-type: application/json\r\ncontent-length: ${text.length}\r\n`;
    this.#waiting = Promise.withResolvers<Answered>();
    this.#socket.write(
      `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${authorization}${content}\r\n${text}`,
      'latin1',
    );
    return this.#waiting.promise;
  }

  close(): void {
    this.#waiting = null;
    this.#socket.destroy();
  }

  #take(text: string): void {
    this.#received += text;
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd === -1) return;
    const head = this.#received.slice(0, headEnd);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? Number.NaN);
    if (Number.isNaN(length)) {
      this.#waiting?.reject(new Error(`an answer without Content-Length: ${head}`));
      return;
    }
    const start = headEnd + HEAD_END.length;
    if (this.#received.length < start + length) return;
    const body = this.#received.slice(start);
    this.#received = '';
    this.#waiting?.resolve({ status: Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 '.length + 3)), body });
  }
}

/** Opens that many, has the work done over them, and closes them however it ends. */
export async function withConnections<T>(
  address: string,
  count: number,
  work: (connections: readonly Connection[]) => Promise<T>,
): Promise<T> {
  const connections = await Promise.all(Array.from({ length: count }, () => Connection.open(address)));
  try {
    return await work(connections);
  } finally {
    for (const connection of connections) connection.close();
  }
}

export function assertAnswered({ status, body }: Answered, wanted: number): void {
  if (status !== wanted) throw new Error(`answered ${status} and not ${wanted}: ${body}`);
}
