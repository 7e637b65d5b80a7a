/**
 * Targets: the requests that a credential may be used for, and the placement of its value. Callers that may store the
 * credential write them; a brokered request cannot. SOURCE: docs/api.md, "Targets"; docs/decisions.md, "Brokered use".
 */

import * as grammar from '../../core/grammars.ts';
import { isNetwork, unreachableNetwork } from '../../core/ip-network.ts';
import type { Brand, CredentialId } from '../../core/names.ts';
import { MAX_PATH_LENGTH, pathViolation } from '../../core/path.ts';
import { type InputOfKinds, kinds, list, type OneKindOf, record } from '../../engine/compounds.ts';
import { invalidRequest } from '../../engine/errors.ts';
import {
  byDefault,
  type Grammar,
  type InputOf,
  internal,
  nullable,
  optional,
  type PatternGrammar,
  parseField,
  type ValueOf,
} from '../../engine/field.ts';
import { text, time } from '../../engine/kinds.ts';
import { shape, stored } from '../../engine/resource.ts';
import { parseAuthority, parseHost, type Scheme, type UpstreamUrl, type UrlPath } from './upstream-url.ts';

/** `scheme://host` or `scheme://host:port`; the host may be `*.` and a DNS name, for exactly one more label. */
export type TargetOrigin = Brand<string, 'TargetOrigin'>;
/** `/*`, `/prefix/*` or an exact path. */
export type UrlPathPattern = Brand<string, 'UrlPathPattern'>;
export type Method = Brand<string, 'Method'>;

export interface UseRequest {
  readonly method: Method;
  readonly url: UpstreamUrl;
}

export const MAX_TARGETS = 16;
const MAX_CA_PEM_LENGTH = 65_536;
export const DEFAULT_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].map((name) => name as Method);

