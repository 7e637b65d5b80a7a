/**
 * The server's side of the broker: starts its process, sends it requests, and restarts it when it exits. Brokered
 * requests in flight then end with `failed`, and are not repeated, because the upstream may have received them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { extname } from 'node:path';
import { Duplex, Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { drained } from '../platform/waiting.ts';
import { Channel } from './channel.ts';
import type { ChannelStream } from './channel-stream.ts';
import {
  type BrokerHead,
  type FinalMessage,
  type HeaderPairs,
  toFinalMessage,
  toHead,
  type UpstreamRequestSpec,
  type UseResult,
} from './protocol.ts';

const SERVER_FD = 3;
/** A process that dies sooner is replaced at the next request, not immediately. */
const MIN_LIFETIME_MS = 1000;
const STOP_TIMEOUT_MS = 2000;
/** Variables that the broker's process receives from the server's environment. */
const PASSED_VARIABLES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'TZ'];

interface Running {
  readonly child: ChildProcess;
  readonly channel: Channel;
  readonly startedAt: number;
}

export class BrokerClient {
  #running: Running | null = null;
  #starts = 0;
  #isStopped = false;

  get pid(): number | null {
    return this.#running?.child.pid ?? null;
  }

  get starts(): number {
    return this.#starts;
  }

  start(): void {
    this.#ensureRunning();
  }

