/** Turns the changes of an outcome into what is stored, and into what the log records about the changed rows. */
import type { Change } from '../core/change.ts';
import { Secret } from '../core/credential.ts';
import { ApiError } from '../core/errors.ts';
import { REMOVED, type RecordedState, SUBJECT } from '../core/state.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { seal, unseal } from '../crypto/sealing.ts';
import type { StoredChange } from '../store/store.ts';
import { AUTHENTICATED_ROWS } from './authenticated-rows.ts';

/** Adds MACs to rows, and seals values. Null for a value that does not authenticate and was to be sealed again. */
export function toStored(
  change: Exclude<Change, { kind: 'incrementAccessCount' | 'editKeyset' }>,
  keys: VaultKeys,
): StoredChange | null {
  switch (change.kind) {
    case 'putAgent':
      return { kind: 'putAgent', agent: AUTHENTICATED_ROWS.agent.withMac(keys.row, change.agent) };
    case 'putOperator':
      return { kind: 'putOperator', operator: AUTHENTICATED_ROWS.operator.withMac(keys.row, change.operator) };
    case 'putPolicy':
      return { kind: 'putPolicy', policy: AUTHENTICATED_ROWS.policy.withMac(keys.row, change.policy) };
    case 'putSession':
      return { kind: 'putSession', session: AUTHENTICATED_ROWS.session.withMac(keys.row, change.session) };
    case 'putApproval':
      return { kind: 'putApproval', approval: AUTHENTICATED_ROWS.approval.withMac(keys.row, change.approval) };
    case 'putCredential':
      return { kind: 'putCredential', credential: AUTHENTICATED_ROWS.credential.withMac(keys.row, change.credential) };
    case 'putUsage':
      return { kind: 'putUsage', usage: AUTHENTICATED_ROWS.usage.withMac(keys.row, change.usage) };
    case 'saveIdempotencyRecord':
      return { kind: 'saveIdempotencyRecord', record: AUTHENTICATED_ROWS.reply.withMac(keys.row, change.record) };
    case 'reseal':
      return resealed(change, keys);
    case 'putKeySlot':
      return { kind: 'putKeySlot', slot: keys.wrap(change.slot) };
    case 'addVersion': {
      const { credential, version } = change;
      const { content, ...rest } = version;
      if (!(content instanceof Secret))
        throw new ApiError('INTERNAL_ERROR', 'A new version was sealed before its batch.');
      const { type, version: number } = rest;
      const sealed = seal(keys, content, { credentialId: credential.id, path: credential.path, type, version: number });
      return { kind: 'addVersion', credentialId: credential.id, version: rest, sealed };
    }
    default:
      return change;
  }
}

function resealed({ bound, content }: Extract<Change, { kind: 'reseal' }>, keys: VaultKeys): StoredChange | null {
  const value = unseal(keys, content, bound);
  if (value === null) return null;
  const { credentialId, path, version } = bound;
  return { kind: 'reseal', credentialId, path, version, from: content, sealed: seal(keys, value, bound) };
}

/**
 * The rows with a MAC that an outcome made, changed or removed. Idempotency records are left out: they end after a day
 * by a time that their MAC covers, and no operation removes them earlier. The removal of a credential includes its
 * targets, which have no effect without it.
 */
export function recordedStates(changes: readonly StoredChange[]): RecordedState[] {
  const removesCredential = changes.some(({ kind }) => kind === 'removeCredential');
  return changes.flatMap((change) => {
    const recorded = recordedState(change);
    return recorded === null || (removesCredential && change.kind === 'removeUsage') ? [] : [recorded];
  });
}

function recordedState(change: StoredChange): RecordedState | null {
  switch (change.kind) {
    case 'putAgent':
      return { subject: SUBJECT.agent(change.agent), state: change.agent.mac };
    case 'removeAgent':
      return { subject: SUBJECT.agent(change), state: REMOVED };
    case 'putOperator':
      return { subject: SUBJECT.operator(change.operator), state: change.operator.mac };
    case 'removeOperator':
      return { subject: SUBJECT.operator(change), state: REMOVED };
    case 'putPolicy':
      return { subject: SUBJECT.policy(change.policy), state: change.policy.mac };
    case 'removePolicy':
      return { subject: SUBJECT.policy(change), state: REMOVED };
    case 'putSession':
      return { subject: SUBJECT.session(change.session), state: change.session.mac };
    case 'removeSession':
      return { subject: SUBJECT.session(change), state: REMOVED };
    case 'putCredential':
      return { subject: SUBJECT.credential(change.credential), state: change.credential.mac };
    case 'removeCredential':
      return { subject: SUBJECT.credential(change), state: REMOVED };
    case 'putUsage':
      return { subject: SUBJECT.targets(change.usage), state: change.usage.mac };
    case 'putApproval':
      return { subject: SUBJECT.approval(change.approval), state: change.approval.mac };
    case 'removeUsage':
      return { subject: SUBJECT.targets(change), state: REMOVED };
    default:
      return null;
  }
}
