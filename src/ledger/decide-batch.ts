/**
 * One batch: decides each operation in order, on the state that the previous ones left, decrypts and encrypts values,
 * and chains the entries. Returns what to commit, and the results to deliver after the commit.
 */

import type { BatchState } from '../core/batch-state.ts';
import { type Change, changesControlState } from '../core/change.ts';
import { resultFields, toApiError } from '../core/denials.ts';
import type { CredentialId, EntryId } from '../core/names.ts';
import type { Operation, Outcome } from '../core/operation.ts';
import { isControlSubject, KEYSET_SUBJECT, type RecordedState, type Resource, subjectOf } from '../core/resources.ts';
import { endsAuditKey, entryMac, handOver, headMac } from '../crypto/chain.ts';
import type { SetDigest } from '../crypto/row-mac.ts';
import type { CompactRange, TreeNode } from '../crypto/tree.ts';
import { dataKeyIdOf, decryptValue, encryptValue } from '../crypto/value-encryption.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { ApiError } from '../engine/errors.ts';
import type { Head, StoredChange } from '../store/stored-data.ts';
import {
  type AuditEntry,
  actionOf,
  type EntryDraft,
  type EntryWithoutMac,
  REMOVED,
} from '../vault/audit/audit-entry.ts';
import type { StoredTreeNode } from '../vault/audit/proofs.ts';
import { Secret } from '../vault/credentials/credential.ts';
import { assertStorable, toStoredPut } from './authenticated-rows.ts';
import { type DenialBudget, tooManyDenials } from './budgets.ts';
import { type ChainTip, toStoredNodes } from './vault-state.ts';

/** The result of one operation, delivered once the batch is on disk. An error that is not an `ApiError` is a bug. */
export type OperationResult =
  | { readonly kind: 'reply'; readonly reply: unknown }
  | { readonly kind: 'error'; readonly error: Error };

export interface DecidedBatch {
  readonly results: readonly OperationResult[];
  readonly entries: readonly AuditEntry[];
  readonly changes: readonly StoredChange[];
  readonly head: Head;
  readonly tree: CompactRange;
  readonly treeNodes: readonly StoredTreeNode[];
  /** Successful retrievals of each credential. */
  readonly accesses: ReadonlyMap<CredentialId, number>;
  /** The keys after the batch, which is not committed yet. */
  readonly keys: VaultKeys;
}

/** Decides the operations in `due` first, which the clock demands, and discards their results. */
export function decideBatch(
  operations: readonly Operation<unknown>[],
  state: BatchState,
  tip: ChainTip,
  digest: SetDigest,
  now: number,
  due: readonly Operation<null>[],
  committedKeys: VaultKeys,
  denials: DenialBudget,
  newId: () => string,
): DecidedBatch {
  const timestamp = new Date(now).toISOString();
  const results: OperationResult[] = [];
  const entries: AuditEntry[] = [];
  const changes: StoredChange[] = [];
  const accesses = new Map<CredentialId, number>();
  let { seq, hmac, epoch } = tip;
  const tree = tip.tree.copy();
  const completed: TreeNode[] = [];
  let bumpsEpoch = false;
  // A copy, so that a batch that is not committed changes no key.
  const keys = committedKeys.fork();
  const newEntryId = (): EntryId => newId() as EntryId;
  const record = (draft: EntryDraft, id: EntryId, recorded?: RecordedState): void => {
    seq += 1;
    const plain = entryWithoutMac(draft, seq, timestamp, id);
    const withState = recorded === undefined ? plain : { ...plain, ...recorded };
    const entry = endsAuditKey(withState) ? handOver(keys.auditAt(seq + 1), hmac, withState) : withState;
    hmac = entryMac(keys.auditAt(seq), hmac, entry);
    tree.append(hmac, completed);
    entries.push({ ...entry, hmac });
  };

  for (const operation of [...due, ...operations]) {
    const entryId = newEntryId();
    let outcome: DecryptedOutcome;
    try {
      outcome = decryptOutcome(operation.decide(state, { now, seq: seq + 1, entryId, newId }), keys);
      // ORDER: before any change is applied, so that a wrong row fails its own operation and not the batch.
      for (const change of outcome.changes) assertStorable(change);
    } catch (error) {
      results.push({ kind: 'error', error: error instanceof Error ? error : new Error('thrown value') });
      continue;
    }
    const stored: StoredChange[] = [];
    const recorded: RecordedState[] = [];
    for (const change of outcome.changes) {
      state.apply(change);
      bumpsEpoch ||= changesControlState(change);
      if (change.kind === 'incrementAccessCount') {
        accesses.set(change.credentialId, (accesses.get(change.credentialId) ?? 0) + 1);
      } else if (change.kind === 'editKeyset') {
        keys.edit(change.edit);
        recorded.push({ subject: KEYSET_SUBJECT, state: keys.state });
      } else {
        const row = toStored(change, keys);
        if (row !== null) stored.push(row);
      }
    }
    changes.push(...stored);
    recorded.push(...recordedStates(stored));
    if (recorded.length > 0 && outcome.entry === null) throw new Error('A changed row has no entry that records it.');
    // An entry with changes is always recorded; only denials without changes are limited.
    const { entry } = outcome;
    const isRecorded = entry === null || outcome.changes.length > 0 || denials.admits(entry, now);
    if (entry !== null && isRecorded) {
      // An entry records one row. A panic about all agents changes more, and has further entries with the same id.
      const [first, ...further] = recorded;
      record(entry, entryId, first);
      for (const each of further) record(entry, entryId, each);
      for (const each of recorded) updateDigest(digest, each);
    }
    if (!('denial' in outcome.response)) results.push({ kind: 'reply', reply: outcome.response.reply });
    else results.push({ kind: 'error', error: isRecorded ? toApiError(outcome.response.denial) : tooManyDenials() });
  }
  if (bumpsEpoch) epoch += 1;
  if (keys.version !== committedKeys.version) changes.push({ kind: 'putKeyset', keyset: keys.encryptedKeyset() });
  changes.push(...countEncryptions(changes));
  const control = bumpsEpoch ? digest.toString() : tip.control;
  const fields = { seq, hmac, epoch, tree: tree.toString(), control };
  const head: Head = { ...fields, mac: headMac(keys.auditAt(seq), fields) };
  const treeNodes = toStoredNodes(completed);
  return { results: results.slice(due.length), entries, changes, head, tree, treeNodes, accesses, keys };
}

