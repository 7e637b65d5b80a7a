/**
 * Who has seen a version of a credential, and who has used it without seeing it. SOURCE: docs/decisions.md, "Exposure".
 */
import type { LeaseKind } from './lease.ts';
import type { ActorName, CredentialId } from './names.ts';
import type { CredentialPath } from './path.ts';

/** `retrieve`: seen; `use` and `token`: used, with a lease for that use or with the token of a use lease. */
type ExposureKind = LeaseKind | 'token';

/** What one agent did with one version, in total. */
export interface Exposure {
  readonly path: CredentialPath;
  /** Distinguishes credentials that had the same path. */
  readonly credentialId: CredentialId;
  readonly version: number;
  readonly kind: ExposureKind;
  /** WHY the name and not the id: agents that had the same name are one to the log and to operators. */
  readonly agentName: ActorName;
  /** Milliseconds since 1970. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly times: number;
}
