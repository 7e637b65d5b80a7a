/** The frozen audit log with its tampered twins, and logs made up on the spot. */
import fc from 'fast-check';
import { type AuditEntry, type EntryWithoutMac, GENESIS_MAC } from '../../src/core/audit.ts';
import { entryMac, headMac } from '../../src/crypto/chain.ts';
import type { VaultKeys } from '../../src/crypto/keys.ts';
import { type ChainBreak, ChainVerifier, verifyHead } from '../../src/vault/verification/chain-verifier.ts';
import { wellFormedText } from '../kit/property.ts';
import { readVectors } from './vectors.ts';

export interface LogHead {
  readonly seq: number;
  readonly hmac: string;
  readonly mac: string;
}

export interface Log {
  readonly entries: AuditEntry[];
  readonly head: LogHead;
}

export interface TamperedLog extends Log {
  readonly name: string;
  readonly break_at_entry: number;
  readonly break_at_timestamp: string | null;
}

export const AUDIT = readVectors<
  Log & { root_key: string; audit_key: string; canonical: string[]; tampered: TamperedLog[] }
>('audit-v1.json');

/** The first break, or null for a valid log. */
export function checkChain(keys: VaultKeys, entries: readonly AuditEntry[], head: LogHead | null): ChainBreak | null {
  const check = new ChainVerifier(keys);
  for (const entry of entries) {
    const broken = check.next(entry);
    if (broken !== null) return broken;
  }
  const beyondHead = entries.find(({ seq }) => seq === (head?.seq ?? 0) + 1)?.timestamp ?? null;
  return verifyHead(keys, check.point, head === null ? null : { ...head, epoch: 0 }, beyondHead);
}

const text = wellFormedText(20);
const nullable = fc.option(text);

/** Any entry at all but for its place in the log: `chained` gives it that. */
export const arbitraryEntry: fc.Arbitrary<EntryWithoutMac> = fc.record({
  seq: fc.constant(0),
  id: fc.uuid(),
  timestamp: fc.constant('2026-03-27T09:14:45.524Z'),
  event_type: text,
  agent_name: text,
  resource: text,
  action: text,
  result: text,
  policy_name: nullable,
  lease_id: nullable,
  reason: nullable,
  request_id: nullable,
  remote_addr: nullable,
});

/** The entries as a valid log with its head record. */
export function chained(keys: VaultKeys, drafts: readonly EntryWithoutMac[]): Log {
  let hmac = GENESIS_MAC;
  const entries = drafts.map((draft, index): AuditEntry => {
    const entry = { ...draft, seq: index + 1 };
    hmac = entryMac(keys.audit, hmac, entry);
    return { ...entry, hmac };
  });
  return { entries, head: { seq: entries.length, hmac, mac: headMac(keys.audit, entries.length, hmac) } };
}
