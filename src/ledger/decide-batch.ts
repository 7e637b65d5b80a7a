/**
 * One batch: decides each operation in order, on the state that the earlier ones left, unseals and seals values, and
 * chains the entries. Returns what to commit, and the results to deliver after the commit.
 */
import { type AuditEntry, actionOf, type EntryDraft, type EntryWithoutMac } from '../core/audit.ts';
import type { BatchState } from '../core/batch-state.ts';
import { type Change, changesControlState } from '../core/change.ts';
import { ApiError } from '../core/errors.ts';
import type { CredentialId, EntryId } from '../core/names.ts';
import type { Operation, Outcome } from '../core/operation.ts';
import { Secret } from '../core/secret.ts';
import { entryMac, headMac } from '../crypto/chain.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { seal, unseal } from '../crypto/sealing.ts';
import type { Head, StoredChange } from '../store/store.ts';
import { AUTHENTICATED_ROWS } from './authenticated-rows.ts';
import type { DenialBudget, Summaries } from './denial-budget.ts';
import type { ChainTip } from './vault-state.ts';

/** The result of one operation, delivered once the batch is on disk. An error that is not an `ApiError` is a bug. */
export type OperationResult =
  | { readonly kind: 'reply'; readonly reply: unknown }
  | { readonly kind: 'error'; readonly error: Error };

export interface DecidedBatch {
  readonly results: readonly OperationResult[];
  readonly entries: readonly AuditEntry[];
  readonly changes: readonly StoredChange[];
  readonly head: Head;
  /** Successful retrievals of each credential. */
  readonly accesses: ReadonlyMap<CredentialId, number>;
  /** The summaries of denials that were not recorded individually; `entries` includes them. */
  readonly summaries: Summaries;
}

export function decideBatch(
  operations: readonly Operation<unknown>[],
  state: BatchState,
  tip: ChainTip,
  now: number,
  keys: VaultKeys,
  denials: DenialBudget,
  newId: () => string,
): DecidedBatch {
  const timestamp = new Date(now).toISOString();
  const results: OperationResult[] = [];
  const entries: AuditEntry[] = [];
  const changes: StoredChange[] = [];
  const accesses = new Map<CredentialId, number>();
  let { seq, hmac, epoch } = tip;
  let bumpsEpoch = false;
  const newEntryId = (): EntryId => newId() as EntryId;
  const record = (draft: EntryDraft, id: EntryId): void => {
    seq += 1;
    const entry = entryWithoutMac(draft, seq, timestamp, id);
    hmac = entryMac(keys.audit, hmac, entry);
    entries.push({ ...entry, hmac });
  };
  const summaries = denials.summarise(now);
  for (const draft of summaries.entries) record(draft, newEntryId());

  for (const operation of operations) {
    const entryId = newEntryId();
    let outcome: UnsealedOutcome;
    try {
      outcome = unsealOutcome(operation.decide(state, { now, seq: seq + 1, entryId, newId }), keys);
    } catch (error) {
      results.push({ kind: 'error', error: error instanceof Error ? error : new Error('thrown value') });
      continue;
    }
    for (const change of outcome.changes) {
      state.apply(change);
      bumpsEpoch ||= changesControlState(change);
      if (change.kind === 'incrementAccessCount')
        accesses.set(change.credentialId, (accesses.get(change.credentialId) ?? 0) + 1);
      else changes.push(toStored(change, keys));
    }
    // An entry with changes is always recorded; only denials without changes are limited.
    if (outcome.entry !== null && (outcome.changes.length > 0 || denials.admits(outcome.entry, now))) {
      record(outcome.entry, entryId);
    }
    results.push(
      'error' in outcome.response
        ? { kind: 'error', error: new ApiError(outcome.response.error.code, outcome.response.error.message) }
        : { kind: 'reply', reply: outcome.response.reply },
    );
  }
  if (bumpsEpoch) epoch += 1;
  const head: Head = { seq, hmac, mac: headMac(keys.audit, seq, hmac), epoch };
  return { results, entries, changes, head, accesses, summaries };
}

type UnsealedOutcome = Omit<Outcome<unknown>, 'response'> & {
  readonly response: Exclude<Outcome<unknown>['response'], { unseal: unknown }>;
};

/**
 * Unseals the value that an outcome needs. If it does not authenticate or must not be used, the operation's `onFailure`
 * or `reject` outcome replaces this one.
 */
function unsealOutcome(outcome: Outcome<unknown>, keys: VaultKeys): UnsealedOutcome {
  const { response, entry, changes } = outcome;
  if (!('unseal' in response)) return { response, entry, changes };
  const { content, associatedData, onFailure, reject, reply } = response.unseal;
  const value = content instanceof Secret ? content : unseal(keys, content, associatedData);
  if (value === null) return unsealOutcome(onFailure(), keys);
  const rejection = reject?.(value) ?? null;
  return rejection === null ? { response: { reply: reply(value) }, entry, changes } : unsealOutcome(rejection, keys);
}

function entryWithoutMac(draft: EntryDraft, seq: number, timestamp: string, id: EntryId): EntryWithoutMac {
  return {
    seq,
    id: draft.completes ?? id,
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
    ...draft.use,
  };
}

function toStored(change: Exclude<Change, { kind: 'incrementAccessCount' }>, keys: VaultKeys): StoredChange {
  switch (change.kind) {
    case 'putAgent':
      return { kind: 'putAgent', agent: AUTHENTICATED_ROWS.agent.withMac(keys.row, change.agent) };
    case 'putPolicy':
      return { kind: 'putPolicy', policy: AUTHENTICATED_ROWS.policy.withMac(keys.row, change.policy) };
    case 'putSession':
      return { kind: 'putSession', session: AUTHENTICATED_ROWS.session.withMac(keys.row, change.session) };
    case 'putCredential':
      return { kind: 'putCredential', credential: AUTHENTICATED_ROWS.credential.withMac(keys.row, change.credential) };
    case 'putUsage':
      return { kind: 'putUsage', usage: AUTHENTICATED_ROWS.usage.withMac(keys.row, change.usage) };
    case 'saveIdempotencyRecord':
      return { kind: 'saveIdempotencyRecord', record: AUTHENTICATED_ROWS.reply.withMac(keys.row, change.record) };
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
