/**
 * Use leases, which allow only brokered requests. The token of one replaces the agent's session for one credential.
 * SOURCE: docs/api.md, "Brokered use"; docs/decisions.md, "Brokered use".
 */

import * as grammar from '../../core/grammars.ts';
import { actorId } from '../../core/identity.ts';
import type { TokenHash } from '../../core/names.ts';
import { type Context, denied, type Operation, operation, succeeded } from '../../core/operation.ts';
import { type CredentialPath, PATH_PART } from '../../core/path.ts';
import { optional } from '../../engine/field.ts';
import { text } from '../../engine/kinds.ts';
import { shape } from '../../engine/resource.ts';
import { access, credentialNotFound, newLease } from '../credentials/access.ts';
import type { Lease } from '../leases/lease.ts';
import { givenTtlSeconds, type TtlSeconds } from '../policies/policy.ts';
import { PURPOSE } from './upstream-url.ts';

export const UseLeaseBody = shape('UseLeaseRequest', {
  /** WHY another pattern: `-` or `-n` as a segment would end the path in a base URL. */
  path: text({
    ...grammar.path,
    pattern: new RegExp(String.raw`^(?!(?:.*/)?-\d{0,3}(?:/|$))${PATH_PART}$`),
    description: `${grammar.path.description} No segment is \`-\` or \`-\` and digits.`,
  }),
  ttlSeconds: givenTtlSeconds,
  purpose: optional(text(PURPOSE)),
});

export interface UseLeaseRequest {
  readonly path: CredentialPath;
  readonly ttlSeconds: TtlSeconds | null;
  readonly purpose: string | null;
  /** Returns the hash of the token of the owner. */
  readonly tokenHashOf: (owner: TokenOwner) => TokenHash;
}

/** The agent and path to which the token of a use lease is bound, and the service for which it is made. */
export interface TokenOwner extends Pick<Lease, 'agentId' | 'path'> {
  readonly service: string | null;
}

export interface IssuedUseLease {
  readonly lease: Lease;
  /** The catalogue's service whose targets the credential has; null if none. */
  readonly service: string | null;
}

/** Issues a lease whose token may be used instead of the session at the base URL, for this credential only. */
export function issueUseLease(context: Context, request: UseLeaseRequest): Operation<IssuedUseLease> {
  const { path, purpose } = request;
  return operation(
    {
      context,
      permission: 'lease.use',
      resource: path,
      reads: { credential: path, targets: path },
    },
    (input) => {
      const { identity, state, entry } = input;
      if (identity.kind === 'admin' || identity.kind === 'operator') {
        // The token would outlive the operator's session, and base URLs accept no operators.
        return denied(input, { code: 'agent_required' });
      }
      const decision = access(state, identity, 'use', path);
      if (!decision.allowed) return denied(input, decision.denial);
      const { policyName } = decision;
      const credential = state.credential(path);
      if (credential === null) return credentialNotFound(input, policyName);
      const binding = state.binding(credential);
      if (binding === null) return denied(input, { code: 'no_targets' }, { policyName });
      const { service } = binding;
      const tokenHash = request.tokenHashOf({ agentId: actorId(identity), path, service });
      const ttlSeconds = Math.min(decision.ttlSeconds, request.ttlSeconds ?? decision.ttlSeconds);
      const lease = newLease(input, 'use', credential, credential.version, policyName, ttlSeconds, tokenHash);
      return succeeded({ lease, service }, entry('allowed', { policyName, leaseId: lease.id, reason: purpose }), [
        { kind: 'addLease', lease },
      ]);
    },
  );
}
