/**
 * Stores, lists, describes and deletes credentials. SOURCE: docs/api.md, "Credentials"; docs/decisions.md,
 * "Credentials".
 */

import type { VersionInfo } from '../../core/batch-state.ts';
import { putRow, removeRow } from '../../core/change.ts';
import { type CredentialId, type CredentialType, DEFAULT_TYPE } from '../../core/names.ts';
import {
  type Context,
  denied,
  type Operation,
  type OperationInput,
  operation,
  succeeded,
} from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { ALL_PATHS, type PathRange } from '../../core/pattern.ts';
import { access, credentialAltered, credentialNotFound } from './access.ts';
import { type Credential, type CredentialVersion, isKept, isTooLargeToUse, type Secret } from './credential.ts';

export interface NewValue {
  readonly path: CredentialPath;
  readonly value: Secret;
  /** Null keeps the current type; a new credential has the default. */
  readonly type: CredentialType | null;
  readonly description: string | null;
  /** `If-None-Match: *`: rejects a path that exists. */
  readonly onlyIfNew: boolean;
}

export function store(context: Context, request: NewValue): Operation<Credential> {
  const { path, value } = request;
  const description = {
    context,
    permission: 'credential.store' as const,
    resource: path,
    reads: { credential: path, targets: path },
  };
  return operation(description, (input) => {
    const { identity, state, moment, entry } = input;
    const granted = access(state, identity, 'store', path);
    if (!granted.allowed) return denied(input, granted.denial);
    const { policyName } = granted;
    if (state.isAltered(path)) return credentialAltered(input, policyName);
    const before = state.credential(path);
    if (before !== null && request.onlyIfNew) return denied(input, { code: 'path_taken' }, { policyName });
    if (before !== null && state.binding(before) !== null && isTooLargeToUse(value))
      return denied(input, { code: 'value_too_large' }, { policyName });
    const credential: Credential = {
      id: before?.id ?? (moment.newId() as CredentialId),
      path,
      type: request.type ?? before?.type ?? DEFAULT_TYPE,
      description: request.description ?? before?.description ?? '',
      createdAt: before?.createdAt ?? moment.now,
      updatedAt: moment.now,
      version: (before?.version ?? 0) + 1,
    };
    const version: CredentialVersion = {
      version: credential.version,
      type: credential.type,
      createdAt: moment.now,
      content: value,
    };
    const through = credential.version - state.settings.versionsKept;
    return succeeded(credential, entry('allowed', { policyName }), [
      putRow('credential', credential),
      { kind: 'addVersion', credential, version },
      ...(through > 0 ? [{ kind: 'pruneVersions' as const, credentialId: credential.id, through }] : []),
    ]);
  });
}

export function remove(context: Context, path: CredentialPath): Operation<null> {
  return operation(
    {
      context,
      permission: 'credential.delete',
      resource: path,
      reads: { credential: path },
      target: (known) => known.credential(path),
    },
    (input) => {
      const { identity, state, moment, entry } = input;
      const granted = access(state, identity, 'delete', path);
      if (!granted.allowed) return denied(input, granted.denial);
      const { policyName } = granted;
      const credential = state.credential(path);
      if (credential === null) return credentialNotFound(input, policyName);
      const { id } = credential;
      return succeeded(null, entry('allowed', { policyName }), [
        removeRow('credential', { id, path }),
        removeRow('targets', { path }),
        {
          kind: 'revokeMatching',
          revocation: { agentId: null, credentialId: id, kind: null, revokedAt: moment.now, seq: moment.seq },
        },
      ]);
    },
  );
}

export function list(context: Context): Operation<readonly PathRange[]> {
  return operation({ context, permission: 'credential.list', resource: '*' }, (input) =>
    succeeded(rangesOf(input), input.entry('allowed')),
  );
}

/** Decides which paths the caller may still list. The entry of `list` already records the whole list. */
export function listedRanges(context: Context): Operation<readonly PathRange[]> {
  return operation({ context, permission: 'credential.list', resource: '*' }, (input) =>
    succeeded(rangesOf(input), null),
  );
}

function rangesOf({ identity, state }: OperationInput): readonly PathRange[] {
  if (identity.kind === 'admin' || identity.kind === 'operator') return ALL_PATHS;
  return state.control.policies.grantedRanges(identity.agent.name, 'list');
}

export interface Metadata {
  readonly credential: Credential;
  /** Oldest first. */
  readonly versions: readonly VersionInfo[];
}

/** `?view=metadata`: returns no value, issues no lease, and needs `list`. */
export function readMetadata(context: Context, path: CredentialPath): Operation<Metadata> {
  return operation(
    {
      context,
      permission: 'credential.list',
      resource: path,
      reads: { credential: path, history: true },
    },
    (input) => {
      const { identity, state, entry } = input;
      const granted = access(state, identity, 'list', path);
      if (!granted.allowed) return denied(input, granted.denial);
      const { policyName } = granted;
      if (state.isAltered(path)) return credentialAltered(input, policyName);
      const credential = state.credential(path);
      if (credential === null) return credentialNotFound(input, policyName);
      const kept = (state.loaded.histories.get(credential.id) ?? []).filter(({ version }) =>
        isKept(version, credential, state.settings.versionsKept),
      );
      return succeeded({ credential, versions: kept }, entry('allowed', { policyName }));
    },
  );
}
