/**
 * Identifies the caller of a request by its token: at base URLs also by that of a use lease, which is recorded
 * wherever else it is. SOURCE: docs/decisions.md, "Misuse of tokens".
 */
import type { FastifyRequest } from 'fastify';
import type { Authentication } from '../core/agent.ts';
import { isUseToken } from '../core/token-form.ts';
import { authenticateCaller, type RouteCall, recordStray } from '../vault/misuse.ts';
import { authenticateUse } from '../vault/use-leases.ts';
import type { Vault } from '../vault/vault.ts';
import { assertPerson, browserToken } from './browser-session.ts';
import { bearerToken } from './guard.ts';
import { addressOf } from './register-routes.ts';
import { readBaseUrl } from './use-door.ts';
import { findUseToken } from './use-token.ts';

/** Sets `request.token`. @throws the error of a token that is not valid here */
export function identifyCaller(
  vault: Vault,
  request: FastifyRequest,
  isUse: boolean,
): Authentication | (() => Promise<Authentication>) {
  if (isUse) {
    request.token = findUseToken(request.raw);
    return authenticateUse(vault, request.token, () => readBaseUrl(request));
  }
  const ofBrowser = browserToken(request);
  request.token = ofBrowser ?? bearerToken(request.raw);
  request.isBrowserSession = ofBrowser !== null;
  const found = authenticateCaller(vault, request.token, () => toCall(request));
  if (ofBrowser === null) return found;
  return typeof found === 'function' ? async () => assertPerson(await found()) : assertPerson(found);
}

/**
 * For a request that needs no token: a function that records the use lease's token that it has all the same; null
 * without one, and for routes that are served without the vault. The response is the same as without a token.
 */
export function findStrayToken(vault: Vault, request: FastifyRequest): (() => Promise<void>) | null {
  const { authorization = '' } = request.headers;
  if (!authorization.includes('lhu_') || request.routeOptions.config.isAlwaysServed === true) return null;
  const token = /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
  return isUseToken(token) ? () => recordStray(vault, token, toCall(request)) : null;
}

function toCall(request: FastifyRequest): RouteCall {
  const { id: requestId, method, is404, routeOptions } = request;
  return { requestId, remoteAddr: addressOf(request), method, route: is404 ? null : (routeOptions.url ?? null) };
}
