/** What the HTTP server counts: requests by route and status, their durations, and rejections by code. */

import { API_ERROR_CODES, type ApiErrorCode } from '../core/errors.ts';
import { Distribution, Tally } from '../core/measures.ts';
import { MinuteRing } from '../core/minute-latency.ts';
import { http } from '../platform/node-http.ts';

/** The requests of one route. `path` is its template, which contains nothing of a request. */
export class RouteMeasures {
  readonly method: string;
  readonly path: string;
  /**
   * By HTTP status; 0 for a connection that ended before a response or became a WebSocket, and for statuses that no
   * standard has, so that an upstream cannot make up any number of them.
   */
  readonly statuses = new Map<number, number>();
  /** From the end of the request's head to the end of the response. */
  readonly seconds = new Distribution();

  /** Null for a route of which nothing is shown by minute. */
  readonly #minutes: MinuteRing | null;

  constructor(method: string, path: string, minutes: MinuteRing | null = null) {
    this.method = method;
    this.path = path;
    this.#minutes = minutes;
  }

  ended(status: number, durationMs: number): void {
    const known = http.STATUS_CODES[status] === undefined ? 0 : status;
    this.statuses.set(known, (this.statuses.get(known) ?? 0) + 1);
    this.seconds.observe(durationMs / 1000);
    if (known !== 0) this.#minutes?.observe(durationMs, Date.now());
  }
}

/** The routes whose durations are shown by minute. */
const BY_MINUTE = {
  'GET /api/v1/credentials/{path}': 'retrieve',
  'POST /api/v1/use': 'use',
} as const satisfies Record<string, string>;

export class RequestMeasures {
  readonly minutes = { retrieve: new MinuteRing(), use: new MinuteRing() };
  readonly rejections = new Tally<ApiErrorCode>(API_ERROR_CODES);
  /** Requests for a path or method without a route. */
  readonly unrouted = new RouteMeasures('*', 'none');
  /** Set by the server. */
  openConnections: () => number = () => 0;
  readonly #routes = new Map<string, RouteMeasures>([['none', this.unrouted]]);

  /** The same object for the same route: a route may have several paths. */
  of(method: string, path: string, shownAs: keyof RequestMeasures['minutes'] | null = null): RouteMeasures {
    const key = `${method} ${path}`;
    const shown = shownAs ?? BY_MINUTE[key as keyof typeof BY_MINUTE] ?? null;
    const minutes = shown === null ? null : this.minutes[shown];
    const known = this.#routes.get(key) ?? new RouteMeasures(method, path, minutes);
    this.#routes.set(key, known);
    return known;
  }

  routes(): readonly RouteMeasures[] {
    return [...this.#routes.values()];
  }
}
