/**
 * A proxy between a service and PostgreSQL. A test can slow it down, cut its connections, or make it act on a commit.
 * It parses just enough of the protocol to recognise statements. SOURCE:
 * postgresql.org/docs/current/protocol-message-formats.html.
 */
import { connect, createServer, type Socket } from 'node:net';
import type { Scope } from './directory.ts';

/** When the connection of the next commit is cut. */
export type CutAt =
  /** The server never receives it. */
  | 'before'
  /** The server receives it, and the connection is cut before the response. */
  | 'during'
  /** The server has responded, and the response is dropped. */
  | 'after';

export interface Proxy {
  /** The URL with the proxy in place of the server. */
  readonly url: string;
  /** Delays every chunk in each direction from now on. */
  delay(milliseconds: number): void;
  /** Cuts all connections, and rejects new ones until `open`. */
  close(): void;
  open(): void;
  /** Drops all bytes without a response, like a network that loses every packet. */
  swallow(): void;
  /** Drops everything on existing connections; new ones are unaffected. */
  freeze(): void;
  /** Connects new connections to another server, like a name that moved. */
  redirect(serverUrl: string): void;
  /** Cuts the next commit that passes; resolves when that has happened. */
  cutNextCommit(at: CutAt): Promise<void>;
  /** Withholds the next commit, so that its transaction stays open; resolves when the commit has arrived here. */
  holdNextCommit(): Promise<void>;
  /** The number of commits passed on so far. */
  readonly commits: number;
  /** The number of connections rejected so far. */
  readonly refused: number;
}

/** Splits a stream into complete frontend messages. The first one of a connection has no type. */
class Messages {
  #rest = Buffer.alloc(0);
  #hasBegun = false;
  /** Names of prepared statements that commit. */
  readonly #commits = new Set<string>();

  /** The number of bytes before a commit in the received chunk; null if it contains none. */
  findCommit(chunk: Buffer): number | null {
    const before = this.#rest.length;
    this.#rest = Buffer.concat([this.#rest, chunk]);
    let at = 0;
    for (;;) {
      const lengthAt = at + (this.#hasBegun ? 1 : 0);
      if (this.#rest.length < lengthAt + 4) break;
      const end = lengthAt + this.#rest.readUInt32BE(lengthAt);
      if (this.#rest.length < end) break;
      const message = this.#rest.subarray(at, end);
      if (this.#hasBegun && this.#isCommit(message)) {
        this.#rest = this.#rest.subarray(end);
        return Math.max(0, at - before);
      }
      this.#hasBegun = true;
      at = end;
    }
    this.#rest = this.#rest.subarray(at);
    return null;
  }

  #isCommit(message: Buffer): boolean {
    const type = String.fromCharCode(message[0] ?? 0);
    const [first = '', second = ''] = message.subarray(5).toString('latin1').split('\0');
    // Parse has the statement's name and its text; Bind the portal's name and the statement's.
    if (type === 'P' && second === 'COMMIT') this.#commits.add(first);
    return (type === 'B' && this.#commits.has(second)) || (type === 'Q' && first === 'COMMIT');
  }
}

export async function startProxy(scope: Scope, serverUrl: string): Promise<Proxy> {
  let target = new URL(serverUrl);
  const pairs = new Set<readonly [Socket, Socket]>();
  let delayMs = 0;
  let isOpen = true;
  let isSwallowing = false;
  let cut: { readonly at: CutAt | 'never'; readonly done: () => void } | null = null;
  let commits = 0;
  let refused = 0;
  let frozen: ReadonlySet<unknown> = new Set();

  const end = (pair: readonly [Socket, Socket]): void => {
    pairs.delete(pair);
    for (const socket of pair) socket.destroy();
  };
  const send = (to: Socket, chunk: Buffer): void => {
    if (isSwallowing || chunk.length === 0) return;
    if (delayMs === 0) to.write(chunk);
    else setTimeout(() => to.writable && to.write(chunk), delayMs);
  };
  const server = createServer((client) => {
    if (!isOpen) {
      refused += 1;
      client.destroy();
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    const messages = new Messages();
    let isCutAfter = false;
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on('error', () => end(pair));
      socket.on('close', () => end(pair));
    }
    client.on('data', (chunk: Buffer) => {
      const commitAt = messages.findCommit(chunk);
      if (commitAt !== null) commits += 1;
      if (commitAt === null || cut === null) {
        if (!frozen.has(pair)) send(upstream, chunk);
        return;
      }
      const { at, done } = cut;
      cut = null;
      if (at === 'never') {
        frozen = new Set([...frozen, pair]);
        upstream.write(chunk.subarray(0, commitAt), done);
        return;
      }
      if (at === 'after') {
        isCutAfter = true;
        send(upstream, chunk);
        // WHY wait for the server: if the connection is cut earlier, the server may not commit.
        upstream.on('data', (answer: Buffer) => {
          if (!answer.includes('COMMIT\0')) return;
          end(pair);
          done();
        });
        return;
      }
      upstream.write(at === 'during' ? chunk : chunk.subarray(0, commitAt), () => {
        end(pair);
        done();
      });
    });
    upstream.on('data', (chunk: Buffer) => {
      if (!isCutAfter && !frozen.has(pair)) send(client, chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  const url = new URL(serverUrl);
  url.port = String(address.port);
  const cutAll = (): void => {
    for (const pair of [...pairs]) end(pair);
  };
  scope.after(() => {
    cutAll();
    server.close();
  });
  return {
    url: url.href,
    delay: (milliseconds) => {
      delayMs = milliseconds;
    },
    close: () => {
      isOpen = false;
      cutAll();
    },
    open: () => {
      isOpen = true;
      isSwallowing = false;
    },
    swallow: () => {
      isSwallowing = true;
    },
    redirect: (other) => {
      target = new URL(other);
    },
    cutNextCommit: (at) =>
      new Promise((done) => {
        cut = { at, done };
      }),
    holdNextCommit: () =>
      new Promise((done) => {
        cut = { at: 'never', done };
      }),
    freeze: () => {
      frozen = new Set(pairs);
    },
    get refused() {
      return refused;
    },
    get commits() {
      return commits;
    },
  };
}
