/**
 * Bounds what responses that their clients do not read hold in memory. A caller over its share, or the caller that
 * holds most when all together are over the limit, loses the connections whose responses have waited longest.
 */
import type { ServerResponse } from 'node:http';

const MIB = 1024 * 1024;

interface UnreadLimits {
  readonly bytesPerCaller: number;
  readonly bytesInTotal: number;
  readonly checkMs: number;
}

const UNREAD_LIMITS: UnreadLimits = { bytesPerCaller: 64 * MIB, bytesInTotal: 512 * MIB, checkMs: 100 };

/** The rows that a list has read from the store and not sent yet, about as large as one step of a list can be. */
const LIST_STEP_BYTES = MIB;

interface Sending {
  readonly caller: string;
  readonly request: { readonly sendsList: boolean };
}

interface Held {
  bytes: number;
  /** Those that waited longest come first. */
  readonly responses: [response: ServerResponse, bytes: number][];
}

export class UnreadResponses {
  readonly #limits: UnreadLimits;
  readonly #onClosed: (caller: string, connections: number) => void;
  /** Oldest first. */
  readonly #sending = new Map<ServerResponse, Sending>();
  #timer: NodeJS.Timeout | null = null;

  constructor(onClosed: (caller: string, connections: number) => void, limits = UNREAD_LIMITS) {
    this.#onClosed = onClosed;
    this.#limits = limits;
  }

  add(response: ServerResponse, caller: string, request: Sending['request']): void {
    this.#sending.set(response, { caller, request });
    this.#timer ??= setInterval(() => this.#check(), this.#limits.checkMs).unref();
  }

  delete(response: ServerResponse): void {
    this.#sending.delete(response);
  }

  #check(): void {
    const callers = new Map<string, Held>();
    let total = 0;
    for (const [response, { caller, request }] of this.#sending) {
      const waiting = response.writableLength;
      if (waiting === 0) continue;
      const bytes = waiting + (request.sendsList ? LIST_STEP_BYTES : 0);
      const held = callers.get(caller) ?? { bytes: 0, responses: [] };
      held.bytes += bytes;
      held.responses.push([response, bytes]);
      callers.set(caller, held);
      total += bytes;
    }
    const { bytesPerCaller, bytesInTotal } = this.#limits;
    for (const [caller, held] of [...callers].sort(([, a], [, b]) => b.bytes - a.bytes)) {
      let closed = 0;
      for (const [response, bytes] of held.responses) {
        if (held.bytes <= bytesPerCaller && total <= bytesInTotal) break;
        held.bytes -= bytes;
        total -= bytes;
        closed += 1;
        response.destroy();
      }
      if (closed > 0) this.#onClosed(caller, closed);
    }
    if (this.#sending.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}
