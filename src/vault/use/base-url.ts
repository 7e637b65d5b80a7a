/**
 * Addresses of the base URL, `/use/{path}/-/{rest}` and `/use/{path}/-{n}/{rest}`, and the request that one means:
 * its host is that of one of the credential's targets, never the caller's. Pure.
 * SOURCE: docs/api.md, "Base URL"; docs/decisions.md, "Brokered use".
 */

import type { DenialOf } from '../../core/denials.ts';
import { type CredentialPath, parsePath } from '../../core/path.ts';
import { invalidRequest } from '../../engine/errors.ts';
import type { UseFields } from '../audit/audit-entry.ts';
import { hasWildcard, type Method, mismatchAtOrigin, type Target, type UseRequest } from './target.ts';
import { parsePathAndQuery, parseUrl, type UrlPath } from './upstream-url.ts';

export interface BaseUrlRequest {
  readonly method: Method;
  readonly path: UrlPath;
  /** The query with its leading `?`, or an empty text. */
  readonly query: string;
  /** The target, counted from 1, whose origin the request is for; null for the first target that it matches. */
  readonly targetNumber: number | null;
}

export interface BaseUrlAddress extends Omit<BaseUrlRequest, 'method'> {
  readonly credentialPath: CredentialPath;
}

export interface ResolvedRequest {
  readonly request: UseRequest;
  /** The segment of the base URL at which links to the same origin are, `-` or `-n`; null if the caller named a URL. */
  readonly selector: string | null;
}

/** The denial of a request for which no target has an origin. */
type UnresolvedDenial = DenialOf<'no_target_with_number' | 'wildcard_target'>;

export const BASE_URL_PREFIX = '/use/';
const SELECTOR = /^-(\d{0,3})$/;

/**
 * The request for an absolute URL, or for a path with a query on the credential's first target that it matches.
 * @throws INVALID_REQUEST
 */
export function parseUseRequest(method: Method, url: string, field: string): UseRequest | BaseUrlRequest {
  if (!url.startsWith('/')) return { method, url: parseUrl(url, field) };
  return { method, ...parsePathAndQuery(url, field), targetNumber: null };
}

/** The address without a selector. @throws INVALID_REQUEST for a path that no base URL can contain */
export function baseUrlOf(serviceUrl: string, path: CredentialPath): string {
  if (path.split('/').some((segment) => SELECTOR.test(segment))) {
    throw invalidRequest('path', 'must not have a segment such as - or -1, which ends the path in a base URL');
  }
  return `${serviceUrl}${BASE_URL_PREFIX}${path}`;
}

/** Parses the raw target of a request, which is neither decoded nor normalised. @throws INVALID_REQUEST */
export function parseBaseUrl(target: string): BaseUrlAddress {
  const { path, query } = parsePathAndQuery(target, 'target');
  const segments = path.split('/').slice(2);
  const end = segments.findIndex((segment) => SELECTOR.test(segment));
  if (end < 1) throw invalidRequest('target', 'must be /use/{path}/-/{rest}, or /use/{path}/-{n}/{rest}');
  const digits = segments[end]?.slice(1) ?? '';
  return {
    credentialPath: parsePath(segments.slice(0, end).join('/')),
    targetNumber: digits === '' ? null : Number(digits),
    path: `/${segments.slice(end + 1).join('/')}` as UrlPath,
    query,
  };
}

/**
 * The request with the origin of a target. A request that no target matches is given the first origin, so that it is
 * denied for its path or method.
 */
export function resolveRequest(
  targets: readonly Target[],
  requested: UseRequest | BaseUrlRequest,
): ResolvedRequest | UnresolvedDenial {
  if ('url' in requested) return { request: requested, selector: null };
  const { targetNumber } = requested;
  const exact = targets.filter((target) => !hasWildcard(target));
  const target = targetNumber === null ? firstMatch(targets, exact, requested) : (targets[targetNumber - 1] ?? null);
  if (target === null) return { code: 'no_target_with_number' };
  if (hasWildcard(target)) return { code: 'wildcard_target' };
  const first = targets.findIndex(({ origin }) => origin === target.origin);
  const hasOneOrigin = new Set(targets.map(({ origin }) => origin)).size === 1;
  const selector = targetNumber === null && hasOneOrigin ? '-' : `-${targetNumber ?? first + 1}`;
  const { method, path, query } = requested;
  return { request: { method, url: { ...parseUrl(target.origin), path, query } }, selector };
}

function firstMatch(
  targets: readonly Target[],
  exact: readonly Target[],
  { method, path }: BaseUrlRequest,
): Target | null {
  const isMatch = (target: Target): boolean => mismatchAtOrigin(target, method, path) === null;
  const nearest = exact.find((target) => mismatchAtOrigin(target, method, path) === 'method');
  return exact.find(isMatch) ?? nearest ?? targets.find(isMatch) ?? exact[0] ?? targets[0] ?? null;
}

export function useFieldsOf(
  requested: UseRequest | BaseUrlRequest,
  resolved: ResolvedRequest | UnresolvedDenial,
): Pick<UseFields, 'method' | 'host' | 'target_path'> {
  const url = 'code' in resolved ? null : resolved.request.url;
  const { path } = 'url' in requested ? requested.url : requested;
  return { method: requested.method, host: url?.host ?? null, target_path: path };
}
