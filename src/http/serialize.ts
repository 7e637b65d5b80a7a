/** Converts the vault's types to those of the interface, with keys in snake case and times as ISO 8601 timestamps. */
import type * as api from '../api/types.ts';
import type { CredentialExposure, Held, Panicked } from '../api/types.ts';
import type { MinuteCounts } from '../core/measures.ts';
import type { CredentialPath } from '../core/path.ts';
import { toTimestamp } from '../engine/timestamp.ts';
import type { SignedCheckpoint } from '../vault/audit/checkpoints.ts';
import type { StateCheck } from '../vault/audit/verification/state-scan.ts';
import type { VerificationResult, VerificationStatus } from '../vault/audit/verification/verifier.ts';
import type { ServiceDefinition } from '../vault/catalogue/definition.ts';
import { sdkEnvironment } from '../vault/catalogue/sdk-environment.ts';
import type { CountedCredential } from '../vault/credentials/credential.ts';
import type { MetadataWithCount } from '../vault/credentials/credentials.ts';
import type { AgentExposure, VersionExposure } from '../vault/exposure/exposure.ts';
import type { HeldCounts, PanicResult } from '../vault/exposure/panic.ts';
import type { KeySlot } from '../vault/keys/keyset.ts';
import { type Lease, statusOf } from '../vault/leases/lease.ts';
import type { LeaseAt } from '../vault/leases/lease-operations.ts';
import type { Advisory } from '../vault/overview/advisories.ts';
import type { TreeLevel } from '../vault/overview/credential-tree.ts';
import type { AccessMatrix } from '../vault/overview/matrix.ts';
import type { SeenNode } from '../vault/overview/nodes.ts';
import { ACTIONS } from '../vault/policies/policy.ts';
import type { CurrentSession } from '../vault/sessions/session-operations.ts';
import { originOf, parseTargets, type Target, type TargetBinding } from '../vault/use/target.ts';
import type { NewUseLease } from '../vault/use/use-leases.ts';

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
  denied: service.secretEndpoints.map(({ methods, path }) => `${methods?.join(',') ?? 'ANY'} ${path}`),
  notes: [...service.notes],
});

export const toKeySlotResponse = ({ name, kind, parameters, createdAt }: KeySlot): api.KeySlotResponse => ({
  name,
  kind,
  parameters: { ...parameters },
  created_at: toTimestamp(createdAt),
});

export const toSessionResponse = (token: string, session: CurrentSession): api.SessionResponse => ({
  session_id: token,
  ...sessionFields(session),
});

/** Omits the token of a browser's session, of which no page receives the whole. */
export const toCurrentSessionResponse = (
  { token, browser }: { readonly token: string; readonly browser: { readonly isSession: boolean } },
  session: CurrentSession,
): api.CurrentSessionResponse => ({
  ...(browser.isSession ? {} : { session_id: token }),
  ...sessionFields(session),
});

