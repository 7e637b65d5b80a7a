/**
 * Targets: where a credential may be used, and how its value is placed in a request. They are written by the callers
 * that may store the credential, never by a request. SOURCE: docs/api.md, "Targets"; docs/decisions.md, "Brokered use".
 */

import { parseIpNetwork, unreachableNetwork } from '../../core/ip-network.ts';
import type { Brand, CredentialId } from '../../core/names.ts';
import { type CredentialPath, pathViolation } from '../../core/path.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { type Host, parseAuthority, parseHost, type Scheme, type UpstreamUrl, type UrlPath } from './upstream-url.ts';

/** A DNS name, an address, or `*.` and a DNS name for exactly one more label. */
export type HostPattern = Brand<string, 'HostPattern'>;
/** `/*`, `/prefix/*` or an exact path. */
type UrlPathPattern = Brand<string, 'UrlPathPattern'>;
export type Method = Brand<string, 'Method'>;

export interface Target {
  readonly scheme: Scheme;
  readonly host: HostPattern;
  readonly port: number;
  readonly paths: readonly UrlPathPattern[];
  readonly methods: readonly Method[];
  /** CIDR blocks that the guard against internal addresses lets through. */
  readonly allowNetworks: readonly string[];
  /** The certificate authorities of this target; null for the public ones. */
  readonly caPem: string | null;
}

export type Placement =
  | { readonly kind: 'bearer' }
  /** The template contains `{value}` once. */
  | { readonly kind: 'header'; readonly name: string; readonly template: string }
  /** The value is `user:password` if the user name is null. */
  | { readonly kind: 'basic'; readonly username: string | null }
  | { readonly kind: 'query'; readonly name: string };

/** What a credential may be used for. */
export interface TargetBinding {
  readonly credentialId: CredentialId;
  readonly path: CredentialPath;
  readonly service: string | null;
  readonly targets: readonly Target[];
  readonly placement: Placement;
  readonly updatedAt: number;
}

export interface UseRequest {
  readonly method: Method;
  readonly url: UpstreamUrl;
}

export const MAX_TARGETS = 16;
const MAX_PATTERNS = 64;
const MAX_NETWORKS = 32;
const MAX_CA_PEM_LENGTH = 65_536;
export const DEFAULT_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].map((name) => name as Method);
/** CONNECT makes a tunnel, and TRACE returns the injected header. */
export const METHOD = /^(?!(?:CONNECT|TRACE|TRACK)$)[A-Z]{1,16}$/;
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const HEADER_TEXT = /^[\x20-\x7e]{1,256}$/;
/** Headers that frame or route a request; a value in one of them would change where it ends or goes. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'content-type',
  'expect',
  'forwarded',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'via',
]);

export interface TargetFields {
  readonly origin: string;
  readonly paths?: readonly string[] | undefined;
  readonly methods?: readonly string[] | undefined;
  readonly allow_networks?: readonly string[] | undefined;
  readonly ca_pem?: string | null | undefined;
}

/** @throws INVALID_REQUEST naming the field and the rule */
export function parseTargets(fields: readonly TargetFields[]): Target[] {
  const targets = parseStoredTargets(fields);
  const unreachable = unreachableNetwork(targets);
  if (unreachable === null) return targets;
  throw invalidRequest(unreachable, 'must not be a network of link-local addresses or metadata services');
}

/**
 * Parses the grammar alone. WHY: a vault may contain targets with networks that are no longer reached, and it must
 * still be backed up and restored. @throws INVALID_REQUEST naming the field and the rule
 */
export function parseStoredTargets(fields: readonly TargetFields[]): Target[] {
  if (fields.length < 1 || fields.length > MAX_TARGETS) {
    throw invalidRequest('targets', `must be an array of 1 to ${MAX_TARGETS} targets`);
  }
  return fields.map((each, index) => parseTarget(each, `targets[${index}]`));
}

function parseTarget(fields: TargetFields, field: string): Target {
  const { paths = ['/*'], methods, allow_networks: networks = [], ca_pem: caPem = null } = fields;
  const { scheme, host, port } = parseOrigin(fields.origin, `${field}.origin`);
  if (paths.length < 1 || paths.length > MAX_PATTERNS) {
    throw invalidRequest(`${field}.paths`, `must be an array of 1 to ${MAX_PATTERNS} patterns`);
  }
  if (methods?.length === 0) throw invalidRequest(`${field}.methods`, 'must be an array of 1 or more methods');
  if (networks.length > MAX_NETWORKS) {
    throw invalidRequest(`${field}.allow_networks`, `must be an array of at most ${MAX_NETWORKS} networks`);
  }
  if (scheme === 'http' && networks.length === 0) {
    throw invalidRequest(
      `${field}.origin`,
      'may be http only with allow_networks that cover every address of the host',
    );
  }
  if (caPem !== null && (caPem.length > MAX_CA_PEM_LENGTH || !caPem.startsWith('-----BEGIN CERTIFICATE-----'))) {
    throw invalidRequest(`${field}.ca_pem`, `must be PEM certificates of at most ${MAX_CA_PEM_LENGTH} characters`);
  }
  return {
    scheme,
    host,
    port,
    paths: [...new Set(paths.map((text, index) => parseUrlPathPattern(text, `${field}.paths[${index}]`)))],
    methods: [
      ...new Set(methods?.map((text, index) => parseMethod(text, `${field}.methods[${index}]`)) ?? DEFAULT_METHODS),
    ],
    allowNetworks: networks.map((text, index) => parseNetwork(text, `${field}.allow_networks[${index}]`)),
    caPem,
  };
}

