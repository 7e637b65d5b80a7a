/**
 * Sends entries to a syslog receiver over TCP or TLS. The protocol has no acknowledgements, and the kernel buffers what
 * a receiver never reads. So the sink ends its side of a connection from time to time, and waits until the receiver
 * ends the other side: a receiver does that when it has read to the end. Until then no entry is confirmed, and all are
 * sent again if the connection breaks. SOURCE: RFC 6587; RFC 5425.
 */
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import type { AuditEntry } from '../../core/audit.ts';
import { errnoSuffix } from '../../platform/errno.ts';
import { type Sink, SinkError } from './sink.ts';
import { localOrigin, syslogFrame } from './syslog-message.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** A connection ends when it has unconfirmed entries for this time, or this many: they may arrive twice. */
const MAX_UNCONFIRMED_MS = 30_000;
const MAX_UNCONFIRMED = 10_000;
/**
 * Between the last entry and the end. WHY: a receiver that stops may have sent its end before the last entries reached
 * it. Such an end arrives within this pause, and is then a failure instead of a confirmation.
 */
const PAUSE_BEFORE_END_MS = 250;
/** For a receiver that has a backlog. */
const END_TIMEOUT_MS = 30_000;
/** When the service stops. */
const CLOSE_TIMEOUT_MS = 1000;

export interface SyslogTarget {
  readonly host: string;
  readonly port: number;
  /** Null for plain TCP; `ca` is null for the authorities that Node trusts. */
  readonly tls: { readonly ca: string | null } | null;
}

/** The entries of the open connection. */
interface Unconfirmed {
  readonly lastSeq: number;
  readonly count: number;
  readonly since: number;
}

export class SyslogSink implements Sink {
  readonly #target: SyslogTarget;
  readonly #origin = localOrigin();
  #socket: Socket | null = null;
  #failure: SinkError | null = null;
  #unconfirmed: Unconfirmed | null = null;
  #confirmed = 0;

  constructor(target: SyslogTarget) {
    this.#target = target;
  }

  async send(entries: readonly AuditEntry[], signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = (): void => reject(this.#failure ?? signal.reason);
    const socket = await this.#connected(signal);
    socket.once('close', fail);
    signal.addEventListener('abort', fail);
    const frames = entries.map((entry) => syslogFrame(entry, this.#origin)).join('');
    socket.write(frames, 'ascii', (error) => (error == null ? resolve() : fail()));
    try {
      await promise;
    } finally {
      socket.off('close', fail);
      signal.removeEventListener('abort', fail);
    }
    const last = entries.at(-1);
    if (last === undefined) return;
    const { count, since } = this.#unconfirmed ?? { count: 0, since: performance.now() };
    this.#unconfirmed = { lastSeq: last.seq, count: count + entries.length, since };
  }

  async confirm(_sentSeq: number, signal: AbortSignal): Promise<number> {
    if (this.#unconfirmed !== null) {
      if (this.#failure !== null) throw this.#failure;
      const { count, since } = this.#unconfirmed;
      const isDue = count >= MAX_UNCONFIRMED || performance.now() - since >= MAX_UNCONFIRMED_MS;
      if (isDue) await this.#endConnection(END_TIMEOUT_MS, signal);
    }
    return this.#confirmed;
  }

  async close(): Promise<void> {
    const socket = this.#socket;
    await this.#endConnection(CLOSE_TIMEOUT_MS, AbortSignal.timeout(2 * CLOSE_TIMEOUT_MS)).catch(() => undefined);
    socket?.destroy();
  }

  /** The next entry opens another connection. @throws SinkError, or the signal's reason */
  async #endConnection(timeoutMs: number, signal: AbortSignal): Promise<void> {
    const socket = this.#socket;
    if (socket === null) return;
    await sleep(PAUSE_BEFORE_END_MS);
    if (this.#failure !== null) throw this.#failure;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const confirm = (): void => {
      // ORDER: before the event `close`, which is a failure while the socket is in use.
      this.#socket = null;
      this.#confirmed = this.#unconfirmed?.lastSeq ?? this.#confirmed;
      this.#unconfirmed = null;
      resolve();
    };
    const fail = (): void => reject(this.#failure ?? signal.reason);
    const timer = setTimeout(() => this.#fail(socket, 'did not end the connection in time'), timeoutMs);
    socket.once('end', confirm);
    socket.once('close', fail);
    signal.addEventListener('abort', fail);
    socket.end();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      socket.off('end', confirm);
      socket.off('close', fail);
      signal.removeEventListener('abort', fail);
    }
  }

  #fail(socket: Socket, what: string, error?: unknown): void {
    if (this.#socket === socket) this.#failure ??= new SinkError(`the syslog receiver ${what}${errnoSuffix(error)}`);
    socket.destroy();
  }

  /** After a failure the stream opens another sink. */
  async #connected(signal: AbortSignal): Promise<Socket> {
    if (this.#failure !== null) throw this.#failure;
    if (this.#socket !== null) return this.#socket;
    const { host, port, tls } = this.#target;
    const socket =
      tls === null
        ? connectPlain({ host, port })
        : connectTls({
            host,
            port,
            ...(isIP(host) === 0 ? { servername: host } : {}),
            ...(tls.ca === null ? {} : { ca: tls.ca }),
          });
    this.#socket = socket;
    // A receiver says nothing; without a reader its end would not be seen.
    socket.resume();
    socket.on('error', (error) => this.#fail(socket, 'could not be reached', error));
    socket.on('close', () => this.#fail(socket, 'closed the connection'));
    const timer = setTimeout(() => this.#fail(socket, 'could not be reached in time'), CONNECT_TIMEOUT_MS);
    const abort = (): void => void socket.destroy();
    signal.addEventListener('abort', abort, { once: true });
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.once(tls === null ? 'connect' : 'secureConnect', () => resolve());
    socket.once('close', () => resolve());
    await promise;
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    if (this.#failure !== null) throw this.#failure;
    return socket;
  }
}
