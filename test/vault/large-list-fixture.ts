/** A large vault, written directly to the store, and the time for which requests block the event loop. */
import type { TestContext } from 'node:test';
import type { CredentialId, CredentialType } from '../../src/core/names.ts';
import { subjectOf } from '../../src/core/resources.ts';
import type { VaultKeys } from '../../src/crypto/vault-keys.ts';
import { withMac } from '../../src/ledger/authenticated-rows.ts';
import { ENDED_LEASE_RETENTION_MS } from '../../src/vault/leases/lease.ts';
import { ENTRY_COLUMNS, executeSql, LEASE_COLUMNS } from '../kit/direct-db.ts';
import { STORE } from '../kit/stores.ts';
import { type OpenedVault, openVault, toPath } from './fixture.ts';

export const CREDENTIALS = 200_000;
export const LEASES = 314_000;
const AGENTS = 10;
/** The oldest leases, which are due for deletion. WHY not more: whole lease blocks would be deleted and counted. */
export const ENDED = 64_000;

const HOUR_MS = 3_600_000;

/** Log entries, each with a resource that makes a glob slow. */
export const ENTRIES = 1000;

/** A number as text with leading zeros. */
const padded = (number: string, digits: number): string =>
  STORE === 'sqlite' ? `printf('%0${digits}d', ${number})` : `lpad((${number})::text, ${digits}, '0')`;
/** The numbers from 1 on, as `i` of `n`. */
const numbers = (count: number): string =>
  `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;

/** The SQL in which the stores differ. */
const OWN = {
  sqlite: `INSERT INTO access_counts SELECT count_id, 0, 0 FROM credentials;
    INSERT INTO lease_spans SELECT DISTINCT agent_name, seq / 4096 FROM leases;`,
  // The server's own maintenance would soon do the same.
  postgres: `INSERT INTO access_counts SELECT id, 0 FROM credentials; UPDATE access_count_progress SET through_seq = ${LEASES}; ANALYZE;`,
};

/**
 * Every tenth lease is of `agent-3`, and every thousandth credential is `rare`. Only the first hundredth of the
 * credentials has leases.
 */
function fill(directory: string, now: number): Promise<void> {
  const path = `'prod/team' || ${padded('i / 10000', 2)} || '/key' || ${padded('i', 6)}`;
  const number = STORE === 'sqlite' ? { column: ', count_id', value: ', i' } : { column: '', value: '' };
  const credential = `i % ${CREDENTIALS / 100} + 1`;
  return executeSql(
    directory,
    `BEGIN;
    ${numbers(CREDENTIALS)} INSERT INTO credentials (id, path, type, description, created_at, updated_at, version, mac${number.column}) SELECT 'credential-' || i, ${path},
      CASE WHEN i % 1000 = 0 THEN 'rare' ELSE 'generic' END, 'a credential', 1, 1, 1, ''${number.value} FROM n;
    ${numbers(LEASES)} INSERT INTO leases (${LEASE_COLUMNS}) SELECT i, '019d2e93-1994-7e10-8a5c-' || ${padded('i', 12)}, 'retrieve', 'agent-' || (i % ${AGENTS}),
      'credential-' || (${credential}), 'ci-' || (i % ${AGENTS}), 'prod/team00/key' || ${padded(credential, 6)}, 1, 'policy-1',
      ${now} - CASE WHEN i <= ${ENDED} THEN ${ENDED_LEASE_RETENTION_MS + HOUR_MS} ELSE 0 END - ${LEASES} + i,
      ${now} - CASE WHEN i <= ${ENDED} THEN ${ENDED_LEASE_RETENTION_MS} ELSE -${HOUR_MS} END - ${LEASES} + i, NULL FROM n;
    ${numbers(ENTRIES)} INSERT INTO audit_entries (${ENTRY_COLUMNS}) SELECT ${LEASES} + i, 'id', '2026-01-31T00:00:00.000Z', 'credential.list', 'ci-1',
      '${'a'.repeat(500)}', 'list', 'allowed', NULL, NULL, NULL, NULL, NULL, '' FROM n;
    ${OWN[STORE]}
    COMMIT`,
  );
}

/** `filledAt` is the time by which `ENDED` leases are due. */
interface LargeVault extends OpenedVault {
  readonly filledAt: number;
}

/** The first credentials are also read by path, so their rows must authenticate, and an entry must record them. */
function authenticated(index: number, keys: VaultKeys): string {
  const id = `credential-${index}` as CredentialId;
  const path = toPath(`prod/team00/key${String(index).padStart(6, '0')}`);
  const type = 'generic' as CredentialType;
  const row = { id, path, type, description: 'a credential', createdAt: 1, updatedAt: 1, version: 1 };
  const { mac } = withMac(keys.row, 'credential', row);
  return `UPDATE credentials SET mac = '${mac}' WHERE path = '${path}';
    INSERT INTO audit_entries (${ENTRY_COLUMNS}, subject, state) VALUES (${LEASES + ENTRIES + index}, 'id', '2026-01-31T00:00:00.000Z',
      'credential.store', 'admin', '*', 'store', 'allowed', NULL, NULL, NULL, NULL, NULL, '', '${subjectOf('credential', row)}', '${mac}')`;
}

/** The log's head record does not match the entries written directly, which does not matter to lists. */
export async function openLargeVault(t: TestContext): Promise<LargeVault> {
  const made = await openVault(t);
  await made.real.close();
  const filledAt = Date.now();
  await fill(made.directory, filledAt);
  for (const index of [1, 2]) await executeSql(made.directory, authenticated(index, made.keys));
  return { ...(await openVault(t, { directory: made.directory })), filledAt };
}

/**
 * The longest time for which the work blocked the event loop, in milliseconds of this thread's processor time, so that
 * other programs on the machine do not count.
 */
export async function longestBlock(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let isOver = false;
  let before = process.threadCpuUsage();
  const round = (): void => {
    const { user, system } = process.threadCpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
    before = process.threadCpuUsage();
    if (!isOver) setImmediate(round);
  };
  await new Promise((resolve) => setImmediate(resolve));
  before = process.threadCpuUsage();
  setImmediate(round);
  try {
    await work();
    await new Promise((resolve) => setImmediate(resolve));
    return longest;
  } finally {
    isOver = true;
  }
}
