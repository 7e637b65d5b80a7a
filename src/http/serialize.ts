/** Converts the vault's types to those of the HTTP API, with keys in snake case and times as ISO 8601 timestamps. */
import type * as api from '../api/types.ts';
import { toTimestamp } from '../engine/timestamp.ts';
import type { ServiceDefinition } from '../vault/catalogue/definition.ts';
import type { KeySlot } from '../vault/keys/keyset.ts';
import { originOf, parseTargets, type Target, type TargetBinding } from '../vault/use/target.ts';

const toTarget = (target: Target): api.CredentialTargets['targets'][number] => ({
  origin: originOf(target),
  paths: [...target.paths],
  methods: [...target.methods],
  allow_networks: [...target.allowNetworks],
  ca_pem: target.caPem,
});

export const toTargetsResponse = ({
  path,
  service,
  targets,
  placement,
  updatedAt,
}: TargetBinding): api.CredentialTargets => ({
  path,
  service,
  targets: targets.map(toTarget),
  placement:
    placement.kind === 'basic' && placement.username === null
      ? { kind: placement.kind }
      : (placement as api.CredentialTargets['placement']),
  updated_at: toTimestamp(updatedAt),
});

export const toServiceResponse = (service: ServiceDefinition): api.CatalogueService => ({
  name: service.name,
  title: service.title,
  unsupported: service.unsupported,
  needs_host: service.needsHost,
  targets: service.targets.length === 0 ? [] : parseTargets(service.targets).map(toTarget),
  placement: service.placement as api.CatalogueService['placement'],
  variables: service.variables.map(({ readBy, ...variable }) => ({ ...variable, read_by: readBy })),
  key_prefixes: [...service.key.prefixes],
  denied: service.secretEndpoints.map(({ methods, path }) => `${methods?.join(',') ?? 'ANY'} ${path}`),
  notes: [...service.notes],
});

export const toKeySlotResponse = ({ name, kind, parameters, createdAt }: KeySlot): api.KeySlotResponse => ({
  name,
  kind,
  parameters: { ...parameters },
  created_at: toTimestamp(createdAt),
});
