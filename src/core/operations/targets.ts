/**
 * Writes, reads and deletes where a credential may be used. A change ends the credential's use leases, because they
 * were issued for other targets. SOURCE: docs/api.md, "Targets"; docs/decisions.md, "Brokered use".
 */
import type { CompleteUsage } from '../catalogue/catalogue.ts';
import { isTooLargeToUse, TOO_LARGE_TO_USE } from '../credential.ts';
import { type Context, type Operation, type OperationInput, operation, rejected, succeeded } from '../operation.ts';
import type { CredentialPath } from '../path.ts';
import type { Usage } from '../target.ts';
import { access, accessDenied, credentialAltered, notFound } from './access.ts';

export interface UsageDraft extends CompleteUsage {
  readonly path: CredentialPath;
}

const endUseLeases = ({ moment }: OperationInput, credentialId: Usage['credentialId']) => ({
  kind: 'revokeMatching' as const,
  revocation: { agentId: null, credentialId, kind: 'use' as const, revokedAt: moment.now, seq: moment.seq },
});

/** Needs `store` on the path, as a new value does. */
export function putTargets(context: Context, draft: UsageDraft): Operation<Usage> {
  const { path } = draft;
  return operation(
    {
      context,
      event: 'target.put',
      resource: path,
      requiredRole: 'authenticated',
      reads: { credential: path, usage: true, version: 'newest' },
      targetExists: (known) => known.loaded.usages.has(path),
    },
    (input) => {
      const { caller, state, moment, entry } = input;
      const granted = access(state, caller, 'store', path);
      if (!granted.allowed) return accessDenied(input, granted);
      const { policyName } = granted;
      if (state.isAltered(path)) return credentialAltered(input, policyName);
      const credential = state.credential(path);
      if (credential === null) return notFound(input, policyName, 'credential');
      const newest = state.loaded.version(credential.id, credential.version);
      if (newest !== null && isTooLargeToUse(newest.content)) {
        const reason = 'the value is too large to be used';
        return rejected('INVALID_REQUEST', TOO_LARGE_TO_USE, entry('denied', { policyName, reason }));
      }
      const usage: Usage = { ...draft, credentialId: credential.id, updatedAt: moment.now };
      return succeeded(usage, entry('allowed', { policyName }), [
        { kind: 'putUsage', usage },
        endUseLeases(input, credential.id),
      ]);
    },
  );
}

/** Needs `list`. Recorded only if it is denied. */
export function readTargets(context: Context, path: CredentialPath): Operation<Usage> {
  return operation(
    {
      context,
      event: 'target.read',
      resource: path,
      requiredRole: 'authenticated',
      reads: { credential: path, usage: true },
    },
    (input) => {
      const granted = access(input.state, input.caller, 'list', path);
      if (!granted.allowed) return accessDenied(input, granted);
      const credential = input.state.credential(path);
      const usage = credential === null ? null : input.state.usage(credential);
      return usage === null ? rejected('NOT_FOUND', NO_TARGETS, null) : succeeded(usage, null);
    },
  );
}

const NO_TARGETS = 'The credential has no targets, or does not exist.';

/** Needs `store`. From its entry on the credential cannot be used. */
export function deleteTargets(context: Context, path: CredentialPath): Operation<null> {
  return operation(
    {
      context,
      event: 'target.delete',
      resource: path,
      requiredRole: 'authenticated',
      reads: { credential: path, usage: true },
    },
    (input) => {
      const { caller, state, entry } = input;
      const granted = access(state, caller, 'store', path);
      if (!granted.allowed) return accessDenied(input, granted);
      const { policyName } = granted;
      const credential = state.credential(path);
      const usage = credential === null ? null : state.usage(credential);
      if (usage === null) {
        const details = { policyName, reason: 'the credential has no targets' };
        return rejected('NOT_FOUND', NO_TARGETS, entry('not_found', details));
      }
      return succeeded(null, entry('allowed', { policyName }), [
        { kind: 'removeUsage', path },
        endUseLeases(input, usage.credentialId),
      ]);
    },
  );
}

/** Identifies the caller; the catalogue is the same for every caller. */
export function readCatalogue(context: Context): Operation<null> {
  return operation({ context, event: 'target.read', resource: '*', requiredRole: 'authenticated' }, () =>
    succeeded(null, null),
  );
}
