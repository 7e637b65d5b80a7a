/** The catalogue: services by name with their targets, and how a user's own host completes them. */

import { list, record } from '../../engine/compounds.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { nullable, optional, parseField, type ReplyOf } from '../../engine/field.ts';
import { anyText, boolean, oneOf } from '../../engine/kinds.ts';
import { type DraftOf, shape } from '../../engine/resource.ts';
import {
  COMPLETE_TARGET,
  completeTargets,
  findTarget,
  GIVEN,
  type GivenTarget,
  parseMethod,
  parsePlacement,
  parseTargets,
  type TargetBinding,
  type TargetFields,
} from '../use/target.ts';
import { parseUrl } from '../use/upstream-url.ts';
import { BUSINESS_SERVICES } from './business-apis.ts';
import { CLOUD_SERVICES } from './cloud-apis.ts';
import { CODE_SERVICES } from './code-apis.ts';
import type { ServiceDefinition } from './definition.ts';
import { MODEL_SERVICES } from './model-apis.ts';

/** Sorted by name. */
export const SERVICES: readonly ServiceDefinition[] = [
  ...[...MODEL_SERVICES, ...CODE_SERVICES, ...CLOUD_SERVICES, ...BUSINESS_SERVICES],
].sort((one, other) => (one.name < other.name ? -1 : 1));

const BY_NAME: ReadonlyMap<string, ServiceDefinition> = new Map(SERVICES.map((service) => [service.name, service]));

export function findService(name: string): ServiceDefinition | null {
  return BY_NAME.get(name) ?? null;
}

/**
 * Recognises the service of a key by the form of the value; null if it is not certain. A form that keys of several
 * companies share counts only if the credential's name names the service. WHY so careful: a wrong service would receive
 * the key. Services that need a host, or a user name besides the key, are never recognised.
 */
export function recogniseKey(name: string, value: string): ServiceDefinition | null {
  const words = name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_');
  const isNamed = ({ name: service, variables }: ServiceDefinition): boolean =>
    `_${words}_`.includes(`_${service.toUpperCase().replaceAll('-', '_')}_`) ||
    variables.some((variable) => variable.holds === 'key' && variable.name === words);
  const isKeyOf = (service: ServiceDefinition): boolean =>
    service.key.forms.some(
      ({ pattern, isShared }) => value.match(pattern)?.[0] === value && (!isShared || isNamed(service)),
    );
  return SERVICES.find((service) => takesKeyAlone(service) && isKeyOf(service)) ?? null;
}

function takesKeyAlone({ unsupported, needsHost, placement }: ServiceDefinition): boolean {
  const needsUser = placement.kind === 'basic' && placement.username === undefined;
  return unsupported === null && !needsHost && !needsUser;
}

/**
 * The targets to store for a credential of the service, with `origin` instead of the wildcard if the service needs a
 * host.
 * @throws INVALID_REQUEST if the service is not supported, or its host is missing or not one of the service's
 */
export function serviceTargets(service: ServiceDefinition, origin?: string): readonly TargetFields[] {
  if (service.unsupported !== null) throw invalidRequest('service', `is not supported: ${service.unsupported}`);
  if (!service.needsHost) return service.targets;
  const form = service.targets.map((target) => target.origin).join(', ');
  const isOwn = origin !== undefined && isHostOf(service, origin);
  if (!isOwn) throw invalidRequest('targets', `must name your own host for ${service.name}, of the form ${form}`);
  return service.targets.map((target) => ({ ...target, origin }));
}

const SERVICE_NAMES = SERVICES.map(({ name }) => name);
const SERVICE = { noun: 'service', description: 'A row of the catalogue.' };

/** A request to set the targets of a credential. The service fills the fields that are not given. */
export const TargetsRequest = shape('TargetsRequest', {
  service: optional(oneOf(SERVICE_NAMES, SERVICE)),
  targets: optional(GIVEN.targets),
  placement: optional(GIVEN.placement),
});
type TargetsDraft = DraftOf<typeof TargetsRequest.fields>;

