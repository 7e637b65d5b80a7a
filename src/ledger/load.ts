/** Loads the rows that a batch decides on, from the session cache and from the store. */
import type { Session } from '../core/agent.ts';
import type { LoadedRows, ReadSet } from '../core/batch-state.ts';
import type { KeySlot } from '../core/keyset.ts';
import type { Operation } from '../core/operation.ts';
import { SUBJECT } from '../core/state.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import type { LoadedFromStore } from '../store/store.ts';
import { AUTHENTICATED_ROWS } from './authenticated-rows.ts';
import type { VaultState } from './vault-state.ts';

/** The rows to load for the operation. A cached session is not loaded again, unless another node may have ended it. */
export function readSetOf(
  { sessions }: VaultState,
  { reads }: Operation<unknown>,
  loaded: LoadedRows,
  isMultiWriter: boolean,
): ReadSet {
  const { session: tokenHash, ...others } = reads;
  if (tokenHash === undefined || isMultiWriter) return reads;
  const session = sessions.get(tokenHash);
  if (session === null) return reads;
  loaded.sessions.set(tokenHash, session);
  return others;
}

/**
 * Adds the rows that the store found. A row counts if its MAC is valid and, except for idempotency records, is the one
 * that the newest entry about the row records. Other rows are left out; such credentials are added to `altered`.
 */
export function populate(
  keys: VaultKeys,
  { sessions, authentic }: VaultState,
  loaded: LoadedRows,
  found: LoadedFromStore,
): void {
  const isRecorded = (subject: string, { mac }: { readonly mac: string }): boolean => found.states.get(subject) === mac;
  for (const session of found.sessions) {
    if (!isRecorded(SUBJECT.session(session), session)) continue;
    // A session that equals the cached one was authentic when it was cached.
    const isKnown = isSameSession(sessions.get(session.tokenHash), session);
    if (isKnown || AUTHENTICATED_ROWS.session.isAuthentic(keys.row, session))
      loaded.sessions.set(session.tokenHash, session);
  }
  for (const credential of found.credentials) {
    loaded.credentials.set(credential.path, credential);
    if (authentic.has(credential)) continue;
    const isGood =
      isRecorded(SUBJECT.credential(credential), credential) &&
      AUTHENTICATED_ROWS.credential.isAuthentic(keys.row, credential);
    if (isGood) authentic.add(credential);
    else loaded.altered.add(credential.path);
  }
  for (const { credentialId, version } of found.versions) loaded.putVersion(credentialId, version);
  for (const { credentialId, versions } of found.histories) loaded.histories.set(credentialId, [...versions]);
  for (const usage of found.usages) {
    if (!isRecorded(SUBJECT.targets(usage), usage)) continue;
    if (AUTHENTICATED_ROWS.usage.isAuthentic(keys.row, usage)) loaded.usages.set(usage.path, usage);
  }
  for (const approval of found.approvals) {
    if (!isRecorded(SUBJECT.approval(approval), approval)) continue;
    if (AUTHENTICATED_ROWS.approval.isAuthentic(keys.row, approval)) loaded.approvals.set(approval.id, approval);
  }
  for (const slot of found.keySlots) if (keys.isSlotAuthentic(slot)) loaded.keySlots.set(slot.id, toKeySlot(slot));
  loaded.keySlotsInForce = keys.slotIds;
  for (const lease of found.leases) loaded.leases.set(lease.id, lease);
  for (const id of found.spentChallenges) loaded.spentChallenges.add(id);
  for (const record of found.idempotencyRecords) {
    if (AUTHENTICATED_ROWS.reply.isAuthentic(keys.row, record)) loaded.idempotencyRecords.set(record.id, record);
  }
}

function toKeySlot({ id, name, kind, parameters, publicKey, createdAt }: KeySlot): KeySlot {
  return { id, name, kind, parameters, publicKey, createdAt };
}

function isSameSession(known: Session | null, session: Session): boolean {
  return (
    known !== null &&
    known.agentId === session.agentId &&
    known.issuedAt === session.issuedAt &&
    known.expiresAt === session.expiresAt
  );
}
