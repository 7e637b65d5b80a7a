/**
 * Bounds what responses that authenticated clients do not read hold in memory. A caller over its share loses the
 * connections whose responses have waited longest; so do all callers when they are over the limit together. WHY not
 * other clients: what public routes return is small, or the same bytes for all.
 */
import type { ServerResponse } from 'node:http';

const MIB = 1024 * 1024;

interface UnreadLimits {
  readonly bytesPerCaller: number;
  readonly bytesInTotal: number;
  readonly checkMs: number;
}

const UNREAD_LIMITS: UnreadLimits = { bytesPerCaller: 64 * MIB, bytesInTotal: 512 * MIB, checkMs: 100 };

/** The rows of a list that were read from the store and are not sent yet: about as large as one step can be. */
const LIST_STEP_BYTES = 2 * MIB;

interface Sending {
  readonly caller: string;
  readonly request: { readonly sendsList: boolean };
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

  /** Counts the response until `delete`, which must follow when it is closed. */
  add(response: ServerResponse, caller: string, request: Sending['request']): void {
    if (response.closed) return;
    this.#sending.set(response, { caller, request });
    this.#timer ??= setInterval(() => this.#check(), this.#limits.checkMs).unref();
  }

  delete(response: ServerResponse): void {
    this.#sending.delete(response);
  }

  #check(): void {
    if (this.#sending.size === 0) {
      if (this.#timer !== null) clearInterval(this.#timer);
      this.#timer = null;
      return;
    }
    const held = [...this.#sending].map(([response, { caller, request }]) => ({
      response,
      caller,
      // WHY a list also counts while nothing waits to be sent: it waits for its turn, with rows in memory.
      bytes: response.writableLength + (request.sendsList ? LIST_STEP_BYTES : 0),
    }));
    const byCaller = new Map<string, number>();
    let total = 0;
    for (const { caller, bytes } of held) {
      byCaller.set(caller, (byCaller.get(caller) ?? 0) + bytes);
      total += bytes;
    }
    const { bytesPerCaller, bytesInTotal } = this.#limits;
    const closed = new Map<string, number>();
    const close = ({ response, caller, bytes }: (typeof held)[number]): void => {
      byCaller.set(caller, (byCaller.get(caller) ?? 0) - bytes);
      total -= bytes;
      closed.set(caller, (closed.get(caller) ?? 0) + 1);
      this.#sending.delete(response);
      response.destroy();
    };
    const waiting = held.filter(({ bytes }) => bytes > 0);
    const kept = waiting.filter((each) => {
      const isOver = (byCaller.get(each.caller) ?? 0) > bytesPerCaller;
      if (isOver) close(each);
      return !isOver;
    });
    for (const each of kept) {
      if (total <= bytesInTotal) break;
      close(each);
    }
    for (const [caller, connections] of closed) this.#onClosed(caller, connections);
  }
}