function updateDigest(digest: SetDigest, { subject, state }: RecordedState): void {
  if (!isControlSubject(subject)) return;
  if (state === REMOVED) digest.delete(subject);
  else digest.put(subject, state);
}

type DecryptedOutcome = Omit<Outcome<unknown>, 'response'> & {
  readonly response: Exclude<Outcome<unknown>['response'], { decrypt: unknown }>;
};

/**
 * Decrypts the value that an outcome needs. If it does not authenticate or must not be used, the operation's
 * `onFailure` or `reject` outcome replaces this one.
 */
function decryptOutcome(outcome: Outcome<unknown>, keys: VaultKeys): DecryptedOutcome {
  const { response, entry, changes } = outcome;
  if (!('decrypt' in response)) return { response, entry, changes };
  const { content, associatedData, onFailure, reject, reply } = response.decrypt;
  const value = content instanceof Secret ? content : decryptValue(keys, content, associatedData);
  if (value === null) return decryptOutcome(onFailure(), keys);
  const rejection = reject?.(value) ?? null;
  return rejection === null ? { response: { reply: reply(value) }, entry, changes } : decryptOutcome(rejection, keys);
}

/** Makes the entry, including the text of a denial, without its MAC. */
function entryWithoutMac(draft: EntryDraft, seq: number, timestamp: string, id: EntryId): EntryWithoutMac {
  return {
    seq,
    id: draft.completes ?? id,
    timestamp,
    event_type: draft.eventType,
    agent_name: draft.agentName,
    resource: draft.resource,
    action: actionOf[draft.eventType],
    policy_name: draft.policyName,
    lease_id: draft.leaseId,
    ...resultFields(draft),
    request_id: draft.requestId,
    remote_addr: draft.remoteAddr,
    ...draft.use,
  };
}

function countEncryptions(changes: readonly StoredChange[]): StoredChange[] {
  const counts = new Map<string, number>();
  for (const change of changes) {
    if (change.kind !== 'addVersion' && change.kind !== 'reencrypt') continue;
    const keyId = dataKeyIdOf(change.sealed);
    counts.set(keyId, (counts.get(keyId) ?? 0) + 1);
  }
  return Array.from(counts, ([keyId, seals]) => ({ kind: 'countEncryptions', keyId, seals }));
}

// Turns the changes of an outcome into stored changes, and into the states that the audit log records of the rows.

/** Adds MACs to rows, and encrypts values. Null for a value to re-encrypt that does not authenticate. */
function toStored(
  change: Exclude<Change, { kind: 'incrementAccessCount' | 'editKeyset' }>,
  keys: VaultKeys,
): StoredChange | null {
  switch (change.kind) {
    case 'put':
      return toStoredPut(keys.row, change);
    case 'reencrypt':
      return reencrypted(change, keys);
    case 'putKeySlot':
      return { kind: 'putKeySlot', slot: keys.wrap(change.slot) };
    case 'addVersion': {
      const { credential, version } = change;
      const { content, ...rest } = version;
      if (!(content instanceof Secret))
        throw new ApiError('INTERNAL_ERROR', 'A new version was encrypted before its batch.');
      const { type, version: number } = rest;
      const sealed = encryptValue(keys, content, {
        credentialId: credential.id,
        path: credential.path,
        type,
        version: number,
      });
      return { kind: 'addVersion', credentialId: credential.id, version: rest, sealed };
    }
    default:
      return change;
  }
}

function reencrypted({ bound, content }: Extract<Change, { kind: 'reencrypt' }>, keys: VaultKeys): StoredChange | null {
  const value = decryptValue(keys, content, bound);
  if (value === null) return null;
  const { credentialId, path, version } = bound;
  return { kind: 'reencrypt', credentialId, path, version, from: content, sealed: encryptValue(keys, value, bound) };
}

/**
 * The rows with a MAC that an outcome made, changed or removed. Idempotency records are not among them: they end after
 * a day by a time that their MAC covers, and no operation removes them earlier. The removal of a credential includes
 * its targets, which have no effect without it.
 */
export function recordedStates(changes: readonly StoredChange[]): RecordedState[] {
  const isRemoved = (name: Resource, change: StoredChange): boolean =>
    change.kind === 'remove' && change.resource === name;
  const removesCredential = changes.some((change) => isRemoved('credential', change));
  return changes.flatMap((change) => {
    if ((change.kind !== 'put' && change.kind !== 'remove') || change.resource === 'reply') return [];
    if (removesCredential && isRemoved('targets', change)) return [];
    const subject = subjectOf(change.resource, change.row);
    return [{ subject, state: change.kind === 'put' ? change.row.mac : REMOVED }];
  });
}
