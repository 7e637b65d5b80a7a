/**
 * Retrieves a value and issues a lease.
 * SOURCE: docs/api.md, "Credentials" and "Errors"; docs/decisions.md, "Credentials" and "Policies".
 */
import { actorId, actorName } from '../agent.ts';
import { isKept } from '../credential.ts';
import { behaviourOf, CREDENTIAL_TYPES, type CredentialTypes } from '../credential-types.ts';
import type { Lease } from '../lease.ts';
import type { LeaseId } from '../names.ts';
import { type Context, type Operation, operation, type PendingUnseal, rejected } from '../operation.ts';
import type { CredentialPath } from '../path.ts';
import type { TtlSeconds } from '../policy.ts';
import type { Secret } from '../secret.ts';
import { accessDenied, credentialAltered, notFound, retrievalAccess } from './access.ts';

export interface RetrieveRequest {
  readonly path: CredentialPath;
  /** Null for the newest. */
  readonly version: number | null;
  /** Shortens the lease; at most the policy's TTL is granted. */
  readonly ttlSeconds: TtlSeconds | null;
}

export interface RetrievalResult {
  readonly path: CredentialPath;
  readonly value: Secret;
  readonly leaseId: LeaseId;
  readonly expiresAt: number;
}

export function retrieve(
  context: Context,
  request: RetrieveRequest,
  types: CredentialTypes = CREDENTIAL_TYPES,
): Operation<RetrievalResult> {
  const { path } = request;
  const keys = { credential: path, version: request.version ?? ('newest' as const) };
  return operation(
    { context, event: 'credential.retrieve', resource: path, requiredRole: 'authenticated', reads: keys },
    (input) => {
      const { caller, state, moment, entry } = input;
      const decision = retrievalAccess(state, caller, path);
      if (!decision.allowed) return accessDenied(input, decision);
      const { policyName } = decision;
      if (state.isAltered(path)) return credentialAltered(input, policyName);
      const credential = state.credential(path);
      const number = request.version ?? credential?.version ?? 0;
      const version =
        credential !== null && isKept(number, credential, state.settings.versionsKept)
          ? state.loaded.version(credential.id, number)
          : null;
      if (credential !== null && version === null && request.version === null) {
        const reason = 'the newest value is missing from the store';
        return rejected(
          'INTEGRITY_FAILURE',
          'The stored value is missing: it was removed.',
          entry('error', { policyName, reason }),
        );
      }
      if (credential === null || version === null) {
        return notFound(input, policyName, credential === null ? 'credential' : 'version');
      }
      const ttlSeconds = Math.min(decision.ttlSeconds, request.ttlSeconds ?? decision.ttlSeconds);
      const leaseId = moment.newId() as LeaseId;
      const expiresAt = moment.now + ttlSeconds * 1000;
      const lease: Lease = {
        id: leaseId,
        agentId: actorId(caller),
        credentialId: credential.id,
        agentName: actorName(caller),
        path,
        version: number,
        policyName,
        issuedAt: moment.now,
        expiresAt,
        revokedAt: null,
        seq: moment.seq,
      };
      // The newest version's type is read from the credential's row, so that an edit of that row is detected.
      const type = number === credential.version ? credential.type : version.type;
      const unseal: PendingUnseal<RetrievalResult> = {
        content: version.content,
        associatedData: {
          credentialId: credential.id,
          path,
          type,
          version: number,
        },
        onFailure: () =>
          rejected(
            'INTEGRITY_FAILURE',
            'The stored value does not authenticate: it was altered, or sealed under another key.',
            entry('error', { policyName, reason: 'the stored value does not authenticate' }),
          ),
        reply: (stored) => ({
          path,
          value: behaviourOf(types, type).render(stored, moment.now),
          leaseId,
          expiresAt,
        }),
      };
      return {
        response: { unseal },
        entry: entry('allowed', { policyName, leaseId }),
        changes: [
          { kind: 'addLease', lease },
          { kind: 'incrementAccessCount', credentialId: credential.id },
        ],
      };
    },
  );
}
