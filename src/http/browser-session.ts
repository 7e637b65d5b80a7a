/**
 * The token of a browser's session, in two parts: a cookie that no page can read, and a header that only the page of
 * this origin can send. WHY two: browsers send a cookie to every port of a host, and a script that an attacker gets
 * into the page reads all that the page can read; either part alone opens nothing. SOURCE: docs/decisions.md, "Agents
 * and sessions".
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { toApiError } from '../core/denials.ts';
import type { AuthContext } from '../core/identity.ts';
import { ApiError, invalidRequest } from '../engine/errors.ts';
import type { WebOrigin } from '../vault/operators/passkeys.ts';
import { isUpgrade } from './connections.ts';
import { countHeader } from './guard.ts';

const PART_HEADER = 'x-leasehold-session-part';
const COOKIE_PATH = '/api/v1';
/** The characters that a token and the value of a cookie may contain. SOURCE: RFC 6265, section 4.1.1. */
const PART = /^[A-Za-z0-9\-._~+/=]{8,512}$/;
/** `lhs_` and `lha_` are not secret. */
const PREFIX_LENGTH = 4;

/** WHY two names: only HTTPS can set one with the prefix, which no other program of the host can overwrite without. */
function cookieName(request: FastifyRequest): string {
  return request.protocol === 'https' ? '__Secure-leasehold' : 'leasehold';
}

function attributes(request: FastifyRequest): string {
  return `Path=${COOKIE_PATH}; HttpOnly; SameSite=Strict${request.protocol === 'https' ? '; Secure' : ''}`;
}

/** Whether a browser with a session of the console sent the request, with either scheme. */
function hasSessionCookie(request: IncomingMessage): boolean {
  return ['leasehold', '__Secure-leasehold'].some((name) => cookiesOf(request, name).length > 0);
}

function cookiesOf({ headers }: IncomingMessage, name: string): string[] {
  if (headers.cookie === undefined) return [];
  const pairs = headers.cookie.split(';').map((pair) => pair.trim());
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
}

export function hasAuthentication(request: FastifyRequest): boolean {
  return request.headers.authorization !== undefined || browserToken(request) !== null;
}

/**
 * The token of a browser's session; null for a request that has none. Authorization is used instead where it is sent,
 * and a request that another site, or another port of this host, caused has none. @throws INVALID_REQUEST
 */
export function browserToken(request: FastifyRequest): string | null {
  const { raw, headers } = request;
  const part = headers[PART_HEADER];
  if (headers.authorization !== undefined || part === undefined || headers['sec-fetch-site'] !== 'same-origin')
    return null;
  const name = cookieName(request);
  const cookies = cookiesOf(raw, name);
  const [cookie] = cookies;
  if (cookie === undefined) return null;
  if (cookies.length > 1) throw invalidRequest('Cookie', `must have ${name} once`);
  if (countHeader(raw, PART_HEADER) > 1) throw invalidRequest('X-Leasehold-Session-Part', 'must be given once');
  return PART.test(cookie) && PART.test(String(part)) ? cookie + String(part) : null;
}

/** Only operators and the administrator sign in with a browser. @throws UNAUTHENTICATED for any other token */
export function assertPerson(auth: AuthContext): AuthContext {
  if (auth.kind === 'admin' || auth.kind === 'operator') return auth;
  throw toApiError({ code: 'token_unknown' });
}

// Rejects requests of browsers at base URLs, whose responses are bytes that an agent or upstream chose, at the origin
// of the console. Browsers send most of these headers to HTTPS and localhost only, so every response also has headers
// that keep it from being a page: see `proxy-routes.ts`. SOURCE: docs/use.md, "Not for browsers".

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

// The origin of the console's pages. Passkeys are bound to it, and the identity provider sends its codes to it, so only
// this server may be able to have it: a page on another port of the host could otherwise ask an operator for a
// signature, or receive a code, and use it here. SOURCE: WebAuthn, level 3, section 13.4.9.

/** The URL of the server as the caller named it. @throws INVALID_REQUEST */
export function serverUrlOf({ protocol, host }: FastifyRequest): string {
  if (!/^[A-Za-z0-9.:_[\]-]{1,260}$/.test(host)) throw invalidRequest('Host', 'must be a name or an address');
  return `${protocol}://${host}`;
}

/** The page of the console that may have sent the request. */
export class BrowserPage {
  readonly #request: FastifyRequest;
  readonly #publicNames: ReadonlySet<string>;

  constructor(request: FastifyRequest, publicNames: ReadonlySet<string>) {
    this.#request = request;
    this.#publicNames = publicNames;
  }

  /** Whether the request's token came in the two parts of a browser's session. */
  get isSession(): boolean {
    return this.#request.isBrowserSession;
  }

  /** The header that sets the cookie with the first part of the token, and the second part for the body. */
  splitToken(token: string) {
    const at = Math.ceil((token.length + PREFIX_LENGTH) / 2);
    const cookie = `${cookieName(this.#request)}=${token.slice(0, at)}; ${attributes(this.#request)}`;
    return { headers: { 'set-cookie': cookie }, part: token.slice(at) };
  }

  /** The header that removes the cookie, if the request has it. */
  clearCookie(): Readonly<Record<string, string>> {
    const name = cookieName(this.#request);
    if (cookiesOf(this.#request.raw, name).length === 0) return {};
    return { 'set-cookie': `${name}=; ${attributes(this.#request)}; Max-Age=0` };
  }

  /** The origin at which passkeys and the identity provider work; null at any other URL of the server. */
  passkeyOrigin(): WebOrigin | null {
    const url = URL.parse(serverUrlOf(this.#request));
    if (url === null) return null;
    const { hostname, origin, port, protocol } = url;
    const standardPort = protocol === 'https:' ? 443 : 80;
    const isListener = Number(port || standardPort) === this.#request.socket.localPort;
    // Browsers treat plain HTTP as secure for this name alone.
    const isLocal = hostname === 'localhost' && isListener;
    const isPublic = protocol === 'https:' && this.#publicNames.has(hostname) && (port === '' || isListener);
    return isLocal || isPublic ? { origin, rpId: hostname } : null;
  }

  /** @throws INVALID_REQUEST */
  requirePasskeyOrigin(): WebOrigin {
    const found = this.passkeyOrigin();
    if (found !== null) return found;
    const { protocol, socket } = this.#request;
    const local = socket.localPort === undefined ? '' : ` ${protocol}://localhost:${socket.localPort}/console/, or`;
    const names = ' HTTPS and a name given with --public-name, at its standard port or the one of the server';
    throw new ApiError(
      'INVALID_REQUEST',
      `Host: passkeys and the identity provider do not work at this address. Use${local}${names}.`,
    );
  }
}
