/**
 * Bounds the memory of responses that authenticated clients do not read. A caller over its limit loses the connections
 * whose responses have waited longest, and so do all callers if they exceed the total. WHY not other clients: public
 * routes return small responses, or files that all clients share.
 */
import type { ServerResponse } from 'node:http';
import type { Answering } from './request-order.ts';
import { callerKey } from './request-scheduler.ts';

const MIB = 1024 * 1024;

interface UnreadLimits {
  readonly bytesPerCaller: number;
  readonly bytesInTotal: number;
  readonly checkMs: number;
}

const UNREAD_LIMITS: UnreadLimits = { bytesPerCaller: 64 * MIB, bytesInTotal: 512 * MIB, checkMs: 100 };

/** The rows of a list that were read from the store and are not sent yet: about as large as one step can be. */
const LIST_STEP_BYTES = 2 * MIB;

interface Held {
  readonly response: ServerResponse;
  readonly startedAt: number;
  readonly bytes: number;
  readonly caller: string;
}

export class UnreadResponses {
  readonly #answering: () => Iterable<Answering>;
  readonly #onClosed: (caller: string, connections: number) => void;
  readonly #limits: UnreadLimits;
  readonly #timer: NodeJS.Timeout;

  /**
   * WHY each check walks the connections: a collection of all responses costs 15 % of a retrieval in garbage
   * collection.
   */
  constructor(
    answering: () => Iterable<Answering>,
    onClosed: (caller: string, connections: number) => void,
    limits = UNREAD_LIMITS,
  ) {
    this.#answering = answering;
    this.#onClosed = onClosed;
    this.#limits = limits;
    this.#timer = setInterval(() => this.#check(), limits.checkMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const held: Held[] = [];
    for (const { response, startedAt, fastifyRequest } of this.#answering()) {
      // WHY a list also counts while nothing waits to be sent: it waits for its turn, with rows in memory.
      const bytes = response.writableLength + (fastifyRequest.sendsList ? LIST_STEP_BYTES : 0);
      if (bytes > 0 && fastifyRequest.authentication !== null)
        held.push({ response, startedAt, bytes, caller: callerKey(fastifyRequest) });
    }
    held.sort((a, b) => a.startedAt - b.startedAt);
    const byCaller = new Map<string, number>();
    let total = 0;
    for (const { caller, bytes } of held) {
      byCaller.set(caller, (byCaller.get(caller) ?? 0) + bytes);
      total += bytes;
    }
    const { bytesPerCaller, bytesInTotal } = this.#limits;
    const closed = new Map<string, number>();
    const close = ({ response, caller, bytes }: Held): void => {
      byCaller.set(caller, (byCaller.get(caller) ?? 0) - bytes);
      total -= bytes;
      closed.set(caller, (closed.get(caller) ?? 0) + 1);
      response.destroy();
    };
    for (const each of held) if ((byCaller.get(each.caller) ?? 0) > bytesPerCaller) close(each);
    for (const each of held) {
      if (total <= bytesInTotal) break;
      if (!each.response.destroyed) close(each);
    }
    for (const [caller, connections] of closed) this.#onClosed(caller, connections);
  }
}
