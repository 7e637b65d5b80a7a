/** Converts exposures, and what a panic ended, to the types of the interface. */
import type { CredentialExposure, Held, Panicked } from '../api/types.ts';
import type { CredentialPath } from '../core/path.ts';
import type { AgentExposure, VersionExposure } from '../vault/exposure.ts';
import type { HeldCounts, PanicResult } from '../vault/panic.ts';
import { toTimestamp } from './serialize.ts';

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