const sessionFields = (session: CurrentSession): Omit<api.SessionResponse, 'session_id'> => ({
  agent_name: session.agentName,
  expires_at: toTimestamp(session.expiresAt),
  expires_in: session.expiresInSeconds,
  ...(session.operator === null
    ? {}
    : { roles: [...session.operator.roles], ends_at: toTimestamp(session.operator.endsAt) }),
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

export function toVerificationResponse(verification: VerificationResult, check: StateCheck | null): api.Verification {
  const state = check === null ? {} : { state: toStateResponse(check) };
  if (verification.isValid) {
    const { entries, firstEntry, lastEntry } = verification;
    return { valid: true, entries, first_entry: firstEntry, last_entry: lastEntry, ...state };
  }
  const { breakAtEntry, breakAtTimestamp, reason } = verification;
  return {
    valid: false,
    break_at_entry: breakAtEntry,
    break_at_timestamp: breakAtTimestamp,
    message: `The audit chain is broken at entry ${breakAtEntry}: ${reason}.`,
    ...state,
  };
}

function toStateResponse({ checked, problemCount, problems }: StateCheck): NonNullable<api.Verification['state']> {
  // An altered row may hold any text.
  const shown = problems.map(({ subject, problem }) => ({ subject: subject.toWellFormed().slice(0, 600), problem }));
  return { checked, problem_count: problemCount, problems: shown };
}

export const toCheckpointResponse = (checkpoint: SignedCheckpoint): api.Checkpoint => ({
  origin: checkpoint.origin,
  size: checkpoint.size,
  root: checkpoint.rootText,
  note: checkpoint.note,
  verifier_key: checkpoint.verifierKey,
  signed_at: toTimestamp(checkpoint.signedAt),
});

/** `progress` is null if no verification runs. */
export const toProgressResponse = (
  progress: VerificationStatus | null,
  rowsChecked: number,
): api.VerificationProgress => ({
  running: progress !== null || rowsChecked > 0,
  entries_checked: progress?.entriesChecked ?? null,
  entries_total: progress?.entriesTotal ?? null,
  ...(rowsChecked === 0 ? {} : { rows_checked: rowsChecked }),
  started_at: progress === null ? null : toTimestamp(progress.startedAt),
});

const toAgent = ({ agentName, firstAt, lastAt, times, isLive }: AgentExposure) => ({
  agent_name: agentName,
  first_at: toTimestamp(firstAt),
  last_at: toTimestamp(lastAt),
  times,
  live: isLive,
});

export const toExposureResponse = (path: CredentialPath, versions: readonly VersionExposure[]): CredentialExposure => ({
  path,
  versions: versions.map(({ version, newestVersion, seenBy, usedBy }) => ({
    version,
    deleted: newestVersion === null,
    seen_by: seenBy.map(toAgent),
    used_by: usedBy.map(toAgent),
  })),
});

/** `versions` are in the order of their paths. */
export function toExposureResponses(versions: readonly VersionExposure[]): CredentialExposure[] {
  return [...Map.groupBy(versions, ({ path }) => path)].map(([path, own]) => toExposureResponse(path, own));
}

const toVersion = ({ path, version, newestVersion }: VersionExposure) => ({
  path,
  version,
  current: version === newestVersion,
});

export const toHeldResponse = ({ leases, sessions, streams }: HeldCounts): Held => ({ leases, sessions, streams });

export const toPanicResponse = ({ leases, sessions, streams, rotate, usedOnly }: PanicResult): Panicked => ({
  leases,
  sessions,
  streams,
  rotate: rotate.map(toVersion),
  used_only: usedOnly.map(toVersion),
});

export const toMatrixResponse = (matrix: AccessMatrix): api.Matrix => ({
  agents: matrix.agents.map((name) => ({ name })),
  agents_total: matrix.agentsTotal,
  paths: [...matrix.paths],
  paths_total: matrix.pathsTotal,
  actions: [...ACTIONS],
  decisions: matrix.decisions.map(({ allowed, policyName, reason }) => ({ allowed, policy_name: policyName, reason })),
  cells: matrix.cells as number[][][],
});

export const toTreeResponse = (prefix: string, { entries, next }: TreeLevel): api.Tree => ({
  prefix,
  entries: entries.map(({ name, path, directory, credential }) => ({
    name,
    kind: directory === null ? ('credential' as const) : ('directory' as const),
    path,
    ...(directory ?? {}),
    ...(credential === null ? {} : { type: credential.type, updated_at: toTimestamp(credential.updatedAt) }),
  })),
  next,
});

export const toAttentionResponse = ({ since, ...item }: Advisory): api.AttentionItem => ({
  ...item,
  since: since === null ? null : toTimestamp(since),
});

export const toActivityResponse = ({ at, ...counts }: MinuteCounts): api.ActivityMinute => ({
  at: toTimestamp(at),
  ...counts,
});

export const toNodeResponse = (node: SeenNode): api.NodeResponse => ({
  name: node.name,
  version: node.version,
  started_at: toTimestamp(node.startedAt),
  status: node.status,
  is_self: node.isSelf,
  seen_at: toTimestamp(node.seenAt),
  newest_seq: node.newestSeq,
});