  /**
   * Sends a request that was decided and recorded. `body`: the request's body, or the client's data after the handshake
   * of an upgrade. Aborting the signal aborts the brokered request.
   */
  use(spec: UpstreamRequestSpec, body: Readable | null, signal?: AbortSignal): BrokerUse {
    return startUse(this.#ensureRunning()?.channel ?? null, spec, body, signal);
  }

  /** Ends the process and every brokered request. No request may follow. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const running = this.#running;
    if (running === null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    running.child.once('exit', () => resolve());
    const timer = setTimeout(() => running.child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    running.channel.close();
    await promise;
    clearTimeout(timer);
  }

  #ensureRunning(): Running | null {
    if (this.#isStopped) return null;
    this.#running ??= this.#spawn();
    return this.#running;
  }

  #spawn(): Running | null {
    const child = spawn(process.execPath, programWords(), {
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
      env: passedEnvironment(),
    });
    child.on('error', () => this.#forget(child));
    child.on('exit', () => this.#forget(child));
    // Without file descriptors for it, Node provides no list of streams; an error follows.
    const streams: readonly unknown[] | undefined = child.stdio;
    const socket = streams?.[SERVER_FD];
    if (!(socket instanceof Duplex)) return null;
    this.#starts += 1;
    const channel = new Channel(socket, {
      // A process whose connection is lost cannot be used.
      closed: () => {
        if (this.#isStopped) return;
        child.kill('SIGKILL');
        this.#forget(child);
      },
    });
    return { child, channel, startedAt: performance.now() };
  }

  #forget(child: ChildProcess): void {
    const running = this.#running;
    if (running?.child !== child) return;
    this.#running = null;
    running.channel.close();
    if (performance.now() - running.startedAt >= MIN_LIFETIME_MS) this.#ensureRunning();
  }
}

/** `channel`: null if no process could be started. */
export function startUse(
  channel: Channel | null,
  spec: UpstreamRequestSpec,
  body: Readable | null,
  signal: AbortSignal | undefined,
): BrokerUse {
  const stream = channel?.isOpen === true ? channel.open(spec, isComplete) : null;
  return new BrokerUse(stream, body, signal);
}

const isComplete = (message: unknown): boolean => toFinalMessage(message)?.result.ended === 'complete';

/**
 * Node's options and the program. INVARIANT: the process may use the network and read its own code, and may do nothing
 * else.
 */
function programWords(): string[] {
  const extension = extname(import.meta.url);
  const pathOf = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
  const readable = [pathOf('../'), pathOf('../../package.json')];
  return [
    '--permission',
    '--allow-net',
    ...readable.map((path) => `--allow-fs-read=${path}`),
    '--disable-warning=ExperimentalWarning',
    '--disable-sigusr1',
    '--disable-proto=delete',
    pathOf(`../bin/broker${extension}`),
  ];
}

function passedEnvironment(): Record<string, string> {
  const entries = PASSED_VARIABLES.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** One brokered request: the head, the body and the result from the broker's process. */
export class BrokerUse {
  /** Rejects only if the signal was aborted before the head, with its reason. */
  readonly head: Promise<BrokerHead>;
  /**
   * The redacted body; for an upgrade, the upstream's data. Fails if the response breaks off. Destroying it aborts the
   * request. It must be read or destroyed; otherwise the request never ends.
   */
  readonly body: Readable;
  /** Resolves when the body has closed; never rejects. */
  readonly result: Promise<UseResult>;
  readonly #stream: ChannelStream | null;
  #head: BrokerHead | null = null;
  #bytesIn = 0;

  /** `stream`: null if no process could be started. `body`: null without one. */
  constructor(stream: ChannelStream | null, body: Readable | null, signal?: AbortSignal) {
    this.#stream = stream;
    this.body = stream ?? new Readable().destroy();
    const closed = Promise.withResolvers<UseResult>();
    this.result = closed.promise;
    this.body.on('close', () => closed.resolve(this.#result()));
    this.head = stream === null ? Promise.resolve({ kind: 'error', failure: 'broker' }) : this.#start(stream, signal);
    this.head.catch(() => undefined);
    if (stream !== null) this.#send(stream, body).catch(() => stream.destroy());
  }

  /** The upstream's trailers, complete when the body has ended. */
  get trailers(): HeaderPairs {
    return this.#final?.trailers ?? [];
  }

  get #final(): FinalMessage | null {
    return toFinalMessage(this.#stream?.endMessage);
  }

  #start(stream: ChannelStream, signal: AbortSignal | undefined): Promise<BrokerHead> {
    const { promise, resolve, reject } = Promise.withResolvers<BrokerHead>();
    const abort = (): void => void stream.destroy();
    stream.once('head', (message: unknown) => {
      const head = toHead(message);
      if (head === null) {
        stream.lose();
        return;
      }
      this.#head = head;
      // An error is followed by an empty body.
      if (head.kind === 'error') stream.resume();
      resolve(head);
    });
    // A response can be complete before the request is. The rest of the request is not sent.
    stream.once('end', () => {
      if (!stream.writableFinished) stream.destroy();
    });
    stream.once('close', () => {
      signal?.removeEventListener('abort', abort);
      if (signal?.aborted === true) reject(signal.reason);
      else resolve({ kind: 'error', failure: 'broker' });
    });
    if (signal?.aborted === true) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    return promise;
  }

  async #send(stream: ChannelStream, body: Readable | null): Promise<void> {
    if (body !== null) {
      for await (const chunk of body.iterator({ destroyOnReturn: false })) {
        if (stream.destroyed) return;
        if (!(chunk instanceof Uint8Array)) continue;
        this.#bytesIn += chunk.length;
        if (!stream.write(chunk)) await drained(stream);
      }
    }
    stream.end();
  }

  #result(): UseResult {
    const final = this.#final;
    if (final !== null && this.#stream?.isLost !== true) {
      const isUnread = final.result.ended === 'complete' && !this.body.readableEnded;
      return isUnread ? { ...final.result, ended: 'client' } : final.result;
    }
    const status = this.#head?.kind === 'response' ? this.#head.status : null;
    const stream = this.#stream;
    // The broker ends a stream with a final message. It resets a stream after the head only if the client does not
    // read.
    const isOver = stream === null || stream.isLost || stream.hasEnded || (stream.isReset && this.#head === null);
    const hasFailed = isOver || this.#head?.kind === 'error';
    const { bytesRead: bytesOut = 0, redactions = 0 } = stream ?? {};
    return { status, bytesIn: this.#bytesIn, bytesOut, redactions, ended: hasFailed ? 'failed' : 'client' };
  }
}
