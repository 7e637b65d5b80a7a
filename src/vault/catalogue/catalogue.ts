/** The catalogue: the services that a credential can be stored for by name, and how a user's host completes one. */
import { invalidRequest } from '../../engine/errors.ts';
import {
  findTarget,
  type Placement,
  type PlacementFields,
  parseMethod,
  parsePlacement,
  parseTargets,
  type Target,
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
 * The service whose key the value is, by its form; null if none is certain. A form that other companies' keys have too
 * counts only if the name says whose the key is. WHY so careful: a service that is wrong would receive the key.
 * Services that need a host, or a user beside the key, are never recognised.
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
 * The targets to store for a credential of the service, with `origin` instead of the wildcard where the service needs
 * a host.
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

/** What a request says about a credential's use; the service fills what it leaves out. */
export interface UsageFields {
  readonly service?: string | undefined;
  readonly targets?: readonly TargetFields[] | undefined;
  readonly placement?: PlacementFields | undefined;
}

export interface CompleteBinding {
  readonly service: string | null;
  readonly targets: readonly Target[];
  readonly placement: Placement;
}

/**
 * Fills targets and placement from the service; given fields override its own. For a service that needs a host, each
 * given target has the service's fields except for those that it contains.
 * @throws INVALID_REQUEST
 */
export function completeUsage({ service: name, targets, placement }: UsageFields): CompleteBinding {
  if (name === undefined) {
    if (targets === undefined) throw invalidRequest('targets', 'is required without service');
    if (placement === undefined) throw invalidRequest('placement', 'is required without service');
    return { service: null, targets: parseTargets(targets), placement: parsePlacement(placement) };
  }
  const service = findService(name);
  if (service === null) {
    throw invalidRequest('service', 'must be a service of the catalogue, which GET /api/v1/services lists');
  }
  const [first, ...others] = targets ?? [];
  const own = serviceTargets(service, first?.origin);
  const merged = service.needsHost
    ? [first, ...others].flatMap((given) =>
        serviceTargets(service, given?.origin).map((target) => ({ ...target, ...given })),
      )
    : (targets ?? own);
  return { service: name, targets: parseTargets(merged), placement: parsePlacement(placement ?? service.placement) };
}

function isHostOf({ targets }: ServiceDefinition, origin: string): boolean {
  if (!/^https:\/\/[a-z0-9.-]+$/.test(origin)) return false;
  const anyPath = parseTargets(targets.map((target) => ({ origin: target.origin })));
  return findTarget(anyPath, { method: parseMethod('GET'), url: parseUrl(origin) }) !== null;
}
