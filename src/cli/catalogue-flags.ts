/** The services of the catalogue as flags of commands, and the targets that they name. */

import { nearest } from '../core/operator-text.ts';
import { parsed } from '../flags/flag.ts';
import { UsageError } from '../platform/errors.ts';
import { SERVICES, serviceTargets } from '../vault/catalogue/catalogue.ts';
import type { ServiceDefinition } from '../vault/catalogue/definition.ts';
import type { TargetFields } from '../vault/use/target.ts';
import { wrap } from './output/table.ts';

const LIST_WIDTH = 100;
const USABLE: readonly string[] = SERVICES.filter(({ unsupported }) => unsupported === null).map(({ name }) => name);

export const SERVICE = parsed(
  'NAME',
  'the service of the value, such as openai: its hosts, and how it takes a key',
  toService,
);

/** @throws UsageError */
function toService(given: string, field: string): ServiceDefinition {
  const found = SERVICES.find(({ name }) => name === given);
  if (found === undefined) {
    const near = nearest(given.toLowerCase(), USABLE);
    const hint = near === null ? '' : `; did you mean ${near}?`;
    const names = wrap(USABLE.join(', '), 2, { width: LIST_WIDTH });
    throw new UsageError(`${field}: unknown service${hint}\n  ${names}`, OTHER_SERVICE);
  }
  if (found.unsupported !== null) throw new UsageError(`${field}: ${given} cannot be used yet: ${found.unsupported}`);
  return found;
}

const OTHER_SERVICE = 'For any other service: leasehold target put PATH --origin URL';

/**
 * The targets of the service with the customer's own hosts. Null if the catalogue lists the hosts and no origin is
 * given. @throws UsageError
 */
export function targetsAt(service: ServiceDefinition, origins: readonly string[]): readonly TargetFields[] | null {
  const { name, needsHost, targets } = service;
  if (!needsHost) {
    return origins.length === 0 ? null : origins.map((origin) => ({ origin }));
  }
  const form = targets.map(({ origin }) => origin).join(' or ');
  if (origins.length === 0) {
    throw new UsageError(
      `--service: each customer of ${name} has another host`,
      `Add --origin URL, of the form ${form}`,
    );
  }
  try {
    return origins.flatMap((origin) => serviceTargets(service, origin));
  } catch {
    throw new UsageError(`--origin: must be a host of ${name}, of the form ${form}`);
  }
}

/**
 * A warning for a value that does not look like a key of the service; null if it does, or if its keys have no fixed
 * form.
 */
export function keyWarning({ name, key, placement }: ServiceDefinition, value: string): string | null {
  const { prefixes } = key;
  // The value of Basic may begin with a user.
  if (placement.kind === 'basic' || prefixes.length === 0 || prefixes.some((prefix) => value.startsWith(prefix))) {
    return null;
  }
  return `WARNING  keys of ${name} begin with ${prefixes.join(' or ')}, and this value does not.`;
}
