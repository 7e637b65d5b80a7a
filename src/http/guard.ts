/**
 * The first checks of a request: its raw target, framing, Host and Authorization header. SOURCE: docs/decisions.md,
 * "Requests"; RFC 9110, section 11; RFC 9112, section 3.2.
 */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { FastifyContextConfig } from 'fastify';
import { ApiError, invalidRequest } from '../engine/errors.ts';
import { RECOVERY_MODE } from '../vault/ports.ts';
import { BASE_URL_PREFIX } from '../vault/use/base-url.ts';
import { defaultError, undecodableTarget } from './errors.ts';
import type { HttpParts } from './http-server.ts';

const MAX_TARGET_LENGTH = 8192;
/** A path in origin form: visible ASCII without the characters that some parsers interpret as another one. */
const TARGET = /^\/(?!\/)[!$-[\]^_`a-z{|}~"]*$/;

/** More than clients wait before they try again, because an operator has to act first. */
const ROLLED_BACK_RETRY_SECONDS = 300;
const ROLLED_BACK = `The audit log has lost entries. The server is in recovery mode: ${RECOVERY_MODE}. The operator can run leasehold audit accept-rollback.`;

/** @throws ApiError */
export function checkRequest(
  request: IncomingMessage,
  { status, checksHost, publicNames }: Pick<HttpParts, 'status' | 'checksHost' | 'publicNames'>,
  route: Pick<FastifyContextConfig, 'isAlwaysServed' | 'showsLog'>,
): void {
  checkVersion(request);
  checkFraming(request);
  const target = request.url ?? '';
  // A base URL has a stricter grammar, but need not decode to UTF-8.
  if (!target.startsWith(BASE_URL_PREFIX)) checkTarget(target);
  checkSingleHeaders(request);
  if (countHeader(request, 'host') !== 1) throw new ApiError('INVALID_REQUEST', 'Host: must be given once');
  if (checksHost) checkHost(request, publicNames);
  const now = status();
  if (now === 'ok' || now === 'failing' || route.isAlwaysServed) return;
  if (now === 'locked') throw new ApiError('VAULT_LOCKED', 'The vault is locked.');
  if (now === 'rolled_back') {
    if (route.showsLog) return;
    throw new ApiError('UNAVAILABLE', ROLLED_BACK, ROLLED_BACK_RETRY_SECONDS);
  }
  throw new ApiError('UNAVAILABLE', `The server is ${now}. Try again in a second.`, 1);
}

/** Checks the raw target, before it is decoded or resolved. @throws URI_TOO_LONG, INVALID_REQUEST */
function checkTarget(target: string): void {
  if (target.length > MAX_TARGET_LENGTH) throw defaultError('URI_TOO_LONG');
  if (!TARGET.test(target)) throw invalidRequest('target', 'must be a path such as /api/v1/credentials');
  if (!target.includes('%')) return;
  try {
    decodeURIComponent(target);
  } catch {
    throw undecodableTarget();
  }
}

/**
 * Rejects framings that Node's parser accepts: transfer codings before `chunked`, and `chunked` in HTTP/1.0. SOURCE:
 * RFC 9112, section 6.1. @throws INVALID_REQUEST
 */
function checkFraming({ headers, httpVersion }: IncomingMessage): void {
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return;
  if (httpVersion === '1.0') throw invalidRequest('Transfer-Encoding', 'must not be sent with HTTP/1.0');
  if (coding.trim().toLowerCase() !== 'chunked') throw invalidRequest('Transfer-Encoding', 'must be chunked');
}

/** Rejects versions that Node's parser accepts but this server does not support. @throws INVALID_REQUEST */
function checkVersion({ httpVersion }: IncomingMessage): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    throw new ApiError('INVALID_REQUEST', 'version: must be HTTP/1.1');
}

/** Counts a header, even if Node has merged or dropped its repetitions. `name` is in lower case. */
export function countHeader(request: IncomingMessage, name: string): number {
  const { rawHeaders } = request;
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const header = rawHeaders[i];
    if (header !== undefined && header.length === name.length && header.toLowerCase() === name) count += 1;
  }
  return count;
}

/**
 * Prevents DNS rebinding on a loopback listener: a web page whose name resolves to this machine sends its own name as
 * Host. @throws MISDIRECTED_REQUEST
 */
function checkHost(request: IncomingMessage, publicNames: ReadonlySet<string>): void {
  const host = (request.headers.host ?? '').toLowerCase();
  const name = host.replace(/:\d{1,5}$/, '');
  const literal = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name;
  const isLiteral = isIP(literal) === (name.startsWith('[') ? 6 : 4);
  if (name === 'localhost' || isLiteral || publicNames.has(name)) return;
  throw new ApiError(
    'MISDIRECTED_REQUEST',
    'Host: must be localhost, an IP address, or a name given with --public-name',
  );
}

/** The token of `Authorization: Bearer …`. @throws UNAUTHENTICATED if it is missing or malformed */
export function bearerToken(request: IncomingMessage): string {
  const { authorization } = request.headers;
  if (authorization === undefined) {
    throw new ApiError('UNAUTHENTICATED', 'Send the header Authorization: Bearer <token>.');
  }
  const token = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(authorization)?.[1];
  if (token === undefined) throw new ApiError('UNAUTHENTICATED', 'The header must be Authorization: Bearer <token>.');
  return token;
}

/** Rejects repetitions: Node keeps the first header, and a proxy may have used another one. @throws INVALID_REQUEST */
function checkSingleHeaders(request: IncomingMessage): void {
  for (const name of ['Authorization', 'Content-Type']) {
    if (countHeader(request, name.toLowerCase()) > 1) throw invalidRequest(name, 'must be given once');
  }
}
