/**
 * Shares the event loop fairly between callers: while several are active, each starts a bounded number of requests per
 * millisecond, and few large bodies of one caller are read at a time. So one caller on many connections delays others
 * by a bounded time. A caller is an agent, the administrator, or the address of an unauthenticated client.
 */
import type { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { addressPrefix } from '../vault/sessions/login-throttle.ts';

/** One credit is about 60 µs of work, the cost of a small request of an authenticated caller. */
const CREDITS_PER_MS = 16;
const MAX_DEBT = 16;
/** A busy loop turns less often than every millisecond: credits earned in that time still count, up to this. */
const MAX_CATCH_UP_MS = 8;
const UNAUTHENTICATED_COST = 6;
const MAX_WAITING = 1024;
const BYTES_PER_CREDIT = 1024;
/** Room for a value of 256 KiB whose every byte is escaped, and for the rest of its body. */
export const MAX_BODY_BYTES = 2 * 1024 * 1024;
/** The time after its last request for which a caller counts as active. */
const ACTIVE_MS = 100;
/** Bodies over this size take many iterations of the event loop to read, and milliseconds to parse. */
const LARGE_BODY_BYTES = 64 * 1024;
const MAX_LARGE_BODIES = 2;

export function callerKey({ auth, ip }: FastifyRequest): string {
  if (auth === null) return `address ${addressPrefix(ip ?? 'local')}`;
  return auth.kind === 'admin' ? 'admin' : `agent ${auth.agentName}`;
}

/**
 * The cost of a request in credits. WHY not always the announced body: of an unauthenticated request only what a public
 * route accepts is read, and headers alone must not use up the credits of the other clients of the address.
 */
function costOf(request: FastifyRequest): number {
  const isPublic = request.routeOptions.config.permission === null;
  if (request.auth === null && !isPublic) return UNAUTHENTICATED_COST;
  return (request.auth === null ? UNAUTHENTICATED_COST : 1) + readableBytes(request) / BYTES_PER_CREDIT;
}

interface Account {
  /** Credits that were used and are not paid off yet. */
  debt: number;
  readonly waiting: { readonly cost: number; readonly start: () => void }[];
}

export class RequestScheduler {
  readonly #accounts = new Map<string, Account>();
  #lastCaller = '';
  #contendedUntil = 0;
  #paidUntil = 0;
  readonly #clock: Pick<Performance, 'now'>;

  constructor(clock: Pick<Performance, 'now'> = performance) {
    this.#clock = clock;
  }

  /**
   * Calls `start` now or later, in the order of the caller's requests. The only active caller does not wait. Returns
   * false if too many requests of the caller wait.
   */
  run(request: FastifyRequest, start: () => void): boolean {
    const caller = callerKey(request);
    const now = this.#clock.now();
    if (caller !== this.#lastCaller) {
      this.#lastCaller = caller;
      this.#contendedUntil = now + ACTIVE_MS;
    }
    const account = this.#accounts.get(caller);
    const cost = costOf(request);
    if (account !== undefined && (account.waiting.length > 0 || account.debt >= MAX_DEBT)) {
      if (account.waiting.length >= MAX_WAITING) return false;
      account.waiting.push({ cost, start });
      return true;
    }
    if (now < this.#contendedUntil) {
      if (this.#accounts.size === 0) this.#payLater(now);
      this.#accounts.set(caller, { debt: (account?.debt ?? 0) + cost, waiting: [] });
    }
    start();
    return true;
  }

  #payLater(now: number): void {
    this.#paidUntil = now;
    setTimeout(() => this.#pay(), 1);
  }

  #pay(): void {
    const now = this.#clock.now();
    const earnedMs = Math.min(now - this.#paidUntil, MAX_CATCH_UP_MS);
    const paid = now < this.#contendedUntil ? earnedMs * CREDITS_PER_MS : Number.POSITIVE_INFINITY;
    const ready: (() => void)[] = [];
    for (const [caller, account] of this.#accounts) {
      account.debt -= paid;
      while (account.debt < MAX_DEBT) {
        const next = account.waiting.shift();
        if (next === undefined) break;
        account.debt += next.cost;
        ready.push(next.start);
      }
      account.debt = Math.max(0, account.debt);
      if (account.debt === 0) this.#accounts.delete(caller);
    }
    if (this.#accounts.size > 0) this.#payLater(now);
    for (const start of ready) start();
  }
}

interface Reading {
  count: number;
  readonly waiting: Set<() => void>;
}

export class LargeBodies {
  readonly #callers = new Map<string, Reading>();

  /**
   * Calls `read` when fewer than `MAX_LARGE_BODIES` of the caller are being read; never after the client has
   * disconnected. WHY the route's limit counts: a chunked login is small, and two that never end must not delay the
   * other logins of their address.
   */
  enter(caller: string, request: FastifyRequest, response: EventEmitter, read: () => void): void {
    const { raw } = request;
    if (readableBytes(request) <= LARGE_BODY_BYTES) {
      read();
      return;
    }
    const own = this.#callers.get(caller) ?? { count: 0, waiting: new Set() };
    this.#callers.set(caller, own);
    const begin = (): void => {
      own.count += 1;
      raw.once('end', end);
      read();
    };
    const end = (): void => {
      raw.off('end', end);
      response.off('close', end);
      if (own.waiting.delete(begin)) return;
      own.count -= 1;
      const [next] = own.waiting;
      if (next === undefined) {
        if (own.count === 0) this.#callers.delete(caller);
        return;
      }
      own.waiting.delete(next);
      next();
    };
    response.once('close', end);
    if (own.count < MAX_LARGE_BODIES) begin();
    else own.waiting.add(begin);
  }
}

/** The maximum number of bytes of the body that the route reads. */
function readableBytes({ raw, routeOptions }: FastifyRequest): number {
  return Math.min(bodyLength(raw), routeOptions.bodyLimit ?? MAX_BODY_BYTES);
}

/** The announced length in bytes; infinite for a chunked body. */
function bodyLength({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Number.POSITIVE_INFINITY;
}
