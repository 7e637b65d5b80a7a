/** Requests as the server counts them, for metrics, and as it logs their rejections. */
import { Counter, Histogram } from '../core/measures.ts';
import { API_ERROR_CODES, type ApiErrorCode } from '../engine/errors.ts';
import { http } from '../platform/node-http.ts';

/** The requests of one route. `path` is its template, which contains nothing of a request. */
export class RouteMeasures {
  readonly method: string;
  readonly path: string;
  /**
   * Responses by HTTP status. The status is 0 for a connection that ended before a response or became a WebSocket, and
   * for statuses that no standard has, so that an upstream cannot make up any number of them.
   */
  readonly statuses = new Map<number, number>();
  readonly seconds = new Histogram();

  constructor(method: string, path: string) {
    this.method = method;
    this.path = path;
  }

  ended(status: number, durationMs: number): void {
    const known = http.STATUS_CODES[status] === undefined ? 0 : status;
    this.statuses.set(known, (this.statuses.get(known) ?? 0) + 1);
    this.seconds.observe(durationMs / 1000);
  }
}

export class RequestMeasures {
  readonly rejections = new Counter<ApiErrorCode>(API_ERROR_CODES);
  readonly unrouted = new RouteMeasures('*', 'none');
  openConnections: () => number = () => 0;
  readonly #routes = new Map<string, RouteMeasures>([['none', this.unrouted]]);

  of(method: string, path: string): RouteMeasures {
    const key = `${method} ${path}`;
    const known = this.#routes.get(key) ?? new RouteMeasures(method, path);
    this.#routes.set(key, known);
    return known;
  }

  routes(): readonly RouteMeasures[] {
    return [...this.#routes.values()];
  }
}

export interface RequestLog {
  rejected(fields: { code: ApiErrorCode; requestId: string; method: string; remoteAddr: string | undefined }): void;
  acceptFailed(error: Error): void;
  /** Connections of the caller were closed, because too much of its responses was not read. */
  unreadClosed(caller: string, connections: number): void;
  unexpectedError(error: unknown, requestId: string): void;
}