const ORIGIN: Grammar<TargetOrigin> = {
  pattern: /^https?:\/\/[^/?#@\\]+$/,
  minLength: 8,
  maxLength: 300,
  description: '`https://host`, `https://*.host` for one label, or with a port.',
  parse: parseOrigin,
};

const URL_PATH_PATTERN: Grammar<UrlPathPattern> = {
  pattern: /^\//,
  minLength: 1,
  maxLength: MAX_PATH_LENGTH + 3,
  noun: 'pattern',
  parse: parseUrlPathPattern,
};

/** CONNECT makes a tunnel, and TRACE returns the injected header. */
export const METHOD: Grammar<Method> = {
  ...grammar.matching<Method>(
    /^(?!(?:CONNECT|TRACE|TRACK)$)[A-Z]{1,16}$/,
    [1, 16],
    'must be an HTTP method in capitals, and not CONNECT or TRACE',
  ),
  noun: 'method',
  description: 'An HTTP method in capitals, not CONNECT or TRACE.',
};

const NETWORK: Grammar<string> = {
  pattern: /^[0-9A-Fa-f:.]+\/\d+$/,
  minLength: 4,
  maxLength: 49,
  noun: 'network',
  parse(given, field) {
    if (isNetwork(given)) return given;
    throw invalidRequest(field, 'must be a network such as 10.0.0.0/8 or fd00::/8');
  },
};

const CA_PEM = grammar.matching(
  /^-----BEGIN CERTIFICATE-----/,
  [1, MAX_CA_PEM_LENGTH],
  `must be PEM certificates of at most ${MAX_CA_PEM_LENGTH} characters`,
);

const origin = text(ORIGIN);
const paths = list(text(URL_PATH_PATTERN), { min: 1, max: 64 }, { description: '`/*` by default.' });
const methods = list(
  text(METHOD),
  { min: 1, max: 32 },
  { description: 'GET, HEAD, POST, PUT, PATCH and DELETE by default.' },
);
/** CIDR blocks that the guard against internal addresses lets through. */
const allowNetworks = list(
  text(NETWORK),
  { min: 0, max: 32 },
  { wire: 'allow_networks', description: 'Networks that the guard against internal addresses rejects by default.' },
);
const caPem = nullable(
  text(CA_PEM, {
    wire: 'ca_pem',
    description: 'The certificate authorities of this target, in place of the public ones.',
  }),
);

const TARGET = { origin, paths, methods, allowNetworks, caPem };
export type Target = ValueOf<typeof TARGET>;
export const COMPLETE_TARGET = record(TARGET, { title: 'Target', check: httpViolation });

/** The fields of a target in a request. */
const GIVEN_TARGET = {
  origin,
  paths: optional(paths),
  methods: optional(methods),
  allowNetworks: optional(allowNetworks),
  caPem: optional(caPem),
};
export type GivenTarget = ValueOf<typeof GIVEN_TARGET>;
export type TargetFields = InputOf<typeof GIVEN_TARGET>;

function httpViolation({ origin, allowNetworks }: Pick<GivenTarget, 'origin' | 'allowNetworks'>): string | null {
  return isHttp(origin) && (allowNetworks ?? []).length === 0
    ? 'origin: may be http only with allow_networks that cover every address of the host'
    : null;
}

/** Headers that frame or route a request. A value in one of them would change its end or its destination. */
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
const HEADER_NAME: PatternGrammar<string> = {
  pattern: /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/,
  minLength: 1,
  maxLength: 64,
  parse(given, field) {
    if (HEADER_NAME.pattern.test(given) && !RESERVED_HEADERS.has(given.toLowerCase())) return given;
    throw invalidRequest(field, 'must be the name of a header that does not frame or route the request');
  },
};
const TEMPLATE: PatternGrammar<string> = {
  pattern: /^[\x20-\x7e]{1,256}$/,
  minLength: 1,
  maxLength: 256,
  parse(given, field) {
    if (TEMPLATE.pattern.test(given) && given.split('{value}').length === 2) return given;
    throw invalidRequest(field, 'must be visible ASCII that contains {value} once');
  },
};
const PARAMETER = grammar.matching(
  /^[A-Za-z0-9._-]{1,64}$/,
  [1, 64],
  'must be 1 to 64 characters of A-Z a-z 0-9 . _ -',
);
const USERNAME = grammar.matching(
  /^[\x21-\x39\x3b-\x7e]{1,128}$/,
  [1, 128],
  'must be 1 to 128 visible ASCII characters without a colon',
);

/** The placements of a value in a request, by kind. */
const PLACEMENTS = {
  bearer: {},
  header: {
    name: text(HEADER_NAME, { description: 'Name of the header or of the query parameter.' }),
    template: byDefault('{value}', text(TEMPLATE, { description: 'Contains `{value}` once.' })),
  },
  /** The value is `user:password` if the user name is null. */
  basic: { username: optional(text(USERNAME, { description: 'Without it the value is `user:password`.' })) },
  query: { name: text(PARAMETER) },
};
const placement = kinds(PLACEMENTS, { title: 'Placement' });
export type Placement = OneKindOf<typeof PLACEMENTS>;
export type PlacementFields = InputOfKinds<typeof PLACEMENTS>;
export const PLACEMENT_KINDS = Object.keys(PLACEMENTS) as Placement['kind'][];

const SERVICE = grammar.matching(/^[a-z0-9-]{1,64}$/, [1, 64], 'must be the name of a service');
const listLimits = { min: 1, max: MAX_TARGETS };

/** The requests that a credential may be used for, and the placement of its value. */
const FIELDS = {
  credentialId: internal(text(grammar.id<CredentialId>())),
  path: text(grammar.path),
  service: nullable(text(SERVICE)),
  allowedTargets: list(COMPLETE_TARGET, listLimits, { wire: 'targets' }),
  placement,
  updatedAt: time({ wire: 'updated_at' }),
};
export const TARGET_ROWS = stored({
  table: 'credential_targets',
  key: 'path',
  subject: { fields: ['path'] },
  fields: FIELDS,
});
export type TargetBinding = ValueOf<typeof FIELDS>;
export const CredentialTargets = shape('CredentialTargets', FIELDS);

/** The targets and the placement of a credential. */
export const GIVEN = {
  targets: list(
    record(GIVEN_TARGET, {
      title: 'Target',
      names: { request: 'TargetFields', reply: 'Target' },
      check: httpViolation,
    }),
    listLimits,
  ),
  placement,
};

/** @throws INVALID_REQUEST naming the field and the rule */
export function parseTargets(fields: readonly TargetFields[]): Target[] {
  return completeTargets(parseField(GIVEN.targets, fields, 'targets'));
}

/**
 * Adds the defaults. WHY the networks are checked here: a vault may contain targets with networks that are no longer
 * reached, and it must still be backed up and restored. @throws INVALID_REQUEST naming the field and the rule
 */
export function completeTargets(given: readonly GivenTarget[]): Target[] {
  const targets = given.map((each) => ({
    ...each,
    paths: each.paths ?? ['/*' as UrlPathPattern],
    methods: each.methods ?? DEFAULT_METHODS,
    allowNetworks: each.allowNetworks ?? [],
  }));
  const unreachable = unreachableNetwork(targets);
  if (unreachable === null) return targets;
  throw invalidRequest(unreachable, 'must not be a network of link-local addresses or metadata services');
}

/** @throws INVALID_REQUEST naming the field and the rule */
export function parsePlacement(fields: PlacementFields): Placement {
  return parseField(placement, fields, 'placement');
}

function parseOrigin(given: string, field: string): TargetOrigin {
  const [, scheme, authority = ''] = /^(https?):\/\/([^/?#@\\]{1,260})$/.exec(given) ?? [];
  if (scheme !== 'https' && scheme !== 'http') {
    throw invalidRequest(field, 'must be an origin such as https://api.example.com, without a path');
  }
  const { host, port } = parseAuthority(scheme, authority, field);
  const name = host.startsWith('*.') ? host.slice(2) : host;
  if (name !== host && !/^[^.]+\..*[a-z]/.test(name)) {
    throw invalidRequest(field, '* is allowed only as the first label before a name of two or more labels');
  }
  parseHost(name, field);
  return toOrigin({ scheme, host, port });
}

/** After its leading slash, the pattern follows the grammar of patterns of credential paths. */
function parseUrlPathPattern(given: string, field: string): UrlPathPattern {
  if (given === '/' || given === '/*') return given as UrlPathPattern;
  const path = given.slice(1, given.endsWith('/*') ? -2 : undefined);
  const rule = given.startsWith('/') ? pathViolation(path) : 'must begin with /';
  if (rule !== null) throw invalidRequest(field, `must be a pattern such as /v1/models or /v1/*; its path ${rule}`);
  return given as UrlPathPattern;
}

/** @throws INVALID_REQUEST */
export function parseMethod(given: string, field = 'method'): Method {
  return METHOD.parse(given, field);
}

function isHttp(origin: TargetOrigin): boolean {
  return origin.startsWith('http:');
}

/** The text before the wildcard and the text after it; null for an origin without a wildcard. */
function wildcardOf(origin: TargetOrigin): readonly [before: string, after: string] | null {
  const at = origin.indexOf('*');
  return at === -1 ? null : [origin.slice(0, at), origin.slice(at + 1)];
}

export function hasWildcard({ origin }: Pick<Target, 'origin'>): boolean {
  return wildcardOf(origin) !== null;
}

function matchesOrigin({ origin }: Target, requested: TargetOrigin): boolean {
  const wildcard = wildcardOf(origin);
  if (wildcard === null) return origin === requested;
  const [before, after] = wildcard;
  const label = requested.slice(before.length, -after.length);
  return requested.startsWith(before) && requested.endsWith(after) && label !== '' && !label.includes('.');
}

function matchesPath(pattern: UrlPathPattern, path: UrlPath): boolean {
  return pattern.endsWith('/*') ? path.startsWith(pattern.slice(0, -1)) : (pattern as string) === path;
}

/** The first part of a request that a target does not allow. */
export type Mismatch = 'host' | 'method' | 'path';

/** The part of a request to the target's origin that the target does not allow; null if it allows the request. */
export function mismatchAtOrigin({ paths, methods }: Target, method: Method, path: UrlPath): Mismatch | null {
  if (!paths.some((pattern) => matchesPath(pattern, path))) return 'path';
  return methods.includes(method) ? null : 'method';
}

function mismatchOf({ method, url }: UseRequest): (target: Target) => Mismatch | null {
  const requested = originOf(url);
  return (target) => (matchesOrigin(target, requested) ? mismatchAtOrigin(target, method, url.path) : 'host');
}

export function findTarget(targets: readonly Target[], request: UseRequest): Target | null {
  const mismatch = mismatchOf(request);
  return targets.find((target) => mismatch(target) === null) ?? null;
}

/** The target that allows most of the request: host and path, else only the host, else no part of it. */
export function nearestTarget(
  targets: readonly Target[],
  request: UseRequest,
): { target: Target; lacks: Mismatch } | null {
  const order: readonly Mismatch[] = ['method', 'path', 'host'];
  const mismatch = mismatchOf(request);
  for (const lacks of order) {
    const target = targets.find((each) => mismatch(each) === lacks);
    if (target !== undefined) return { target, lacks };
  }
  return null;
}

export function originOf(url: UpstreamUrl): TargetOrigin {
  return toOrigin(url);
}

interface OriginParts {
  readonly scheme: Scheme;
  readonly host: string;
  readonly port: number;
}

function toOrigin({ scheme, host, port }: OriginParts): TargetOrigin {
  const isDefault = port === (scheme === 'https' ? 443 : 80);
  return `${scheme}://${host}${isDefault ? '' : `:${port}`}` as TargetOrigin;
}
