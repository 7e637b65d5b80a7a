// A keep-alive HTTP connection that sends one request at a time and reads its response by Content-Length.
// WHY not node:http: its client takes more processor time for a request than the service does, on the cores that both
// share.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

interface Response {
  readonly status: number;
  readonly body: string;
}

const HEAD_END = '\r\n\r\n';

export class Connection {
  readonly #socket: Socket;
  readonly #host: string;
  #received = '';
  #pending: PromiseWithResolvers<Response> | null = null;

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
    socket.on('data', (text: string) => this.#receive(text));
    const fail = (cause?: unknown): void => this.#pending?.reject(new Error('the connection was closed', { cause }));
    socket.on('error', fail);
    socket.on('close', () => fail());
  }

  /** GET without a body, POST of JSON with one. Resolves to the response's body. @throws Error for another status */
  async request(path: string, token: string | null, status: number, json?: unknown): Promise<string> {
    const authorization = token === null ? '' : `authorization: Bearer ${token}\r\n`;
    const text = json === undefined ? '' : JSON.stringify(json);
    const content = json === undefined ? '' : `content-type: application/json\r\ncontent-length: ${text.length}\r\n`;
    const method = json === undefined ? 'GET' : 'POST';
    this.#pending = Promise.withResolvers<Response>();
    this.#socket.write(
      `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${authorization}${content}\r\n${text}`,
      'latin1',
    );
    const response = await this.#pending.promise;
    if (response.status !== status) throw new Error(`status ${response.status} instead of ${status}: ${response.body}`);
    return response.body;
  }

  close(): void {
    this.#pending = null;
    this.#socket.destroy();
  }

  #receive(text: string): void {
    this.#received += text;
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd === -1) return;
    const head = this.#received.slice(0, headEnd);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? Number.NaN);
    if (Number.isNaN(length)) {
      this.#pending?.reject(new Error(`a response without Content-Length: ${head}`));
      return;
    }
    const start = headEnd + HEAD_END.length;
    if (this.#received.length < start + length) return;
    const body = this.#received.slice(start);
    this.#received = '';
    this.#pending?.resolve({ status: Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 '.length + 3)), body });
  }
}
