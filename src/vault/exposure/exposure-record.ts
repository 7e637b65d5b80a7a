/**
 * The agents that have seen a version of a credential, and the agents that have only used it. SOURCE:
 * docs/decisions.md, "Exposure".
 */
import * as grammar from '../../core/grammars.ts';
import type { CredentialId } from '../../core/names.ts';
import { PAGE } from '../../core/page.ts';
import type { CredentialPath } from '../../core/path.ts';
import { list, record } from '../../engine/compounds.ts';
import { optional, type ReplyOf, type ValueOf } from '../../engine/field.ts';
import { boolean, count, integer, oneOf, positive, text, time } from '../../engine/kinds.ts';
import { shape, stored } from '../../engine/resource.ts';
import { LEASE_KINDS } from '../leases/lease.ts';

/** The limit leaves room for additions, so that the sum stays a safe integer. */
const MAX_TIMES = 2 ** 50;

const path = text(grammar.path);
const version = positive();
/** WHY the name and not the id: the audit log and operators identify an agent by its name only. */
const agentName = text(grammar.actorName, { wire: 'agent_name' });
const firstAt = time({ wire: 'first_at' });
const lastAt = time({ wire: 'last_at' });
const times = integer({ min: 1, max: MAX_TIMES });

/** The only list of the columns of an exposure. */
const FIELDS = {
  path,
  /** Distinguishes credentials that had the same path. */
  credentialId: text(grammar.id<CredentialId>()),
  version,
  /** `retrieve` means seen; `use` means used with a lease for that request; `token`, with the token of a use lease. */
  kind: oneOf([...LEASE_KINDS, 'token']),
  agentName,
  firstAt,
  lastAt,
  times,
};
export const EXPOSURE_ROWS = stored({
  table: 'exposures',
  key: ['path', 'credentialId', 'version', 'kind', 'agentName'],
  fields: FIELDS,
});
export type Exposure = ValueOf<typeof FIELDS>;

/** A table with one row. It is empty before the first lease is added to the exposures. */
export const EXPOSURE_PROGRESS_ROWS = stored({
  table: 'exposure_progress',
  key: ['id'],
  maxRows: 1,
  fields: { id: integer({ min: 1, max: 1 }), throughSeq: count() },
});

const BY_AGENT = {
  agentName,
  firstAt,
  lastAt,
  times,
  isLive: boolean({ wire: 'live', description: 'Whether it still has an active lease for it.' }),
};
/** `isLive` tells whether the agent still has an active lease by which it received the version, or may use it. */
export type AgentExposure = ValueOf<typeof BY_AGENT>;

export interface VersionExposure {
  readonly path: CredentialPath;
  readonly credentialId: CredentialId;
  readonly version: number;
  /** The newest version of the credential; null if it was deleted, and another one may have its path. */
  readonly newestVersion: number | null;
  /** The agents, sorted by name. */
  readonly seenBy: readonly AgentExposure[];
  readonly usedBy: readonly AgentExposure[];
}

const agents = record(BY_AGENT, { title: 'AgentExposure' });

export const CredentialExposure = shape('CredentialExposure', {
  path,
  versions: list(
    record(
      {
        version,
        isDeleted: boolean({ wire: 'deleted', description: 'Whether it was of a credential that was deleted.' }),
        seenBy: list(agents, { min: 0 }, { wire: 'seen_by' }),
        usedBy: list(
          agents,
          { min: 0 },
          { wire: 'used_by', description: 'Those that used it, whether or not they have seen it.' },
        ),
      },
      { title: 'VersionExposure' },
    ),
    { min: 0 },
  ),
});
type CredentialExposureReply = ReplyOf<typeof CredentialExposure.fields>;

export function toExposureReply(
  credentialPath: CredentialPath,
  versions: readonly VersionExposure[],
): CredentialExposureReply {
  const shown = versions.map((each) => ({ ...each, isDeleted: each.newestVersion === null }));
  return CredentialExposure.toReply({ path: credentialPath, versions: shown });
}

/** `versions` are in the order of their paths. */
export function toExposureReplies(versions: readonly VersionExposure[]): CredentialExposureReply[] {
  return [...Map.groupBy(versions, (each) => each.path)].map(([of, own]) => toExposureReply(of, own));
}

export const ExposureQuery = shape('ExposureQuery', {
  agentName: text(grammar.actorName, { wire: 'agent' }),
  ...PAGE,
});
export const PanicRequest = shape('PanicRequest', {
  agentName: optional(
    text(
      { ...grammar.agentName, description: 'Only what this agent holds; everything by default.' },
      { wire: 'agent' },
    ),
  ),
});

const HELD = {
  leases: count(),
  sessions: count(),
  streams: count({ description: 'Brokered requests in flight on this node.' }),
};
export const Held = shape('Held', HELD);
/** `streams` is the number of brokered requests in flight on this node. Other nodes abort theirs within one second. */
export type HeldCounts = ValueOf<typeof HELD>;

/** The counts include only active leases, sessions and brokered requests. */
export interface PanicResult extends HeldCounts {
  /** The versions that the agent, or any caller, has seen. */
  readonly rotate: readonly VersionExposure[];
  /** The versions that were used and never seen. */
  readonly usedOnly: readonly VersionExposure[];
}

const exposed = record(
  {
    path,
    version,
    isCurrent: boolean({
      wire: 'current',
      description: 'Whether it is the newest version of an existing credential.',
    }),
  },
  { title: 'ExposedVersion' },
);

export const Panicked = shape('Panicked', {
  ...HELD,
  streams: count({ description: 'Brokered requests that were aborted.' }),
  rotate: list(exposed, { min: 0 }, { description: 'Versions that were seen.' }),
  usedOnly: list(exposed, { min: 0 }, { wire: 'used_only', description: 'Versions that were used and never seen.' }),
});

export function toPanicReply({ rotate, usedOnly, ...counts }: PanicResult): ReplyOf<typeof Panicked.fields> {
  const withCurrent = (each: VersionExposure) => ({ ...each, isCurrent: each.version === each.newestVersion });
  return Panicked.toReply({ ...counts, rotate: rotate.map(withCurrent), usedOnly: usedOnly.map(withCurrent) });
}
