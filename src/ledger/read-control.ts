/**
 * Reads agents, operators and policies, and proves them: each row by the newest entry about it, and the whole by the
 * digest in the head record, which also shows that no entry about a row was removed. SOURCE: docs/formats.md, "State in
 * the log".
 */

import { ControlState } from '../core/control.ts';
import { HELD_RESOURCES, type HeldResource, isAsRecorded, KEYSET_SUBJECT, subjectOf } from '../core/resources.ts';
import { SetDigest } from '../crypto/row-mac.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import type { Store } from '../store/port.ts';
import { readControlStates } from '../store/recorded-states.ts';
import type { HeldPut } from '../store/stored-data.ts';
import { readHeldRows } from '../store/vault-metadata.ts';
import { isAuthentic } from './authenticated-rows.ts';

export type RecordedDigest =
  | { readonly kind: 'recorded'; readonly digest: string }
  /** Records all states, whatever the head record says. */
  | { readonly kind: 'accepted' }
  /** `reason` completes "…, because". */
  | { readonly kind: 'unknown'; readonly reason: string };

export interface ControlReading {
  readonly control: ControlState;
  /** The digest of the agents, operators and policies that are in force by the audit log. */
  readonly digest: SetDigest;
  /** Why no agent and no policy is in force; null if they are proven. */
  readonly unproven: string | null;
}

/** Must not run while another node commits. Adds a line to `warnings` for rows that do not match the audit log. */
export async function readControl(
  store: Pick<Store, 'run'>,
  keys: VaultKeys,
  recorded: RecordedDigest,
  warnings: string[],
): Promise<ControlReading> {
  const { row: key } = keys;
  const rows: HeldPut[] = [];
  for (const resource of HELD_RESOURCES) {
    const found = await store.run(readHeldRows<HeldResource>(resource));
    rows.push(...found.map((row) => ({ kind: 'put', resource, row }) as HeldPut));
  }
  const states = await store.run(readControlStates());
  const authentic = rows.filter(({ resource, row }) => isAuthentic(key, resource, row));
  const stored = new Map(authentic.map((put) => [subjectOf(put.resource, put.row), put.row.mac]));
  const digest = prove(keys, states, stored, recorded);
  if (digest === null) {
    const reason = recorded.kind === 'unknown' ? recorded.reason : 'the log and the rows were altered together';
    const unproven = `The agents, operators and policies cannot be checked against the log, because ${reason}: none of them is in force. Verify the log and restore a backup; or, to trust the database as it is, run leasehold audit accept-rollback.`;
    warnings.push(unproven);
    return { control: new ControlState([], []), digest: new SetDigest(key), unproven };
  }
  const names = rows.map(({ resource, row }) => subjectOf(resource, row));
  const ignored = names.filter((name) => states.get(name) !== stored.get(name) || !stored.has(name));
  const known = new Set([KEYSET_SUBJECT, ...names]);
  const missing = [...states.keys()].filter((name) => !known.has(name));
  warnAboutRows(ignored, missing, warnings);
  const control = new ControlState([], []);
  for (const put of authentic) {
    if (isAsRecorded(put.resource, put.row, states)) control.apply(put);
  }
  return { control, digest, unproven: null };
}

/**
 * The digest to continue with; null if nothing is proven. WHY the rows alone suffice: a damaged log then takes effect
 * from a row without its entry, and no row was added or removed.
 */
function prove(
  { row: key, state: keyset }: VaultKeys,
  states: ReadonlyMap<string, string>,
  stored: ReadonlyMap<string, string>,
  recorded: RecordedDigest,
): SetDigest | null {
  const ofLog = new SetDigest(key, states);
  if (recorded.kind === 'accepted') return ofLog;
  // Nothing is in force that would have to be proven if there is neither a row nor a state.
  if (recorded.kind === 'unknown') return states.size === 0 && stored.size === 0 ? ofLog : null;
  if (ofLog.toString() === recorded.digest) return ofLog;
  // The audit log of a vault records its keyset from the first change on.
  const candidates = [new SetDigest(key, [...stored, [KEYSET_SUBJECT, keyset]]), new SetDigest(key, stored)];
  return candidates.find((ofRows) => ofRows.toString() === recorded.digest) ?? null;
}

const MAX_NAMED = 10;

function warnAboutRows(ignored: readonly string[], missing: readonly string[], warnings: string[]): void {
  const count = ignored.length + missing.length;
  if (count === 0) return;
  const named = [...ignored, ...missing.map((subject) => `${subject} (removed)`)].slice(0, MAX_NAMED).map(printable);
  const others = count > named.length ? ` and ${count - named.length} more` : '';
  warnings.push(
    `${count} ${count === 1 ? 'row' : 'rows'} of agents, operators or policies in the database were altered outside Leasehold and are not used: ${named.join(', ')}${others}. Register or create them again.`,
  );
}

/** An altered row can have any name. */
function printable(subject: string): string {
  return subject.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 200);
}
