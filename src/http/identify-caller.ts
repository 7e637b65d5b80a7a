/**
 * Identifies the caller of a request by its token. A use lease's token is valid at base URLs only; in any other request
 * it is recorded. SOURCE: docs/decisions.md, "Misuse of tokens".
 */
import type { FastifyRequest } from 'fastify';
import { policyName } from '../core/grammars.ts';
import type { AuthContext } from '../core/identity.ts';
import { parseAgentName, parseOperatorName } from '../core/names.ts';
import { authorize, type Context } from '../core/operation.ts';
import { lackOfPermission, PERMISSIONS, type Permission, type PermissionIdentity } from '../core/permissions.ts';
import { ApiError } from '../engine/errors.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { KeySlot } from '../vault/keys/keyset.ts';
import { authenticateCaller, type RouteCall, recordStray } from '../vault/use/misuse.ts';
import { isUseToken } from '../vault/use/token-form.ts';
import { authenticateUse } from '../vault/use/use-leases.ts';
import type { Vault } from '../vault/vault.ts';
import { assertPerson, browserToken } from './browser-session.ts';
import { bearerToken } from './guard.ts';
import { readBaseUrl } from './proxy-routes.ts';
import { addressOf } from './register-routes.ts';
import { findUseToken } from './use-token.ts';

/** Sets `request.token`. @throws the error of a token that is not valid here */
export function identifyCaller(
  vault: Vault,
  request: FastifyRequest,
  isUse: boolean,
): AuthContext | (() => Promise<AuthContext>) {
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
 * A function that records the use lease's token of a request that needs no token; null without one, and for routes that
 * are served without the vault. The response is the same as without a token.
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

// The permission of a route, which is checked before the body is read. SOURCE: docs/decisions.md, "Requests".

/**
 * Rejects a caller without the permission of the route before the body is read, and records the denial. WHY although
 * each operation checks it: the work of some routes precedes their operation.
 */
export function checkPermission(vault: Vault, request: FastifyRequest, done: (error?: Error) => void): void {
  const { auth, id: requestId } = request;
  const { permission = null } = request.routeOptions.config;
  if (auth === null) throw new Error('a guarded route was reached without a caller');
  const context: Context = { auth, requestId, remoteAddr: addressOf(request) };
  if (auth.kind === 'admin' && vault.breakGlass.isDue()) {
    const recorded = vault.breakGlass.record(context);
    // WHY even after a failure: the reason to lock does not wait until the storage works again.
    recorded.then(() => done(), permission === 'service.lock' ? () => done() : done);
    return;
  }
  if (permission === null || mayBegin(vault, permission, auth)) {
    done();
    return;
  }
  const { name } = request.params as Record<string, string>;
  vault.ledger.submit(authorize(context, permission, resourceOf(permission, name))).then(() => done(), done);
}

/** Whether the caller may have the permission, as far as this node knows. The operation decides. */
function mayBegin({ ledger }: Vault, permission: Permission, auth: AuthContext): boolean {
  const { agents, forOneAgent } = PERMISSIONS[permission];
  // The decision about a request that agents may make names its resource, which may be in the body.
  if (agents) return true;
  const caller = callerOf(ledger, auth);
  if (caller === null) return false;
  return [permission, forOneAgent].some((each) => each !== undefined && lackOfPermission(each, caller) === null);
}

/** Null for an operator that this node does not know. */
function callerOf({ memory }: Ledger, auth: AuthContext): PermissionIdentity | null {
  if (auth.kind === 'session') return { kind: 'agent' };
  if (auth.kind !== 'operator') return auth;
  const operator = memory.control.operatorByName(auth.agentName);
  return operator === null ? null : { kind: 'operator', operator };
}

/** The resource as the operation names it; `*` if the path has no name or an invalid one. */
function resourceOf(permission: Permission, name: string | undefined): string {
  const [kind] = permission.split('.');
  if (name === undefined) return '*';
  try {
    if (kind === 'key') return `key:slot:${KeySlot.parseKey(name)}`;
    if (kind === 'operator') return parseOperatorName(name);
    return `${kind}:${kind === 'agent' ? parseAgentName(name) : policyName.parse(name, 'name')}`;
  } catch (error) {
    if (error instanceof ApiError) return '*';
    throw error;
  }
}
