/**
 * Records requests that were rejected outside a decision: the token of a use lease where it does not belong, which
 * tells that it has left the program that it was made for, and uses over a policy's limits.
 * SOURCE: docs/decisions.md, "Misuse of tokens".
 */

import type { BatchState } from '../../core/batch-state.ts';
import type { DenialOf } from '../../core/denials.ts';
import type { AuthContext } from '../../core/identity.ts';
import type { ActorName, AgentName } from '../../core/names.ts';
import { type Context, type Operation, succeeded } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { draftEntry } from '../audit/audit-entry.ts';
import type { Lease } from '../leases/lease.ts';
import { type BaseUrlRequest, resolveRequest, useFieldsOf } from './base-url.ts';
import type { UseRequest } from './target.ts';
import { hasToken, type TokenPlace } from './token-form.ts';

export interface ForwardedRequest {
  readonly path: CredentialPath;
  readonly request: UseRequest | BaseUrlRequest;
}

export type ForwardedPlace =
  | ({ readonly kind: 'base URL' } & ForwardedRequest)
  | ({ readonly kind: TokenPlace } & ForwardedRequest);

export type WrongPlace =
  | ForwardedPlace
  /**
   * A route that takes other tokens or none. `route` is its pattern, which contains nothing of the request. It is null
   * for an address that does not exist.
   */
  | { readonly kind: 'route'; readonly method: string; readonly route: string | null };

export interface Misuse {
  readonly lease: Pick<Lease, 'id' | 'path'>;
  /** The caller; the lease's agent if the token alone identifies it. */
  readonly agentName: ActorName;
  /** Null if that agent is no longer registered. */
  readonly auth: AuthContext | null;
  readonly place: WrongPlace;
  readonly context: Pick<Context, 'requestId' | 'remoteAddr'>;
}

/** The token was issued: its MAC has been checked. The lease may have ended. */
export function recordMisuse({ lease, agentName, auth, place, context }: Misuse): Operation<null> {
  const { requestId, remoteAddr } = context;
  return {
    reads: place.kind === 'route' ? {} : { credential: place.path, targets: place.path },
    auth: auth ?? { kind: 'unauthenticated', remoteAddr },
    decide: (known) =>
      succeeded(
        null,
        draftEntry({
          eventType: 'credential.misuse',
          agentName,
          resource: lease.path,
          result: place.kind === 'route' ? { code: 'token_at_route', route: place.route } : forwardedDenial(place),
          leaseId: lease.id,
          requestId,
          remoteAddr,
          use: place.kind === 'route' ? { method: place.method } : requestFields(known, place),
        }),
      ),
  };
}

/** A path that contains a token is omitted, because an entry never has one. */
function requestFields(known: BatchState, { path, request }: ForwardedRequest) {
  const credential = known.credential(path);
  const binding = credential === null ? null : known.binding(credential);
  const fields = useFieldsOf(request, resolveRequest(binding?.allowedTargets ?? [], request));
  return { ...fields, target_path: hasToken(fields.target_path ?? '') ? null : fields.target_path };
}

/** The denial of a request that is not sent. */
export function forwardedDenial({ kind, path }: ForwardedPlace): DenialOf<'token_at_base_url' | 'token_in_request'> {
  const credential = hasToken(path) ? null : path;
  if (kind === 'base URL') return { code: 'token_at_base_url', credential };
  return { code: 'token_in_request', place: kind, credential };
}

export const LIMIT_KINDS = ['uses per hour', 'bytes per hour', 'concurrent uses'] as const;
export type LimitKind = (typeof LIMIT_KINDS)[number];

export interface RejectedUses {
  readonly agentName: AgentName;
  readonly denial: DenialOf<'use_limit'>;
  /** The request of a single rejection; null for a summary. */
  readonly single: { readonly path: CredentialPath; readonly context: Context } | null;
}

export function recordRejectedUses({ agentName, denial, single }: RejectedUses): Operation<null> {
  return {
    reads: {},
    auth: { kind: 'service' },
    decide: () =>
      succeeded(
        null,
        draftEntry({
          eventType: 'credential.use',
          agentName,
          resource: single?.path ?? '*',
          result: denial,
          policyName: denial.policyName,
          requestId: single?.context.requestId ?? null,
          remoteAddr: single?.context.remoteAddr ?? null,
        }),
      ),
  };
}
