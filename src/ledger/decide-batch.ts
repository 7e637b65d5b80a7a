/**
 * One turn: decides each operation in order, seeing what the ones before changed, opens and seals values, and chains the
 * entries. What comes out is the batch to commit and what to answer after it.
 */
import { type AuditEntry, actionOf, type EntryDraft } from '../core/audit.ts';
import type { BatchState } from '../core/batch-state.ts';
import { type Change, changesControlState } from '../core/change.ts';
import { ApiError } from '../core/errors.ts';
import type { CredentialId } from '../core/names.ts';
import type { Operation, Outcome } from '../core/operation.ts';
import { Secret } from '../core/secret.ts';
import { entryMac, headMac } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { newEntryId } from '../crypto/random.ts';
import { seal, unseal } from '../crypto/sealing.ts';
import type { Head, StoredChange } from '../store/store.ts';
import { macAgent, macCredential, macIdempotencyRecord, macPolicy, macSession } from './authenticated-rows.ts';
import type { DenialBudget, Summaries } from './denial-budget.ts';
import type { ChainTip } from './vault-state.ts';

/** What one operation's caller is told once the turn is on disk. A bug is an Error that is no Fault. */
export type OperationResult =
  | { readonly kind: 'reply'; readonly reply: unknown; readonly value: Secret | null }
  | { readonly kind: 'refusal'; readonly error: Error };

export interface DecidedBatch {
  readonly answers: readonly OperationResult[];
  readonly entries: readonly AuditEntry[];
  readonly changes: readonly StoredChange[];
  readonly head: Head;
  /** Successful retrievals of each credential. */
  readonly accesses: ReadonlyMap<CredentialId, number>;
  /** Of denials that were not recorded one by one; in the entries. */
  readonly summaries: Summaries;
}

export function decideBatch(
  operations: readonly Operation<unknown>[],
  workspace: BatchState,
  tip: ChainTip,
  now: number,
  keys: VaultKeys,
  denials: DenialBudget,
): DecidedBatch {
  const timestamp = new Date(now).toISOString();
  const answers: OperationResult[] = [];
  const entries: AuditEntry[] = [];
  const changes: StoredChange[] = [];
  const accesses = new Map<CredentialId, number>();
  let { seq, hmac, epoch } = tip;
  let bumpsEpoch = false;
  const record = (draft: EntryDraft): void => {
    seq += 1;
    const unlinked = unlinkedEntry(draft, seq, timestamp);
    hmac = entryMac(keys.audit, hmac, unlinked);
    entries.push({ ...unlinked, hmac });
  };
  const summaries = denials.summarise(now);
  summaries.entries.forEach(record);

  for (const operation of operations) {
    let settled: { outcome: Outcome<unknown>; value: Secret | null };
    try {
      settled = unsealOutcome(operation.decide(workspace, { now, seq: seq + 1 }), keys);
    } catch (error) {
      answers.push({ kind: 'refusal', error: error instanceof Error ? error : new Error('thrown value') });
      continue;
    }
    const { outcome, value } = settled;
    for (const change of outcome.changes) {
      workspace.apply(change);
      bumpsEpoch ||= changesControlState(change);
      if (change.kind === 'countAccess')
        accesses.set(change.credentialId, (accesses.get(change.credentialId) ?? 0) + 1);
      else changes.push(toStored(change, keys));
    }
    // What changes something is recorded in any case.
    if (outcome.entry !== null && (outcome.changes.length > 0 || denials.admits(outcome.entry, now))) {
      record(outcome.entry);
    }
    answers.push(
      'fault' in outcome.answer
        ? { kind: 'refusal', error: new ApiError(outcome.answer.fault.code, outcome.answer.fault.message) }
        : { kind: 'reply', reply: outcome.answer.reply, value },
    );
  }
  if (bumpsEpoch) epoch += 1;
  const head: Head = { seq, hmac, mac: headMac(keys.audit, seq, hmac), epoch };
  return { answers, entries, changes, head, accesses, summaries };
}

/** Opens the value that an outcome lends; one that does not authenticate turns it into the operation's own `error` outcome. */
function unsealOutcome(
  outcome: Outcome<unknown>,
  keys: VaultKeys,
): { outcome: Outcome<unknown>; value: Secret | null } {
  if (outcome.unseal === null) return { outcome, value: null };
  const { content, associatedData, onUnsealFailure } = outcome.unseal;
  const value = content instanceof Secret ? content : unseal(keys, content, associatedData);
  return value === null ? { outcome: onUnsealFailure(), value: null } : { outcome, value };
}

function unlinkedEntry(draft: EntryDraft, seq: number, timestamp: string): Omit<AuditEntry, 'hmac'> {
  return {
    seq,
    id: newEntryId(),
    timestamp,
    event_type: draft.eventType,
    agent_name: draft.agentName,
    resource: draft.resource,
    action: actionOf[draft.eventType],
    result: draft.result,
    policy_name: draft.policyName,
    lease_id: draft.leaseId,
    reason: draft.reason,
    request_id: draft.requestId,
    remote_addr: draft.remoteAddr,
  };
}

function toStored(change: Exclude<Change, { kind: 'countAccess' }>, keys: VaultKeys): StoredChange {
  switch (change.kind) {
    case 'putAgent':
      return { kind: 'putAgent', agent: macAgent(keys.row, change.agent) };
    case 'putPolicy':
      return { kind: 'putPolicy', policy: macPolicy(keys.row, change.policy) };
    case 'putSession':
      return { kind: 'putSession', session: macSession(keys.row, change.session) };
    case 'putCredential':
      return { kind: 'putCredential', credential: macCredential(keys.row, change.credential) };
    case 'keepReply':
      return { kind: 'keepReply', reply: macIdempotencyRecord(keys.row, change.reply) };
    case 'addVersion': {
      const { credential, version } = change;
      const { content, ...rest } = version;
      if (!(content instanceof Secret))
        throw new ApiError('INTERNAL_ERROR', 'A new version must be plain until it is sealed.');
      const { type, version: number } = rest;
      const sealed = seal(keys, content, { credentialId: credential.id, path: credential.path, type, version: number });
      return { kind: 'addVersion', credentialId: credential.id, version: rest, sealed };
    }
    default:
      return change;
  }
}
