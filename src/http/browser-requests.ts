/**
 * Rejects requests of browsers at base URLs, whose responses are bytes that an agent or upstream chose, at the origin
 * of the console. Browsers send most of these headers to HTTPS and localhost only, so every response also has headers
 * that keep it from being a page: see `base-url-headers.ts`. SOURCE: docs/use.md, "Not for browsers".
 */
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../core/errors.ts';
import { hasSessionCookie } from './browser-session.ts';
import { isUpgrade } from './upgrades.ts';

const MESSAGE =
  'Access denied: base URLs are for programs, not for browsers. Send the request from a program, or make it with POST /api/v1/use.';

/** No program sends them: pages, prefetching browsers, navigations over plain HTTP, and service workers do. */
const BROWSER_HEADERS = ['service-worker', 'sec-fetch-user', 'sec-purpose', 'upgrade-insecure-requests'] as const;

/** @throws ACCESS_DENIED */
export function rejectBrowser(request: IncomingMessage): void {
  const { headers } = request;
  const isMarked = BROWSER_HEADERS.some((name) => headers[name] !== undefined);
  const isPrefetch = headers['purpose'] === 'prefetch' || headers['x-moz'] === 'prefetch';
  if (isMarked || isPrefetch || isFetchOfPage(request) || hasSessionCookie(request))
    throw new ApiError('ACCESS_DENIED', MESSAGE);
}

/**
 * Node's `fetch` and `WebSocket` send the mode alone, `cors` and `websocket`. Only a page has a site, and only
 * navigations, elements and workers have another destination than `empty`.
 */
function isFetchOfPage(request: IncomingMessage): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': destination, 'sec-fetch-site': site } = request.headers;
  const isProgramMode = mode === undefined || mode === 'cors' || (mode === 'websocket' && isUpgrade(request));
  return !isProgramMode || (destination ?? 'empty') !== 'empty' || (site ?? 'none') !== 'none';
}
