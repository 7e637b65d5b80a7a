/**
 * The server's side of the broker: starts its process, sends it requests, and starts another when it dies. Brokered
 * requests in flight then end with `failed`, and are not repeated, because the upstream may have received them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { extname } from 'node:path';
import { Duplex, type Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { BrokerUse } from './broker-use.ts';
import { Channel } from './channel.ts';
import { toFinalMessage, type UpstreamRequestSpec } from './protocol.ts';

const SERVICE_FD = 3;
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
    const socket = streams?.[SERVICE_FD];
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
