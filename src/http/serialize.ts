/** Converts the vault's types to those of the interface, with keys in snake case and times as ISO 8601 timestamps. */
import type * as api from '../api/types.ts';
import type { Agent } from '../core/agent.ts';
import type { ServiceDefinition } from '../core/catalogue/definition.ts';
import { sdkEnvironment } from '../core/catalogue/sdk-environment.ts';
import type { CountedCredential } from '../core/credential.ts';
import { type Lease, statusOf } from '../core/lease.ts';
import type { LeaseAt } from '../core/operations/leases.ts';
import type { Policy } from '../core/policy.ts';
import { toLimitFields } from '../core/policy-limits.ts';
import { originOf, parseTargets, type Target, type Usage } from '../core/target.ts';
import type { MetadataWithCount } from '../vault/credentials.ts';
import type { NewUseLease } from '../vault/use-leases.ts';
import type { VerificationResult, VerificationStatus } from '../vault/verification/verifier.ts';

let lastAt = Number.NaN;
let lastTimestamp = '';

/** Caches the last timestamp, because the responses of one batch contain the same time. */
export function toTimestamp(at: number): string {
  if (at !== lastAt) {
    lastTimestamp = new Date(at).toISOString();
    lastAt = at;
  }
  return lastTimestamp;
}

export const toCredentialResponse = (credential: CountedCredential): api.ListedCredential => ({
  path: credential.path,
  type: credential.type,
  description: credential.description,
  created_at: toTimestamp(credential.createdAt),
  updated_at: toTimestamp(credential.updatedAt),
  access_count: credential.accessCount,
});

export const toMetadataResponse = ({ credential, versions }: MetadataWithCount): api.CredentialMetadata => ({
  ...toCredentialResponse(credential),
  versions: versions.map(({ version, createdAt }) => ({ version, created_at: toTimestamp(createdAt) })),
});

export const toPolicyResponse = (policy: Policy): api.PolicyResponse => ({
  name: policy.name,
  principal: policy.principal,
  resources: [...policy.resources],
  actions: [...policy.actions],
  max_ttl: policy.maxTtlSeconds,
  // WHY also undefined: a saved reply of an earlier version does not have it.
  ...(policy.limits == null ? {} : { limits: toLimitFields(policy.limits) }),
  created_at: toTimestamp(policy.createdAt),
});

const toTarget = (target: Target): api.CredentialTargets['targets'][number] => ({
  origin: originOf(target),
  paths: [...target.paths],
  methods: [...target.methods],
  allow_networks: [...target.allowNetworks],
  ca_pem: target.caPem,
});

export const toTargetsResponse = ({ path, service, targets, placement, updatedAt }: Usage): api.CredentialTargets => ({
  path,
  service,
  targets: targets.map(toTarget),
  placement:
    placement.kind === 'basic' && placement.username === null
      ? { kind: placement.kind }
      : (placement as api.CredentialTargets['placement']),
  updated_at: toTimestamp(updatedAt),
});

export const toUseLeaseResponse = ({ lease, token, service }: NewUseLease, baseUrl: string): api.UseLease => ({
  lease_id: lease.id,
  token: token.reveal(),
  base_url: baseUrl,
  expires_at: toTimestamp(lease.expiresAt),
  env: service === null ? {} : sdkEnvironment(service, baseUrl, token.reveal()),
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
  denied: service.mints.map(({ methods, path }) => `${methods?.join(',') ?? 'ANY'} ${path}`),
  notes: [...service.notes],
});

export const toAgentResponse = (agent: Agent): api.AgentResponse => ({
  name: agent.name,
  description: agent.description,
  public_key: agent.publicKey,
  registered_at: toTimestamp(agent.registeredAt),
});

export const toLeaseResponse = ({ lease, now }: LeaseAt): api.LeaseResponse => ({
  lease_id: lease.id,
  agent_name: lease.agentName,
  path: lease.path,
  version: lease.version,
  policy_name: lease.policyName,
  issued_at: toTimestamp(lease.issuedAt),
  expires_at: toTimestamp(lease.expiresAt),
  revoked_at: lease.revokedAt === null ? null : toTimestamp(lease.revokedAt),
  status: statusOf(lease, now),
});

export const toListedLeaseResponse = (now: number) => (lease: Lease) => toLeaseResponse({ lease, now });

export function toVerificationResponse(verification: VerificationResult): api.Verification {
  if (verification.isValid) {
    const { entries, firstEntry, lastEntry } = verification;
    return { valid: true, entries, first_entry: firstEntry, last_entry: lastEntry };
  }
  const { breakAtEntry, breakAtTimestamp, reason } = verification;
  return {
    valid: false,
    break_at_entry: breakAtEntry,
    break_at_timestamp: breakAtTimestamp,
    message: `The audit chain is broken at entry ${breakAtEntry}: ${reason}.`,
  };
}

/** `progress` is null if no verification runs. */
export const toProgressResponse = (progress: VerificationStatus | null): api.VerificationProgress => ({
  running: progress !== null,
  entries_checked: progress?.entriesChecked ?? null,
  entries_total: progress?.entriesTotal ?? null,
  started_at: progress === null ? null : toTimestamp(progress.startedAt),
});