function parseOrigin(text: string, field: string): Pick<Target, 'scheme' | 'host' | 'port'> {
  const [, scheme, authority = ''] = /^(https?):\/\/([^/?#@\\]{1,260})$/.exec(text) ?? [];
  if (scheme !== 'https' && scheme !== 'http') {
    throw invalidRequest(field, 'must be an origin such as https://api.example.com, without a path');
  }
  const { host, port } = parseAuthority(scheme, authority, field);
  const name = host.startsWith('*.') ? host.slice(2) : host;
  if (name !== host && !/^[^.]+\..*[a-z]/.test(name)) {
    throw invalidRequest(field, '* is allowed only as the first label before a name of two or more labels');
  }
  parseHost(name, field);
  return { scheme, host: host as HostPattern, port };
}

/** A pattern of the one grammar after a leading slash. */
function parseUrlPathPattern(text: string, field: string): UrlPathPattern {
  if (text === '/' || text === '/*') return text as UrlPathPattern;
  const path = text.slice(1, text.endsWith('/*') ? -2 : undefined);
  const rule = text.startsWith('/') ? pathViolation(path) : 'must begin with /';
  if (rule !== null) throw invalidRequest(field, `must be a pattern such as /v1/models or /v1/*; its path ${rule}`);
  return text as UrlPathPattern;
}

/** @throws INVALID_REQUEST */
export function parseMethod(text: string, field = 'method'): Method {
  if (!METHOD.test(text)) throw invalidRequest(field, 'must be an HTTP method in capitals, and not CONNECT or TRACE');
  return text as Method;
}

function parseNetwork(text: string, field: string): string {
  if (parseIpNetwork(text) === null) throw invalidRequest(field, 'must be a network such as 10.0.0.0/8 or fd00::/8');
  return text;
}

export interface PlacementFields {
  readonly kind: 'bearer' | 'header' | 'basic' | 'query';
  readonly name?: string | undefined;
  readonly template?: string | undefined;
  readonly username?: string | undefined;
}

/** @throws INVALID_REQUEST naming the field and the rule */
export function parsePlacement({ kind, name, template, username }: PlacementFields): Placement {
  const isNamed = kind === 'header' || kind === 'query';
  if (isNamed !== (name !== undefined)) {
    throw invalidRequest('placement.name', isNamed ? 'is required' : `must not be given for ${kind}`);
  }
  if (template !== undefined && kind !== 'header') throw invalidRequest('placement.template', 'is only for header');
  if (username !== undefined && kind !== 'basic') throw invalidRequest('placement.username', 'is only for basic');
  if (kind === 'bearer') return { kind };
  if (kind === 'basic') {
    if (username !== undefined && !/^[\x21-\x39\x3b-\x7e]{1,128}$/.test(username)) {
      throw invalidRequest('placement.username', 'must be 1 to 128 visible ASCII characters without a colon');
    }
    return { kind, username: username ?? null };
  }
  const own = name ?? '';
  if (kind === 'query') {
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(own)) {
      throw invalidRequest('placement.name', 'must be 1 to 64 characters of A-Z a-z 0-9 . _ -');
    }
    return { kind, name: own };
  }
  if (!HEADER_NAME.test(own) || RESERVED_HEADERS.has(own.toLowerCase())) {
    throw invalidRequest('placement.name', 'must be the name of a header that does not frame or route the request');
  }
  const pattern = template ?? '{value}';
  if (!HEADER_TEXT.test(pattern) || pattern.split('{value}').length !== 2) {
    throw invalidRequest('placement.template', 'must be visible ASCII that contains {value} once');
  }
  return { kind, name: own, template: pattern };
}

function matchesHost({ host }: Target, requested: Host): boolean {
  if (!host.startsWith('*.')) return (host as string) === requested;
  const suffix = host.slice(1);
  const label = requested.slice(0, -suffix.length);
  return requested.endsWith(suffix) && label !== '' && !label.includes('.');
}

function matchesPath(pattern: UrlPathPattern, path: UrlPath): boolean {
  return pattern.endsWith('/*') ? path.startsWith(pattern.slice(0, -1)) : (pattern as string) === path;
}

/** What a target lacks for a request: the first of these that differs. */
export type Mismatch = 'host' | 'method' | 'path';

export function mismatchOf(target: Target, { method, url }: UseRequest): Mismatch | null {
  if (target.scheme !== url.scheme || target.port !== url.port || !matchesHost(target, url.host)) return 'host';
  if (!target.paths.some((pattern) => matchesPath(pattern, url.path))) return 'path';
  return target.methods.includes(method) ? null : 'method';
}

export function findTarget(targets: readonly Target[], request: UseRequest): Target | null {
  return targets.find((target) => mismatchOf(target, request) === null) ?? null;
}

/** The target that fails last: by method, then by path, then by host. */
export function nearestTarget(
  targets: readonly Target[],
  request: UseRequest,
): { target: Target; lacks: Mismatch } | null {
  const order: readonly Mismatch[] = ['method', 'path', 'host'];
  for (const lacks of order) {
    const target = targets.find((each) => mismatchOf(each, request) === lacks);
    if (target !== undefined) return { target, lacks };
  }
  return null;
}

export function originOf({ scheme, host, port }: Pick<Target | UpstreamUrl, 'scheme' | 'host' | 'port'>): string {
  const isDefault = port === (scheme === 'https' ? 443 : 80);
  return `${scheme}://${host}${isDefault ? '' : `:${port}`}`;
}