const VARIABLE = record(
  {
    name: anyText(),
    holds: oneOf(['base-url', 'key', 'fixed']),
    suffix: optional(anyText({ description: 'The path that the SDK expects in its base URL.' })),
    value: optional(anyText({ description: 'The value of a fixed variable.' })),
    readBy: oneOf(['sdk', 'example'], {
      wire: 'read_by',
      description: '`example` if only the documentation of the service uses it.',
    }),
  },
  { title: 'ServiceVariable' },
);

export const CatalogueService = shape('CatalogueService', {
  name: oneOf(SERVICE_NAMES, SERVICE),
  title: anyText(),
  unsupported: nullable(anyText({ description: 'Why the service cannot be used; null if it can.' })),
  needsHost: boolean({
    wire: 'needs_host',
    description: 'Whether `targets` must name a host of the user in place of `*`.',
  }),
  targets: list(COMPLETE_TARGET, { min: 0 }),
  placement: GIVEN.placement,
  variables: list(VARIABLE, { min: 0 }, { description: "Environment variables that the service's SDKs read." }),
  keyPrefixes: list(anyText(), { min: 0 }, { wire: 'key_prefixes' }),
  denied: list(
    anyText(),
    { min: 0 },
    { description: 'Endpoints that return other secrets, such as `POST,PUT /v1/keys/*`; `ANY` is every method.' },
  ),
  notes: list(anyText(), { min: 0 }),
});

export function toServiceReply(service: ServiceDefinition): ReplyOf<typeof CatalogueService.fields> {
  return CatalogueService.toReply({
    ...service,
    targets: service.targets.length === 0 ? [] : parseTargets(service.targets),
    placement: parsePlacement(service.placement),
    variables: service.variables.map((each) => ({ ...each, suffix: each.suffix ?? null, value: each.value ?? null })),
    keyPrefixes: service.key.prefixes,
    denied: service.secretEndpoints.map(({ methods, path }) => `${methods?.join(',') ?? 'ANY'} ${path}`),
  });
}

export type CompleteBinding = Pick<TargetBinding, 'service' | 'allowedTargets' | 'placement'>;

/**
 * Fills targets and placement from the service; given fields override its own. For a service that needs a host, each
 * given target takes the fields that it lacks from the service.
 * @throws INVALID_REQUEST
 */
export function completeBinding({ service: name, targets, placement }: TargetsDraft): CompleteBinding {
  const service = name === null ? null : findService(name);
  if (service === null) {
    if (targets === null) throw invalidRequest('targets', 'is required without service');
    if (placement === null) throw invalidRequest('placement', 'is required without service');
    return { service: null, allowedTargets: completeTargets(targets), placement };
  }
  const ofService = (given: GivenTarget | null): readonly GivenTarget[] =>
    parseField(GIVEN.targets, serviceTargets(service, given?.origin), 'targets').map((own) => overlay(own, given));
  // WHY also with given targets: it rejects a service that is not supported.
  const own = ofService(targets?.[0] ?? null);
  const merged = service.needsHost ? (targets ?? [null]).flatMap(ofService) : (targets ?? own);
  return {
    service: service.name,
    allowedTargets: completeTargets(merged),
    placement: placement ?? parsePlacement(service.placement),
  };
}

function overlay(own: GivenTarget, given: GivenTarget | null): GivenTarget {
  return {
    ...own,
    paths: given?.paths ?? own.paths,
    methods: given?.methods ?? own.methods,
    allowNetworks: given?.allowNetworks ?? own.allowNetworks,
    caPem: given?.caPem ?? own.caPem,
  };
}

function isHostOf({ targets }: ServiceDefinition, origin: string): boolean {
  if (!/^https:\/\/[a-z0-9.-]+$/.test(origin)) return false;
  const anyPath = parseTargets(targets.map((target) => ({ origin: target.origin })));
  return findTarget(anyPath, { method: parseMethod('GET'), url: parseUrl(origin) }) !== null;
}
