/**
 * The token of a browser's session, in two parts: a cookie that no page can read, and a header that only the page of
 * this origin can send. WHY two: browsers send a cookie to every port of a host, and a script that an attacker gets
 * into the page reads what the page can read; either part alone opens nothing.
 * SOURCE: docs/decisions.md, "Agents and sessions".
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { type Authentication, UNKNOWN_TOKEN } from '../core/agent.ts';
import { ApiError, invalidRequest } from '../core/errors.ts';
import { countHeader } from './guard.ts';
import type { BrowserPage } from './route.ts';
import { passkeyOrigin, requirePasskeyOrigin } from './web-origin.ts';

const PART_HEADER = 'x-leasehold-session-part';
const COOKIE_PATH = '/api/v1';
/** What a token and a cookie's value may consist of. SOURCE: RFC 6265, section 4.1.1. */
const PART = /^[A-Za-z0-9\-._~+/=]{8,512}$/;
/** `lhs_` and `lha_` are not secret. */
const PREFIX_LENGTH = 4;

/** WHY two names: only HTTPS can set one with the prefix, which no other service of the host can overwrite without. */
function cookieName(request: FastifyRequest): string {
  return request.protocol === 'https' ? '__Secure-leasehold' : 'leasehold';
}

function attributes(request: FastifyRequest): string {
  return `Path=${COOKIE_PATH}; HttpOnly; SameSite=Strict${request.protocol === 'https' ? '; Secure' : ''}`;
}

/** The header that sets the cookie with the first part of the token, and the second part for the body. */
function splitToken(request: FastifyRequest, token: string) {
  const at = Math.ceil((token.length + PREFIX_LENGTH) / 2);
  const cookie = `${cookieName(request)}=${token.slice(0, at)}; ${attributes(request)}`;
  return { headers: { 'set-cookie': cookie }, part: token.slice(at) };
}

/** The header that removes the cookie, if the request has it. */
function clearCookie(request: FastifyRequest): Readonly<Record<string, string>> {
  if (cookiesOf(request.raw, cookieName(request)).length === 0) return {};
  return { 'set-cookie': `${cookieName(request)}=; ${attributes(request)}; Max-Age=0` };
}

/** Whether a browser with a session of the console sent the request, whichever scheme the session is of. */
export function hasSessionCookie(request: IncomingMessage): boolean {
  return ['leasehold', '__Secure-leasehold'].some((name) => cookiesOf(request, name).length > 0);
}

/** The values of the cookie, as often as it was sent. */
function cookiesOf({ headers }: IncomingMessage, name: string): string[] {
  if (headers.cookie === undefined) return [];
  const pairs = headers.cookie.split(';').map((pair) => pair.trim());
  return pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1));
}

export function browserPageOf(request: FastifyRequest, publicNames: ReadonlySet<string>): BrowserPage {
  return {
    isSession: request.isBrowserSession,
    passkeyOrigin: () => passkeyOrigin(request, publicNames),
    requirePasskeyOrigin: () => requirePasskeyOrigin(request, publicNames),
    splitToken: (token) => splitToken(request, token),
    clearCookie: () => clearCookie(request),
  };
}

/** Whether the request tries to authenticate: for routes that serve callers with and without a session. */
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

/** Only people sign in with a browser. @throws UNAUTHENTICATED for any other token */
export function assertPerson(authentication: Authentication): Authentication {
  if (authentication.kind === 'admin' || authentication.kind === 'operator') return authentication;
  throw new ApiError('UNAUTHENTICATED', UNKNOWN_TOKEN);
}
