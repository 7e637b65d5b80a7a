/**
 * Writes, reads and deletes the targets of a credential. A change ends the credential's use leases, because they were
 * issued for other targets. SOURCE: docs/api.md, "Targets"; docs/decisions.md, "Brokered use".
 */

import type { BatchState } from '../../core/batch-state.ts';
import { putRow, removeRow } from '../../core/change.ts';
import type { Denial } from '../../core/denials.ts';
import { networkViolation, operatorField } from '../../core/ip-network.ts';
import {
  type Context,
  denied,
  type Operation,
  type OperationInput,
  operation,
  rejected,
  succeeded,
} from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { CompleteBinding } from '../catalogue/catalogue.ts';
import { access, credentialAltered, credentialNotFound } from '../credentials/access.ts';
import { isTooLargeToUse } from '../credentials/credential.ts';
import type { TargetBinding } from './target.ts';

export interface TargetBindingDraft extends CompleteBinding {
  readonly path: CredentialPath;
}

const bindingAt =
  (path: CredentialPath) =>
  (known: BatchState): TargetBinding | null => {
    const credential = known.credential(path);
    return credential === null ? null : known.binding(credential);
  };

const endUseLeases = ({ moment }: OperationInput, credentialId: TargetBinding['credentialId']) => ({
  kind: 'revokeMatching' as const,
  revocation: { agentId: null, credentialId, kind: 'use' as const, revokedAt: moment.now, seq: moment.seq },
});

/** Needs the action `store` on the path, as storing a value does. */
export function putTargets(context: Context, draft: TargetBindingDraft): Operation<TargetBinding> {
  const { path } = draft;
  return operation(
    {
      context,
      permission: 'target.put',
      resource: path,
      reads: { credential: path, targets: path, version: 'newest' },
      target: bindingAt(path),
    },
    (input) => {
      const { identity, state, moment, entry } = input;
      const granted = access(state, identity, 'store', path);
      if (!granted.allowed) return denied(input, granted.denial);
      const { policyName } = granted;
      const violation = draftViolation(input, draft);
      if (violation !== null) return denied(input, violation, { policyName });
      if (state.isAltered(path)) return credentialAltered(input, policyName);
      const credential = state.credential(path);
      if (credential === null) return credentialNotFound(input, policyName);
      const newest = state.loaded.version(credential.id, credential.version);
      if (newest !== null && isTooLargeToUse(newest.content))
        return denied(input, { code: 'value_too_large' }, { policyName });
      const binding: TargetBinding = { ...draft, credentialId: credential.id, updatedAt: moment.now };
      return succeeded(binding, entry('allowed', { policyName }), [
        putRow('targets', binding),
        endUseLeases(input, credential.id),
      ]);
    },
  );
}

/** Only an operator may allow hosts that are not public, within the networks of `--target-networks`. */
function draftViolation(
  { identity, state }: OperationInput,
  { allowedTargets, path }: TargetBindingDraft,
): Denial | null {
  const isOperator = identity.kind === 'admin' || identity.kind === 'operator';
  const field = isOperator ? null : operatorField(allowedTargets);
  if (field !== null) return { code: 'operator_field', field, path };
  const violation = networkViolation(allowedTargets, state.settings.targetNetworks ?? null);
  return violation === null ? null : { code: 'network_not_allowed', ...violation };
}

/** Needs the action `list`. Only a denial is recorded. */
export function readTargets(context: Context, path: CredentialPath): Operation<TargetBinding> {
  return operation(
    {
      context,
      permission: 'target.read',
      resource: path,
      reads: { credential: path, targets: path },
      target: bindingAt(path),
    },
    (input) => {
      const granted = access(input.state, input.identity, 'list', path);
      if (!granted.allowed) return denied(input, granted.denial);
      const binding = bindingAt(path)(input.state);
      return binding === null ? rejected({ code: 'targets_not_found' }, null) : succeeded(binding, null);
    },
  );
}

/** Needs the action `store`. The credential cannot be used after the entry. */
export function deleteTargets(context: Context, path: CredentialPath): Operation<null> {
  return operation(
    {
      context,
      permission: 'target.delete',
      resource: path,
      reads: { credential: path, targets: path },
      target: bindingAt(path),
    },
    (input) => {
      const { identity, state, entry } = input;
      const granted = access(state, identity, 'store', path);
      if (!granted.allowed) return denied(input, granted.denial);
      const { policyName } = granted;
      const binding = bindingAt(path)(state);
      if (binding === null) return denied(input, { code: 'targets_not_found' }, { policyName });
      return succeeded(null, entry('allowed', { policyName }), [
        removeRow('targets', { path }),
        endUseLeases(input, binding.credentialId),
      ]);
    },
  );
}
